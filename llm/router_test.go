package llm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/anthropic"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/openai"
	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/turns"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var adapters = []llm.Adapter{anthropic.Adapter(), openai.Adapter()}

func router(t *testing.T, c llm.Config, limits turns.Limits) *llm.Router {
	t.Helper()
	r, err := llm.New(c, llm.Options{Adapters: adapters, Limits: limits})
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

func ask(t *testing.T, g turns.Generator, model string) llmtest.Result {
	t.Helper()
	routes, err := g.Routes(model)
	require.NoError(t, err)
	req, err := g.Build(routes[0], turns.Prompt{Messages: []turns.Message{
		{Role: turns.RoleUser, Content: []turns.Block{turns.Text{Text: "hello"}}},
	}})
	require.NoError(t, err)
	return llmtest.Collect(t, g.Generate(t.Context(), turns.Call{Request: req, Key: "turnd-1"}))
}

func TestEachModelIsAskedOnItsEndpointsWire(t *testing.T) {
	s := scripted.Start(t, scripted.Script{})
	r := router(t, llm.Config{
		DefaultModel: "a",
		Endpoints: []llm.Endpoint{
			{Name: "one", Wire: llm.WireAnthropicMessages, BaseURL: s.URL()},
			{Name: "two", Wire: llm.WireOpenAIChat, BaseURL: s.URL() + "/v1"},
		},
		Models: []llm.Model{
			{Name: "a", Route: []llm.Target{{Endpoint: "one", Model: "a-1"}}},
			{Name: "b", Route: []llm.Target{{Endpoint: "two", Model: "b-1"}}},
		},
	}, turns.Limits{})
	require.Equal(t, []string{"a", "b"}, r.Models())
	for i, want := range []struct{ ask, wire, model string }{
		{"", "anthropic.messages", "a-1"}, {"b", "openai.chat", "b-1"}, {"a", "anthropic.messages", "a-1"},
	} {
		got := ask(t, r, want.ask)
		require.Nil(t, got.Err)
		require.NotEmpty(t, got.Text)
		call := s.Calls()[i]
		require.Equal(t, want.wire, call.Wire)
		require.Equal(t, want.model, call.Model)
	}
	require.Equal(t, 3, s.Counts().Requests)
	require.Zero(t, r.Resends())
}

func TestTheDemoNeedsNoKey(t *testing.T) {
	s := scripted.Start(t, scripted.Script{})
	r := router(t, llm.Demo(s.URL()), turns.Limits{})
	require.Equal(t, []string{llm.DemoModel}, r.Models())
	require.NotEmpty(t, ask(t, r, "demo").Text)
}

func TestKeysAloneMakeEndpoints(t *testing.T) {
	for name, tt := range map[string]struct {
		config llm.Config
		models []string
	}{
		"one":   {llm.FromKeys("sk-a", "", "", ""), llm.AnthropicModels},
		"other": {llm.FromKeys("", "", "sk-o", "http://127.0.0.1:1/v1"), llm.OpenAIModels},
		"both":  {llm.FromKeys("sk-a", "", "sk-o", ""), append(append([]string{}, llm.AnthropicModels...), llm.OpenAIModels...)},
	} {
		t.Run(name, func(t *testing.T) {
			r := router(t, tt.config, turns.Limits{})
			require.Equal(t, tt.models, r.Models())
			routes, err := r.Routes("")
			require.NoError(t, err)
			require.Equal(t, tt.models[0], routes[0].Model)
		})
	}
	_, err := llm.New(llm.FromKeys("", "", "", ""), llm.Options{Adapters: adapters})
	require.ErrorContains(t, err, "models: none")
}

func TestLimitsComeFromTheEndpointThenTheProcessThenTheDefaults(t *testing.T) {
	c := llm.Demo("http://127.0.0.1:1")
	c.Endpoints[0].Limits = turns.Limits{Idle: time.Second, MaxOutputTokens: 7}
	routes, err := router(t, c, turns.Limits{Idle: time.Minute, Total: time.Hour}).Routes("demo")
	require.NoError(t, err)
	require.Equal(t, turns.Limits{FirstByte: 2 * time.Minute, Idle: time.Second, Total: time.Hour, MaxOutputTokens: 7}, routes[0].Limits)
	require.Equal(t, turns.IdempotencyNone, routes[0].Capabilities.Idempotency)
	require.Equal(t, "anthropic", routes[0].Provider)
}

func TestAnUnknownModelIsATypedError(t *testing.T) {
	r := router(t, llm.Demo("http://127.0.0.1:1"), turns.Limits{})
	_, err := r.Routes("nobody")
	require.Equal(t, turns.CodeUnknownModel, turns.CodeOf(err))
	_, err = r.Build(turns.Route{Endpoint: "gone"}, turns.Prompt{})
	require.Equal(t, turns.CodeUnknownModel, turns.CodeOf(err))
	got := llmtest.Collect(t, r.Generate(t.Context(), turns.Call{}))
	require.Equal(t, turns.ClassTerminal, got.Err.Class)
	require.Equal(t, turns.PhaseNone, got.Err.Phase)
}

func TestAWireWithoutAdapterIsRefused(t *testing.T) {
	_, err := llm.New(llm.Demo("http://127.0.0.1:1"), llm.Options{Adapters: []llm.Adapter{openai.Adapter()}})
	require.ErrorContains(t, err, "endpoints.demo.wire")
	c := llm.Demo("http://127.0.0.1:1")
	c.Endpoints = append(c.Endpoints, c.Endpoints[0])
	c.Models = append(c.Models, c.Models[0])
	_, err = llm.New(c, llm.Options{Adapters: adapters})
	require.ErrorContains(t, err, "endpoints.demo: named twice")
	require.ErrorContains(t, err, "models.demo: empty, or named twice")
}

func TestARouteHasAllItsEntriesInOrder(t *testing.T) {
	c := two("http://127.0.0.1:1")
	c.Endpoints[0].Key, c.Endpoints[1].Key = "sk-one", "sk-two"
	c.Endpoints[1].OnAmbiguous, c.Endpoints[1].OnPartial = turns.OnAmbiguousHold, turns.OnPartialContinue
	c.Endpoints[1].Prices = llm.Prices{Input: 3, Output: 15}
	c.Endpoints[1].Capabilities.Lookup = true
	r, err := llm.New(c, llm.Options{Adapters: adapters, OnAmbiguous: turns.OnAmbiguousRetry})
	require.NoError(t, err)
	defer r.Close()
	routes, err := r.Routes("m")
	require.NoError(t, err)
	require.Len(t, routes, 2)
	first, second := routes[0], routes[1]
	require.Equal(t, []string{"one", "m-1", "anthropic.messages"}, []string{first.Endpoint, first.ProviderModel, first.Wire})
	require.Equal(t, []string{"two", "m-2", "openai.chat"}, []string{second.Endpoint, second.ProviderModel, second.Wire})
	require.Equal(t, turns.OnAmbiguousRetry, first.OnAmbiguous)
	require.Equal(t, turns.OnPartialDiscard, first.OnPartial)
	require.Equal(t, turns.OnAmbiguousHold, second.OnAmbiguous)
	require.Equal(t, turns.OnPartialContinue, second.OnPartial)
	require.Equal(t, turns.Prices{Input: 3, Output: 15}, second.Prices)
	require.True(t, second.Capabilities.Lookup)
	require.Regexp(t, "^[0-9a-f]{8}$", first.Credential)
	require.NotEqual(t, first.Credential, second.Credential)

	routes[0].Endpoint = "scribbled"
	again, err := r.Routes("m")
	require.NoError(t, err)
	require.Equal(t, first, again[0])
}

func TestARouteWithoutKeyHasNoCredential(t *testing.T) {
	routes, err := router(t, llm.Demo("http://127.0.0.1:1"), turns.Limits{}).Routes("")
	require.NoError(t, err)
	require.Empty(t, routes[0].Credential)
}

// two is a model with a route of two endpoints, on one server.
func two(url string) llm.Config {
	return llm.Config{
		Endpoints: []llm.Endpoint{
			{Name: "one", Wire: llm.WireAnthropicMessages, BaseURL: url},
			{Name: "two", Wire: llm.WireOpenAIChat, BaseURL: url},
		},
		Models: []llm.Model{{Name: "m", Route: []llm.Target{{Endpoint: "one", Model: "m-1"}, {Endpoint: "two", Model: "m-2"}}}},
	}
}

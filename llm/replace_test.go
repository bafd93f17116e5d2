package llm_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/openai/responses"
	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/turns"
)

var hello = turns.Prompt{Messages: []turns.Message{{Role: turns.RoleUser, Content: []turns.Block{turns.Text{Text: "hello"}}}}}

func TestARefusedConfigLeavesTheOldOneInPlace(t *testing.T) {
	r := router(t, two("http://127.0.0.1:1"), turns.Limits{})
	before, err := r.Routes("m")
	require.NoError(t, err)
	bad := two("http://127.0.0.1:2")
	bad.Models[0].Route[1].Endpoint = "nowhere"
	require.ErrorContains(t, r.Replace(bad), "models.m.route.endpoint")
	unspoken := two("http://127.0.0.1:2")
	unspoken.Endpoints[0].Wire = llm.WireGeminiGenerate
	require.ErrorContains(t, r.Replace(unspoken), "endpoints.one.wire: no adapter")
	after, err := r.Routes("m")
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestACallUnderWayEndsAsItBeganWhenModelsAreReplaced(t *testing.T) {
	old := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Plan: scripted.Plan{
		Blocks: []scripted.Block{{Text: "from the old place"}},
		Steps:  []scripted.Step{{At: scripted.AfterDelta(1), Do: scripted.DoWait, Gate: "mid"}},
	}}}})
	next := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Plan: scripted.Plan{Blocks: []scripted.Block{{Text: "from the new place"}}}}}})
	r := router(t, two(old.URL()), turns.Limits{})
	routes, err := r.Routes("m")
	require.NoError(t, err)
	request, err := r.Build(routes[0], hello)
	require.NoError(t, err)
	call := r.Generate(t.Context(), turns.Call{Request: request, Key: "k"})
	replaced := false
	got := llmtest.Collect(t, func(yield func(turns.Delta, error) bool) {
		for d, err := range call {
			if _, ok := d.(turns.BlockDelta); ok && !replaced {
				replaced = true
				require.NoError(t, r.Replace(two(next.URL())))
				require.NoError(t, old.OpenGate("mid"))
			}
			if !yield(d, err) {
				return
			}
		}
	})
	require.True(t, replaced)
	require.Nil(t, got.Err)
	require.Equal(t, "from the old place", got.Text)

	again := llmtest.Collect(t, r.Generate(t.Context(), turns.Call{Request: request, Key: "k"}))
	require.Equal(t, "from the new place", again.Text)
}

func TestARouteOfAnEndpointThatIsGoneOrSpeaksAnotherWireIsNotAsked(t *testing.T) {
	s := scripted.Start(t, scripted.Script{})
	for name, change := range map[string]func(*llm.Config){
		"gone": func(c *llm.Config) {
			c.Endpoints[1].Name = "three"
			c.Models[0].Route[1].Endpoint = "three"
		},
		"another wire of the same vendor": func(c *llm.Config) { c.Endpoints[1].Wire = llm.WireOpenAIResponses },
		"another vendor":                  func(c *llm.Config) { c.Endpoints[1].Wire = llm.WireAnthropicMessages },
	} {
		t.Run(name, func(t *testing.T) {
			r, err := llm.New(two(s.URL()), llm.Options{Adapters: append(adapters[:2:2], responses.Adapter())})
			require.NoError(t, err)
			t.Cleanup(r.Close)
			routes, err := r.Routes("m")
			require.NoError(t, err)
			request, err := r.Build(routes[1], hello)
			require.NoError(t, err)
			next := two(s.URL())
			change(&next)
			require.NoError(t, r.Replace(next))

			_, err = r.Build(routes[1], hello)
			require.Equal(t, turns.CodeUnknownModel, turns.CodeOf(err))
			got := llmtest.Collect(t, r.Generate(t.Context(), turns.Call{Request: request}))
			require.Equal(t, turns.ClassTerminal, got.Err.Class)
			require.Equal(t, turns.PhaseNone, got.Err.Phase)
			got = llmtest.Collect(t, r.Recover(t.Context(), turns.LostCall{Request: request}))
			require.Equal(t, turns.ClassTerminal, got.Err.Class)
			require.Error(t, r.Stop(t.Context(), turns.LostCall{Request: request}))
		})
	}
	require.Zero(t, s.Counts().Requests)
}

func TestAnEnforcedKeyIsNotSentUnderAnotherCredential(t *testing.T) {
	s := scripted.Start(t, scripted.Script{})
	c := llm.Demo(s.URL())
	c.Endpoints[0].Key = "sk-old"
	c.Endpoints[0].Capabilities = turns.Capabilities{Idempotency: turns.IdempotencyEnforced, Retention: time.Hour}
	r := router(t, c, turns.Limits{})
	routes, err := r.Routes("")
	require.NoError(t, err)
	request, err := r.Build(routes[0], hello)
	require.NoError(t, err)
	require.Nil(t, llmtest.Collect(t, r.Generate(t.Context(), turns.Call{Request: request, Key: "k"})).Err)

	next := llm.Demo(s.URL())
	next.Endpoints[0].Key = "sk-new"
	next.Endpoints[0].Capabilities = c.Endpoints[0].Capabilities
	require.NoError(t, r.Replace(next))
	got := llmtest.Collect(t, r.Generate(t.Context(), turns.Call{Request: request, Key: "k"}))
	require.Equal(t, turns.ClassTerminal, got.Err.Class)
	require.Equal(t, 1, s.Counts().Requests)
	require.Nil(t, ask(t, r, "").Err)
}

func TestALimitThatCutsTheLongestAnswersIsWarnedOf(t *testing.T) {
	var out bytes.Buffer
	c := two("http://127.0.0.1:1")
	c.Endpoints[0].Limits = turns.Limits{FirstByte: 10 * time.Second, Total: 60 * time.Second, MaxOutputTokens: 1001} // needs 60.05 s
	c.Endpoints[1].Limits = turns.Limits{FirstByte: 10 * time.Second, Total: 60 * time.Second, MaxOutputTokens: 1000}
	r, err := llm.New(c, llm.Options{Adapters: adapters, Logger: slog.New(slog.NewTextHandler(&out, nil))})
	require.NoError(t, err)
	defer r.Close()
	require.Contains(t, out.String(), "endpoint=one total=1m0s needed=1m0.05s first_byte=10s max_output_tokens=1001 tokens_per_second=20")
	require.NotContains(t, out.String(), "endpoint=two")

	out.Reset()
	c.Endpoints[1].Limits.Total = 59 * time.Second
	require.NoError(t, r.Replace(c))
	require.Contains(t, out.String(), "endpoint=two total=59s needed=1m0s")
}

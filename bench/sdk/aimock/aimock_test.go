// Package aimock_test holds the adapters to aimock, a provider from npm that this project did not write.
package aimock_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/bench/sdk"
	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/anthropic"
	"github.com/turnd/turnd/llm/gemini"
	"github.com/turnd/turnd/llm/gemini/interactions"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/openai"
	"github.com/turnd/turnd/llm/openai/responses"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

const cli = "../../../internal/tools/node/node_modules/@copilotkit/aimock/dist/cli.js"

type object = map[string]any

// long is text of many chunks.
var long = strings.Repeat(sdk.Words, 8)

// fixtures are what it answers, by a word of the question.
var fixtures = object{"fixtures": []object{
	{"match": object{"userMessage": "say"}, "response": object{"content": long}},
	{"match": object{"userMessage": "call"}, "response": object{"toolCalls": []object{
		{"id": "call_01", "name": "look_up", "arguments": sdk.Input}, {"id": "call_02", "name": "now", "arguments": "{}"}}}},
	{"match": object{"userMessage": "slow down"}, "response": object{"error": object{"message": "m", "type": "rate_limit_error"}, "status": 429, "retryAfter": 7}},
	{"match": object{"userMessage": "no"}, "response": object{"error": object{"message": "m", "type": "invalid_request_error"}, "status": 400}},
	{"match": object{"userMessage": "break off"}, "response": object{"content": long}, "truncateAfterChunks": 10},
}}

// mock is aimock as it runs.
type mock struct{ url string }

func start(t *testing.T) mock {
	t.Helper()
	if _, err := os.Stat(cli); err != nil {
		t.Skip("aimock is not installed: run make deps")
	}
	file := filepath.Join(t.TempDir(), "fixtures.json")
	text, err := json.Marshal(fixtures)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	cmd := exec.CommandContext(t.Context(), "node", cli, "-h", "127.0.0.1", "-p", fmt.Sprint(port), "-f", file, "--latency", "5", "--journal-max", "0", "--log-level", "silent")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // its context ends before
	m := mock{fmt.Sprintf("http://127.0.0.1:%d", port)}
	require.Eventually(t, func() bool { _, err := m.journal(); return err == nil }, 20*time.Second, 50*time.Millisecond)
	return m
}

// journal counts the requests that it got for a reply.
func (m mock) journal() (n int, err error) {
	res, err := http.Get(m.url + "/__aimock/journal")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	var entries []struct{ Method string }
	if err := json.NewDecoder(res.Body).Decode(&entries); err != nil {
		return 0, err
	}
	for _, e := range entries {
		if e.Method == http.MethodPost {
			n++
		}
	}
	return n, nil
}

// chaotic adds a header to each request.
type chaotic struct {
	http.RoundTripper
	name, value string
}

// RoundTrip implements http.RoundTripper.
func (c chaotic) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.name != "" {
		r = r.Clone(r.Context())
		r.GetBody = nil
		r.Header.Set(c.name, c.value)
	}
	return c.RoundTripper.RoundTrip(r)
}

var adapters = []llm.Adapter{anthropic.Adapter(), openai.Adapter(), responses.Adapter(), gemini.Adapter(), interactions.Adapter()}

// ask makes one call and demands that it was one.
func (m mock) ask(t *testing.T, a llm.Adapter, words, chaos, value string) llmtest.Result {
	t.Helper()
	before, err := m.journal()
	require.NoError(t, err)
	transport := &http.Transport{DisableCompression: true}
	client := wire.NewClient(wire.Options{Transport: chaotic{transport, chaos, value}})
	defer transport.CloseIdleConnections()
	caller := a.Open(client, llm.Endpoint{Name: "aimock", Wire: a.Wire, BaseURL: m.url, Key: "sk-x"})
	route := turns.Route{Provider: a.Provider, ProviderModel: "demo", Limits: turns.Limits{Total: 20 * time.Second}}
	req, err := caller.Build(route, turns.Prompt{
		Options:  turns.Options{Tools: []turns.Tool{{Name: "look_up"}, {Name: "now"}}},
		Messages: []turns.Message{{Role: turns.RoleUser, Content: []turns.Block{turns.Text{Text: words}}}},
	})
	require.NoError(t, err)
	r := llmtest.Collect(t, caller.Generate(t.Context(), turns.Call{Request: req, Key: "turnd-1"}))
	after, err := m.journal()
	require.NoError(t, err)
	require.Equal(t, before+1, after, "one call is one request")
	return r
}

func onEach(t *testing.T, m mock, test func(*testing.T, llm.Adapter)) {
	t.Helper()
	for _, a := range adapters {
		t.Run(string(a.Wire), func(t *testing.T) { test(t, a) })
	}
}

func TestEachAdapterUnderstandsAProviderThatWeDidNotWrite(t *testing.T) {
	m := start(t)
	onEach(t, m, func(t *testing.T, a llm.Adapter) {
		said := m.ask(t, a, "say", "", "")
		require.Nil(t, said.Err)
		require.Equal(t, long, said.Text)
		require.Equal(t, turns.StopEndTurn, said.Finished.StopReason)

		called := m.ask(t, a, "call", "", "")
		require.Nil(t, called.Err)
		if a.Wire != llm.WireGeminiGenerate { // there aimock has a finishReason that the vendor has not
			require.Equal(t, turns.StopToolUse, called.Finished.StopReason)
		}
		called.Blocks = slices.DeleteFunc(called.Blocks, func(b llmtest.Block) bool { return b.Kind == turns.KindThinking })
		require.Len(t, called.Blocks, 2)
		for i, want := range []turns.ToolUse{{Name: "look_up", InputJSON: sdk.Input}, {Name: "now", InputJSON: "{}"}} {
			require.Equal(t, turns.KindToolUse, called.Blocks[i].Kind)
			require.Equal(t, want.Name, called.Blocks[i].ToolName)
			require.NotEmpty(t, called.Blocks[i].ToolUseID)
			require.JSONEq(t, want.InputJSON, called.Blocks[i].Text)
		}

		slow := m.ask(t, a, "slow down", "", "")
		require.Equal(t, turns.ClassThrottled, slow.Err.Class)
		require.Equal(t, 7*time.Second, slow.Err.RetryAfter)
		require.Equal(t, turns.ClassTerminal, m.ask(t, a, "no", "", "").Err.Class)

		cut := m.ask(t, a, "break off", "", "")
		require.NotNil(t, cut.Err, "half an answer is none")
		require.Equal(t, turns.ClassAmbiguous, cut.Err.Class)
		require.NotEmpty(t, cut.Text)
		require.Equal(t, long[:len(cut.Text)], cut.Text)
	})
}

func TestEachAdapterGivesEveryKindOfChaosItsClass(t *testing.T) {
	m := start(t)
	onEach(t, m, func(t *testing.T, a llm.Adapter) {
		for kind, want := range map[string][]turns.CallClass{
			"drop":      {turns.ClassTransient, turns.ClassAmbiguous}, // by whether the body is the vendor's own
			"malformed": {turns.ClassAmbiguous}, "disconnect": {turns.ClassAmbiguous}, "ratelimit": {turns.ClassThrottled},
		} {
			r := m.ask(t, a, "say", "X-Aimock-Chaos-"+kind, "1")
			require.NotNil(t, r.Err, kind)
			require.Contains(t, want, r.Err.Class, kind)
			require.Equal(t, kind == "ratelimit", r.Err.HasRetryAfter, kind)
			require.Empty(t, r.Text, kind)
		}
		late := m.ask(t, a, "say", "X-Aimock-Chaos-Latency", "300")
		require.Nil(t, late.Err)
		require.Equal(t, long, late.Text)
	})
}

package probe_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/anthropic"
	"github.com/turnd/turnd/llm/gemini"
	"github.com/turnd/turnd/llm/gemini/interactions"
	"github.com/turnd/turnd/llm/openai"
	"github.com/turnd/turnd/llm/openai/responses"
	"github.com/turnd/turnd/llm/probe"
	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/turns"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// long is a reply that is not over when it is cut.
var long = scripted.Rule{Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: 40}, PaceMS: 2}}

func config(wire llm.Wire, url string) probe.Config {
	return probe.Config{
		Endpoint: llm.Endpoint{Name: "e", Wire: wire, BaseURL: url},
		Model:    "demo",
		Options: llm.Options{Adapters: []llm.Adapter{
			anthropic.Adapter(), openai.Adapter(), responses.Adapter(), gemini.Adapter(), interactions.Adapter(),
		}},
		Patience: 10 * time.Second,
	}
}

func run(t *testing.T, c probe.Config) (probe.Report, map[string]probe.Finding) {
	t.Helper()
	r, err := probe.Run(t.Context(), c)
	require.NoError(t, err)
	require.LessOrEqual(t, r.Calls, c.Plan().Calls)
	byName := make(map[string]probe.Finding)
	for _, f := range r.Findings {
		require.NotEmpty(t, f.Evidence, f.Capability)
		byName[f.Capability] = f
	}
	require.Len(t, byName, 6)
	return r, byName
}

func TestAKeyThatIsEnforcedIsSeenToBe(t *testing.T) {
	for wire, base := range map[llm.Wire]string{llm.WireAnthropicMessages: "", llm.WireOpenAIChat: "/v1"} {
		s := scripted.Start(t, scripted.Script{Endpoint: scripted.Endpoint{Idempotency: scripted.IdempotencyEnforce}, Rules: []scripted.Rule{long}})
		r, found := run(t, config(wire, s.URL()+base))
		require.Equal(t, "enforced", found["idempotency"].Seen, found["idempotency"].Evidence)
		require.Equal(t, "none", found["idempotency"].Claimed)
		require.Empty(t, r.Refuted(), "what is not claimed can't be refuted")
		require.Contains(t, r.YAML(), "idempotency: enforced\n      # a probe can't see how long")
		require.Equal(t, s.Counts().Requests, r.Calls)
	}
}

func TestAKeyThatIsIgnoredRefutesTheClaimThatItIsEnforced(t *testing.T) {
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{long}})
	c := config(llm.WireAnthropicMessages, s.URL())
	c.Endpoint.Capabilities = turns.Capabilities{Idempotency: turns.IdempotencyEnforced, Retention: time.Hour}
	r, found := run(t, c)
	require.Equal(t, "none", found["idempotency"].Seen, found["idempotency"].Evidence)
	require.Equal(t, "enforced", found["idempotency"].Claimed)
	require.Equal(t, []string{"idempotency"}, r.Refuted())
	require.Contains(t, r.YAML(), "idempotency: none\n")
	require.NotContains(t, r.YAML(), "retention")
	for _, name := range []string{"resume", "cancel", "lookup", "fence"} {
		require.Equal(t, probe.No, found[name].Seen, name)
	}
	require.Equal(t, probe.No, found["usage_on_abort"].Seen, "Anthropic says at the start what went in, and no more: %s", found["usage_on_abort"].Evidence)
}

func TestWhatAWireCanDoIsSeenWhereItsEndpointDoesIt(t *testing.T) {
	type seen map[string]string
	for wire, want := range map[llm.Wire]struct {
		base string
		seen seen
		yaml []string
	}{
		llm.WireOpenAIChat: {"/v1", seen{"lookup": probe.Yes, "usage_on_abort": probe.No, "resume": probe.No}, []string{"lookup: true\n"}},
		llm.WireOpenAIResponses: {
			"/v1",
			seen{"resume": probe.Yes, "cancel": probe.Yes, "lookup": probe.Yes, "fence": probe.Yes, "usage_on_abort": probe.No},
			[]string{"# seen too, and left out since they can't go with resume: lookup, fence\n", "resume: true\n", "cancel: true\n", "lookup: false\n", "fence: false\n"},
		},
		llm.WireGeminiGenerate:     {"", seen{"usage_on_abort": probe.Yes, "resume": probe.No}, []string{"usage_on_abort: true\n"}},
		llm.WireGeminiInteractions: {"", seen{"resume": probe.Yes, "cancel": probe.Yes, "lookup": probe.No}, []string{"resume: true\n", "cancel: true\n"}},
	} {
		t.Run(string(wire), func(t *testing.T) {
			s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{long}})
			r, found := run(t, config(wire, s.URL()+want.base))
			for name, what := range want.seen {
				require.Equal(t, what, found[name].Seen, "%s: %s", name, found[name].Evidence)
			}
			require.Equal(t, "none", found["idempotency"].Seen)
			for _, line := range want.yaml {
				require.Contains(t, r.YAML(), line)
			}
			require.Equal(t, s.Counts().Requests, r.Calls)

			c, _ := r.Capabilities()
			e := r.Endpoint
			e.Capabilities = c
			require.NoError(t, llm.Config{Endpoints: []llm.Endpoint{e}, Models: []llm.Model{{Name: "m", Route: []llm.Target{{Endpoint: "e", Model: "m"}}}}}.Validate(),
				"what is to be pasted can be loaded")
		})
	}
}

func TestAnAnswerThatIsNotFoundRefutesTheClaimThatItCanBe(t *testing.T) {
	s := scripted.Start(t, scripted.Script{Endpoint: scripted.Endpoint{LookupDelayMS: 600_000}, Rules: []scripted.Rule{long}})
	c := config(llm.WireOpenAIChat, s.URL()+"/v1")
	c.Endpoint.Capabilities.Lookup = true
	c.Patience = time.Millisecond
	r, found := run(t, c)
	require.Equal(t, probe.No, found["lookup"].Seen, found["lookup"].Evidence)
	require.Equal(t, []string{"lookup"}, r.Refuted())
}

func TestAnswersThatAreKeptByWhatWasAskedAreNoEnforcedKey(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"same","choices":[{"index":0,"delta":{"content":"one"}}]}

data: {"id":"same","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`)
	}))
	t.Cleanup(s.Close)
	c := config(llm.WireOpenAIChat, s.URL+"/v1")
	c.Patience = time.Millisecond
	_, found := run(t, c)
	require.Equal(t, "none", found["idempotency"].Seen)
	require.Contains(t, found["idempotency"].Evidence, "another key got the same response")
}

func TestARepeatThatIsRefusedIsNoEnforcedKey(t *testing.T) {
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{
		{Match: scripted.Match{Nth: 2}, Plan: scripted.Plan{Steps: []scripted.Step{{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 409}}}}, long,
	}})
	_, found := run(t, config(llm.WireAnthropicMessages, s.URL()))
	require.Equal(t, "advisory", found["idempotency"].Seen, found["idempotency"].Evidence)
}

func TestAnEndpointThatDoesNotAnswerIsAskedOnce(t *testing.T) {
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{
		{Plan: scripted.Plan{Steps: []scripted.Step{{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 401}}}},
	}})
	_, err := probe.Run(t.Context(), config(llm.WireAnthropicMessages, s.URL()))
	require.ErrorContains(t, err, "class terminal, status 401")
	require.Equal(t, 1, s.Counts().Requests)
}

func TestAnAnswerThatIsOverTooSoonIsUnclear(t *testing.T) {
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: 1}}}}})
	report, found := run(t, config(llm.WireAnthropicMessages, s.URL()))
	require.Equal(t, probe.Unclear, found["usage_on_abort"].Seen)
	require.NotContains(t, report.YAML(), "      usage_on_abort:", "what was not seen is not written down as seen")
	require.Contains(t, report.YAML(), "# usage_on_abort: it was not seen whether")
}

func TestThePlanIsTheMostThatIsSpent(t *testing.T) {
	c := config(llm.WireOpenAIResponses, "http://127.0.0.1:1")
	p := c.Plan()
	require.Equal(t, 10, p.Calls)
	require.False(t, p.Priced)
	c.Endpoint.Prices = llm.Prices{Input: 10, Output: 20}
	p = c.Plan()
	require.True(t, p.Priced)
	require.InDelta(t, float64(p.Calls*(p.InputTokens*10+p.OutputTokens*20))/1e6, p.Cost, 1e-9)
}

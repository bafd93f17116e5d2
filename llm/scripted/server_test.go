package scripted_test

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

// serve is Start with options.
func serve(t *testing.T, script scripted.Script, options scripted.Options) *scripted.Server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := scripted.New(script, options)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, s.Close(ctx))
		require.NoError(t, <-served)
	})
	require.Eventually(t, func() bool { return s.URL() != "" }, 10*time.Second, time.Millisecond)
	return s
}

func TestRulesAreTakenInOrderByWhatTheyMatch(t *testing.T) {
	rule := func(name string, m scripted.Match, times int) scripted.Rule {
		return scripted.Rule{Name: name, Match: m, Times: times, Plan: scripted.Plan{Reply: deltas(1)}}
	}
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{
		rule("second hello", scripted.Match{Text: "hello", Nth: 2}, 0),
		rule("twice", scripted.Match{Text: "^please say hello"}, 2),
		rule("openai", scripted.Match{Wire: "openai.chat"}, 0),
		rule("keyed", scripted.Match{Key: "^turnd-"}, 0),
		rule("model", scripted.Match{Model: "big"}, 0),
	}})
	other := strings.Replace(anthropicBody, "hello", "goodbye", 1)
	ask(t, s, messages, anthropicBody)
	ask(t, s, messages, anthropicBody)
	ask(t, s, messages, other, "Idempotency-Key: turnd-7")
	ask(t, s, messages, anthropicBody)
	ask(t, s, completions, openaiBody)
	ask(t, s, messages, strings.Replace(anthropicBody, "demo", "big", 1))
	ask(t, s, messages, other)
	var taken []string
	for _, call := range s.Calls() {
		taken = append(taken, call.Rule)
	}
	require.Equal(t, []string{"twice", "second hello", "keyed", "twice", "openai", "model", ""}, taken)
}

func TestTheLastUserTextIsMatched(t *testing.T) {
	const body = `{"model":"demo","max_tokens":9,"messages":[
		{"role":"user","content":"one"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm hm","signature":"s"},{"type":"text","text":"two"}]},
		{"role":"user","content":[{"type":"text","text":"three four"}]},
		{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{"not counted":"at all"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"five six"}]}]}]}`
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Name: "last", Match: scripted.Match{Text: "^five six$"}}}})
	require.Equal(t, 200, ask(t, s, messages, body).status)
	call := only(t, s)
	require.Equal(t, "last", call.Rule)
	require.Equal(t, 8, call.InputTokens, "words of all text, no JSON")
}

func TestCountsAreExactForConcurrentCallsOfEveryFate(t *testing.T) {
	plan := func(do scripted.Action) scripted.Plan {
		return scripted.Plan{Reply: deltas(20), Steps: []scripted.Step{{At: scripted.AfterDelta(10), Do: do}}}
	}
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{
		{Match: scripted.Match{Key: "^0"}, Plan: scripted.Plan{Reply: deltas(20)}},
		{Match: scripted.Match{Key: "^1"}, Plan: plan(scripted.DoReset)},
		{Match: scripted.Match{Key: "^2"}, Plan: plan(scripted.DoClose)},
		{Match: scripted.Match{Key: "^3"}, Plan: plan(scripted.DoErrorEvent)},
		{Match: scripted.Match{Key: "^4"}, Plan: scripted.Plan{Steps: []scripted.Step{{At: "request_read", Do: "status", Status: 500}}}},
	}})
	const calls = 200
	var asking sync.WaitGroup
	for i := range calls {
		v := vendors[i%2]
		asking.Go(func() { _, _ = dial(t, s).post(v.path, v.body, fmt.Sprintf("Idempotency-Key: %d-%d", i%5, i)).all() })
	}
	asking.Wait()
	require.NoError(t, s.WaitFinished(limit(t), calls))
	counts := s.Counts()
	require.Equal(t, calls, counts.Connections)
	require.Equal(t, calls, counts.Requests)
	require.Equal(t, calls*4/5, counts.Generations)
	require.Equal(t, calls*4/5*wordsSent, counts.InputTokens)
	require.Equal(t, calls/5*(20+20+20+10), counts.OutputTokens)
	require.Zero(t, counts.Running)
	sent := map[scripted.End]int{}
	for _, call := range s.Calls() {
		sent[call.End] += call.DeltasSent
	}
	require.Equal(t, map[scripted.End]int{
		scripted.EndFinished: calls / 5 * (20 + 10), scripted.EndReset: calls / 5 * 10, scripted.EndClosed: calls / 5 * 10,
		scripted.EndStatus: 0,
	}, sent)
}

func TestABadRequestIsRefusedInTheVendorsShape(t *testing.T) {
	for body, problem := range map[string]string{
		`{`: "JSON",
		`{"max_tokens":1,"messages":[{"role":"user","content":"x"}]}`:                 "model",
		`{"model":"demo","max_tokens":1,"messages":[]}`:                               "messages",
		`{"model":"demo","max_tokens":1,"messages":[{"role":"robot","content":"x"}]}`: "role",
	} {
		eachVendor(t, func(t *testing.T, v vendor) {
			s := scripted.Start(t, scripted.Script{})
			got := ask(t, s, v.path, body)
			require.Equal(t, 400, got.status)
			require.Equal(t, "invalid_request_error", at(t, got.body, "error", "type"))
			require.Contains(t, at(t, got.body, "error", "message"), problem)
			require.Equal(t, 400, only(t, s).Status)
			require.Zero(t, s.Counts().Generations)
		})
	}
	s := scripted.Start(t, scripted.Script{})
	got := ask(t, s, messages, `{"model":"demo","messages":[{"role":"user","content":"x"}]}`)
	require.Contains(t, at(t, got.body, "error", "message"), "max_tokens")
}

func TestABodyPastTheLimitIsTooLarge(t *testing.T) {
	s := scripted.Start(t, scripted.Script{})
	l := dial(t, s)
	_, err := fmt.Fprintf(l, "POST /v1/messages HTTP/1.1\r\nHost: s\r\nContent-Length: %d\r\n\r\n", 33<<20)
	require.NoError(t, err)
	chunk := make([]byte, 1<<20)
	for range 33 {
		if _, err := l.Write(chunk); err != nil {
			break // the answer came first
		}
	}
	got := parse(t, l)
	require.Equal(t, 413, got.status)
	require.Equal(t, "request_too_large", at(t, got.body, "error", "type"))
	require.Zero(t, s.Counts().Requests)
}

func TestOtherPathsAndMethodsAreUnknown(t *testing.T) {
	s := scripted.Start(t, scripted.Script{})
	require.Equal(t, 404, ask(t, s, "/v1/nothing", "{}").status)
	l := dial(t, s)
	_, err := l.Write([]byte("GET /v1/messages HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n"))
	require.NoError(t, err)
	require.Equal(t, 405, parse(t, l).status)
}

func TestTheHandlerServesBehindAnotherServer(t *testing.T) {
	s := scripted.New(scripted.Script{Rules: []scripted.Rule{
		{Times: 1, Plan: one(scripted.Step{At: scripted.AfterDelta(3), Do: scripted.DoReset})},
		{Plan: scripted.Plan{Reply: deltas(2)}},
	}}, scripted.Options{})
	other := httptest.NewServer(s.Handler())
	defer other.Close()
	defer func() { require.NoError(t, s.Close(limit(t))) }()
	require.Empty(t, s.URL())
	reach := func() line {
		conn, err := net.Dial("tcp", other.Listener.Addr().String())
		require.NoError(t, err)
		return line{conn.(*net.TCPConn), t}
	}
	_, err := reach().post(messages, anthropicBody).all()
	require.Error(t, err)
	require.Contains(t, parse(t, reach().post(messages, anthropicBody)).body, "message_stop")
}

func TestAClosedServerServesNoMore(t *testing.T) {
	s := scripted.New(scripted.Script{}, scripted.Options{})
	require.NoError(t, s.Close(limit(t)))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, s.Serve(l))
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestCloseCutsHeldCallsAndLeavesNothingBehind(t *testing.T) {
	s := start(t, scripted.Plan{Reply: deltas(10), Steps: []scripted.Step{
		{At: scripted.AfterDelta(2), Do: scripted.DoWait, Gate: "never"},
	}})
	l := dial(t, s).post(messages, anthropicBody)
	require.NoError(t, s.WaitGate(limit(t), "never", 1))
	require.NoError(t, s.Close(limit(t)))
	raw, _ := l.all()
	require.Equal(t, 2, strings.Count(raw, "text_delta"))
	require.NotContains(t, raw, "\r\n0\r\n", "the body was not completed")
}

func TestAnInvalidScriptIsAMistakeOfTheProgram(t *testing.T) {
	bad := scripted.Script{Rules: []scripted.Rule{{Times: -1}}}
	require.Panics(t, func() { scripted.New(bad, scripted.Options{}) })
	s := scripted.Start(t, scripted.Script{})
	require.Error(t, s.SetScript(bad))
}

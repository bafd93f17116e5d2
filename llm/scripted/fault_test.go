package scripted_test

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

// one plan has one step, in a reply of ten deltas.
func one(step scripted.Step) scripted.Plan {
	return scripted.Plan{Reply: deltas(10), Steps: []scripted.Step{step}}
}

// generated waits until the call has produced its whole reply, whatever its client saw of it.
func generated(t *testing.T, s *scripted.Server) {
	call := only(t, s)
	require.Equal(t, 10, call.DeltasGenerated, "a connection that fails does not end the generation")
	require.Equal(t, 10, call.OutputTokens)
	require.Equal(t, 10, s.Counts().OutputTokens)
	require.Zero(t, s.Counts().Running)
}

func TestAResetIsSeenAsAResetAtEveryPoint(t *testing.T) {
	for _, test := range []struct {
		at                     scripted.Point
		generations, sent      int
		headers, lastDelta, ok bool
	}{
		{at: scripted.AtRequestRead},
		{at: scripted.AtBeforeHeaders, generations: 1},
		{at: scripted.AtAfterHeaders, generations: 1, headers: true},
		{at: scripted.AfterDelta(0), generations: 1, headers: true},
		{at: scripted.AfterDelta(7), generations: 1, sent: 7, headers: true},
		{at: scripted.AtBeforeTerminal, generations: 1, sent: 10, headers: true},
		{at: scripted.AtAfterTerminal, generations: 1, sent: 10, headers: true, ok: true},
	} {
		t.Run(string(test.at), func(t *testing.T) {
			eachVendor(t, func(t *testing.T, v vendor) {
				s := start(t, one(scripted.Step{At: test.at, Do: scripted.DoReset}))
				raw, err := dial(t, s).post(v.path, v.body).all()
				require.ErrorIs(t, err, syscall.ECONNRESET)
				require.Equal(t, test.headers, strings.HasPrefix(raw, "HTTP/1.1 200 OK\r\n"))
				require.Equal(t, test.ok, strings.Contains(raw, v.terminal))

				call := only(t, s)
				require.Equal(t, scripted.EndReset, call.End)
				require.Equal(t, test.sent, call.DeltasSent)
				require.Nil(t, call.ClientGoneAt)
				require.Equal(t, 1, s.Counts().Requests)
				require.Equal(t, test.generations, s.Counts().Generations)
				require.Equal(t, test.generations*10, call.DeltasGenerated)
			})
		})
	}
}

func TestACloseEndsABodyInGoodOrderWithoutItsTerminalEvent(t *testing.T) {
	for _, at := range []scripted.Point{scripted.AtAfterHeaders, scripted.AfterDelta(7), scripted.AtBeforeTerminal} {
		t.Run(string(at), func(t *testing.T) {
			eachVendor(t, func(t *testing.T, v vendor) {
				s := start(t, one(scripted.Step{At: at, Do: scripted.DoClose}))
				got := ask(t, s, v.path, v.body)
				require.NoError(t, got.err, "to HTTP the body is complete")
				require.NotContains(t, got.body, v.terminal)
				require.Equal(t, scripted.EndClosed, only(t, s).End)
				generated(t, s)
			})
		})
	}
}

func TestACloseBeforeTheHeadersIsAnEmptyAnswer(t *testing.T) {
	for at, generations := range map[scripted.Point]int{scripted.AtRequestRead: 0, scripted.AtBeforeHeaders: 1} {
		s := start(t, one(scripted.Step{At: at, Do: scripted.DoClose}))
		raw, err := dial(t, s).post(messages, anthropicBody).all()
		require.NoError(t, err)
		require.Empty(t, raw)
		require.Equal(t, scripted.EndClosed, only(t, s).End)
		require.Equal(t, generations, s.Counts().Generations)
	}
}

func TestSilenceSaysNothingUntilTheClientLeaves(t *testing.T) {
	for at, sent := range map[scripted.Point]int{
		scripted.AtBeforeHeaders: 0, scripted.AtAfterHeaders: 0, scripted.AfterDelta(3): 3,
	} {
		t.Run(string(at), func(t *testing.T) {
			plan := one(scripted.Step{At: at, Do: scripted.DoSilence})
			plan.Steps = append(plan.Steps, scripted.Step{At: scripted.AtBeforeTerminal, Do: scripted.DoWait, Gate: "end"})
			s := start(t, plan)
			l := dial(t, s).post(messages, anthropicBody)
			require.NoError(t, s.WaitGate(limit(t), "end", 1), "the generation goes on behind the silence")
			require.NoError(t, s.OpenGate("end"))
			require.Equal(t, scripted.EndRunning, s.Calls()[0].End)
			require.NoError(t, l.CloseWrite())
			raw, err := l.all()
			require.NoError(t, err)
			require.NotContains(t, raw, "message_stop")
			require.Equal(t, sent, strings.Count(raw, "text_delta"))

			call := only(t, s)
			require.Equal(t, sent, call.DeltasSent)
			require.Equal(t, scripted.EndClientGone, call.End)
			require.NotNil(t, call.ClientGoneAt)
			generated(t, s)
		})
	}
}

func TestAStatusHasTheVendorsBodyAndTheScriptsHeaders(t *testing.T) {
	for _, test := range []struct {
		status                 int
		kind                   string
		anthropic, openai      string
		anthropicCode, codeNow any
	}{
		{status: 429, anthropic: "rate_limit_error", openai: "requests", codeNow: "rate_limit_exceeded"},
		{status: 529, kind: "overloaded_error", anthropic: "overloaded_error", openai: "overloaded_error"},
		{status: 429, kind: "insufficient_quota", anthropic: "insufficient_quota", openai: "insufficient_quota",
			codeNow: "insufficient_quota"},
		{status: 502, anthropic: "api_error", openai: "server_error"},
		{status: 418, anthropic: "invalid_request_error", openai: "invalid_request_error"},
	} {
		s := start(t, one(scripted.Step{
			At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: test.status, Error: test.kind,
			Headers: map[string]string{"retry-after": "30"},
		}))
		got := ask(t, s, messages, anthropicBody)
		require.Equal(t, test.status, got.status)
		require.Equal(t, "30", got.header.Get("Retry-After"))
		require.Equal(t, "error", at(t, got.body, "type"))
		require.Equal(t, test.anthropic, at(t, got.body, "error", "type"))
		require.Equal(t, got.header.Get("Request-Id"), at(t, got.body, "request_id"))

		got = ask(t, s, completions, openaiBody)
		require.Equal(t, test.status, got.status)
		require.Equal(t, test.openai, at(t, got.body, "error", "type"))
		require.Equal(t, test.codeNow, at(t, got.body, "error", "code"))

		require.NoError(t, s.WaitFinished(limit(t), 2))
		require.Equal(t, scripted.EndStatus, s.Calls()[0].End)
		require.Equal(t, test.status, s.Calls()[0].Status)
		require.Zero(t, s.Counts().Generations)
		require.Zero(t, s.Counts().InputTokens)
	}
}

func TestAStatusAfterTheGenerationBeganIsBilledAllTheSame(t *testing.T) {
	s := start(t, one(scripted.Step{At: scripted.AtBeforeHeaders, Do: scripted.DoStatus, Status: 504}))
	require.Equal(t, 504, ask(t, s, messages, anthropicBody).status)
	require.Equal(t, scripted.EndStatus, only(t, s).End)
	generated(t, s)
}

func TestAnErrorEventEndsTheGeneration(t *testing.T) {
	for _, n := range []int{0, 4} {
		eachVendor(t, func(t *testing.T, v vendor) {
			s := start(t, one(scripted.Step{At: scripted.AfterDelta(n), Do: scripted.DoErrorEvent, Error: "overloaded_error"}))
			got := ask(t, s, v.path, v.body)
			require.NoError(t, got.err)
			require.Equal(t, 200, got.status)
			require.NotContains(t, got.body, v.terminal)
			all := events(t, got.body)
			last := all[len(all)-1]
			require.Equal(t, "overloaded_error", at(t, last.data, "error", "type"))
			if v.path == messages {
				require.Equal(t, "error", last.name)
			}
			call := only(t, s)
			require.Equal(t, scripted.EndFinished, call.End)
			require.Equal(t, n, call.DeltasGenerated)
			require.Equal(t, n, s.Counts().OutputTokens)
			require.False(t, call.UsageReported)
		})
	}
}

func TestAnErrorEventIsAStatusWhenTheAnswerIsNotStreamed(t *testing.T) {
	s := start(t, one(scripted.Step{At: scripted.AfterDelta(4), Do: scripted.DoErrorEvent, Error: "overloaded_error"}))
	require.Equal(t, 529, ask(t, s, messages, whole(anthropicBody)).status)
	require.Equal(t, 503, ask(t, s, completions, whole(openaiBody)).status)
	require.NoError(t, s.WaitFinished(limit(t), 2))
	require.Zero(t, s.Calls()[0].DeltasSent)
}

func TestGarbageAndCommentsLieBetweenTheEvents(t *testing.T) {
	for do, mark := range map[scripted.Action]string{
		scripted.DoGarbage: "data: {\"garbage\": \xff\xfe\n\n",
		scripted.DoComment: ": scripted\n\n",
	} {
		eachVendor(t, func(t *testing.T, v vendor) {
			mark := mark
			if do == scripted.DoGarbage && v.path == messages {
				mark = "event: content_block_delta\n" + mark
			}
			s := start(t, one(scripted.Step{At: scripted.AfterDelta(4), Do: do}))
			got := ask(t, s, v.path, v.body)
			before, after, found := strings.Cut(got.body, mark)
			require.True(t, found)
			require.Len(t, said(t, before), 4*8)
			require.Len(t, said(t, after), 6*8)
			require.Contains(t, after, v.terminal)
			require.Equal(t, 10, only(t, s).DeltasSent)
		})
	}
}

func TestNoiseInAnAnswerNotStreamedIsGarbageOrNothing(t *testing.T) {
	for do, isJSON := range map[scripted.Action]bool{scripted.DoComment: true, scripted.DoGarbage: false} {
		eachVendor(t, func(t *testing.T, v vendor) {
			s := start(t, one(scripted.Step{At: scripted.AfterDelta(4), Do: do}))
			got := ask(t, s, v.path, whole(v.body))
			require.NoError(t, got.err)
			require.Equal(t, 200, only(t, s).Status)
			require.Equal(t, isJSON, json.Valid([]byte(got.body)))
		})
	}
}

func TestGarbageBeforeTheHeadersIsNotHTTP(t *testing.T) {
	s := start(t, one(scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoGarbage}))
	raw, err := dial(t, s).post(messages, anthropicBody).all()
	require.NoError(t, err)
	require.Contains(t, raw, "not HTTP")
	require.False(t, strings.HasPrefix(raw, "HTTP"))
}

func TestAnEndlessLineGoesOnUntilTheClientLeaves(t *testing.T) {
	s := start(t, one(scripted.Step{At: scripted.AfterDelta(2), Do: scripted.DoEndless}))
	l := dial(t, s).post(messages, anthropicBody)
	const much = 3 << 20
	var raw strings.Builder
	_, err := io.CopyN(&raw, l, much)
	require.NoError(t, err)
	_, after, found := strings.Cut(raw.String(), "data: xxx")
	require.True(t, found)
	require.NotContains(t, after, "\n\n")
	require.NoError(t, l.Close())
	require.Equal(t, scripted.EndClientGone, only(t, s).End)
	require.Equal(t, 2, s.Calls()[0].DeltasSent)
}

func TestATerminalEventCanComeTwice(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		s := start(t, one(scripted.Step{At: scripted.AtAfterTerminal, Do: scripted.DoRepeatTerminal}))
		got := ask(t, s, v.path, v.body)
		all := events(t, got.body)
		require.Equal(t, all[len(all)-2], all[len(all)-1])
		require.Contains(t, all[len(all)-1].data, v.terminal)
		require.Equal(t, scripted.EndFinished, only(t, s).End)
	})
}

func TestAConnectionCanStayOpenAfterTheTerminalEvent(t *testing.T) {
	s := start(t, one(scripted.Step{At: scripted.AtAfterTerminal, Do: scripted.DoKeepOpen}))
	l := dial(t, s).post(messages, anthropicBody)
	lines := bufio.NewScanner(l)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), `data: {"type":"message_stop"`) {
	}
	require.NoError(t, lines.Err())
	require.Equal(t, scripted.EndRunning, s.Calls()[0].End)
	require.Zero(t, s.Counts().Running, "the generation is over when its terminal event can be read")
	require.NoError(t, l.CloseWrite())
	require.Equal(t, scripted.EndFinished, only(t, s).End)
}

func TestAFaultInOnceModeComesAfterWhatWasHeld(t *testing.T) {
	plan := one(scripted.Step{At: scripted.AfterDelta(6), Do: scripted.DoReset})
	plan.Write = scripted.WriteOnce
	s := start(t, plan)
	raw, err := dial(t, s).post(messages, anthropicBody).all()
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.Equal(t, 6, strings.Count(raw, "text_delta"))
	require.Equal(t, 6, only(t, s).DeltasSent)
}

func TestAFaultInAnAnswerNotStreamedSendsNoDeltas(t *testing.T) {
	s := start(t, one(scripted.Step{At: scripted.AfterDelta(6), Do: scripted.DoClose}))
	got := ask(t, s, messages, whole(anthropicBody))
	require.Equal(t, 200, got.status)
	require.Empty(t, got.body)
	require.Zero(t, only(t, s).DeltasSent)
	generated(t, s)
}

func TestAnAcceptFaultTakesConnectionsAndSparesTheControlAPI(t *testing.T) {
	for do, want := range map[scripted.Action]error{scripted.DoReset: syscall.ECONNRESET, scripted.DoClose: nil} {
		s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{
			{Times: 1, Plan: scripted.Plan{Steps: []scripted.Step{{At: scripted.AtAccept, Do: do}}}},
			{Plan: scripted.Plan{Reply: deltas(1)}},
		}})
		status, _ := control(t, s, "GET", "counts", "")
		require.Equal(t, 200, status)
		raw, err := dial(t, s).post(messages, anthropicBody).all()
		require.ErrorIs(t, err, want)
		require.Empty(t, raw)
		require.Equal(t, 200, ask(t, s, messages, anthropicBody).status)
		require.NoError(t, s.WaitFinished(limit(t), 1))
		counts := s.Counts()
		require.Equal(t, 2, counts.Connections, "the control connection is not counted")
		require.Equal(t, 1, counts.Requests, "what was never read is no request")
	}
}

func TestAnAcceptGateAndSilenceHoldAConnection(t *testing.T) {
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{
		{Match: scripted.Match{Nth: 1}, Plan: scripted.Plan{Steps: []scripted.Step{{At: "accept", Do: "wait", Gate: "door"}}}},
		{Match: scripted.Match{Nth: 2}, Plan: scripted.Plan{Steps: []scripted.Step{
			{At: "accept", Do: "wait", Gate: "door"}, {At: "accept", Do: "silence"},
		}}},
	}})
	held := dial(t, s).post(messages, anthropicBody)
	require.NoError(t, s.WaitGate(limit(t), "door", 1))
	silent := dial(t, s).post(messages, anthropicBody)
	require.NoError(t, s.WaitGate(limit(t), "door", 2))
	require.Zero(t, s.Counts().Requests)
	require.NoError(t, s.OpenGate("door"))
	require.Equal(t, 200, parse(t, held).status)
	require.NoError(t, silent.CloseWrite())
	raw, err := silent.all()
	require.NoError(t, err)
	require.Empty(t, raw)
	require.Equal(t, 1, s.Counts().Requests)
}

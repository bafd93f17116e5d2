package casetest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

const (
	ambiguous     = turnsv1.AbandonReason_ABANDON_REASON_AMBIGUOUS
	providerError = turnsv1.AbandonReason_ABANDON_REASON_PROVIDER_ERROR
	sameIDNow     = turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_NOW
	sameIDAfter   = turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_AFTER_WAIT
)

// onEachWire plays a case on both engines and both wires.
func onEachWire(t *testing.T, play func(t *testing.T, w *world, model string)) {
	for _, model := range []string{"anthropic", "openai"} {
		t.Run(model, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) { play(t, w, model) })
		})
	}
}

func askOf(model string) *turnsv1.TurnInput {
	in := ask(newID(), newID(), "hi")
	in.Options = &turnsv1.GenerationOptions{Model: model}
	return in
}

func TestC05AConnectionLostAfterTheRequestIsAnAnswerAndNoSilentSecondRequest(t *testing.T) {
	for name, step := range map[string]scripted.Step{
		"before the headers":    {At: scripted.AtBeforeHeaders, Do: scripted.DoReset},
		"closed before headers": {At: scripted.AtBeforeHeaders, Do: scripted.DoClose},
		"after some text":       {At: scripted.AfterDelta(20), Do: scripted.DoReset},
		"a clean end too early": {At: scripted.AfterDelta(20), Do: scripted.DoClose},
		"all but the terminal":  {At: scripted.AtBeforeTerminal, Do: scripted.DoClose},
	} {
		t.Run(name, func(t *testing.T) {
			onEachWire(t, func(t *testing.T, w *world, model string) {
				s := w.serve()
				w.script(failing(1, step), plain(16))
				in := askOf(model)
				got := s.turn(in, nil).abandons(ambiguous)
				require.Equal(t, sameIDNow, got.abandoned.GetAdvice())
				require.Equal(t, got.offset, got.abandoned.GetPartialLength())
				w.paid(1, 1)
				w.stands(map[string]int{qOpen: 0, qLive: 0, `SELECT count(*) FROM provider_calls WHERE class = 'ambiguous' AND token_source = 'estimated' AND wasted_tokens > 0`: 1})
				again := s.turn(in, nil).completes() // the deliberate retry
				require.Equal(t, retried, again.result)
				w.paid(2, 2)
			})
		})
	}
}

func TestC05AFailureToConnectIsTriedAgainByItself(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		var dials atomic.Int32
		w.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if dials.Add(1) <= 2 {
				return nil, errors.New("connection refused")
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
		s := w.serve()
		got := s.turn(askOf(model), nil).completes()
		require.Equal(t, isNew, got.result)
		w.paid(1, 1)
		w.stands(map[string]int{qLedger: 3, `SELECT count(*) FROM provider_calls WHERE class = 'not_sent' AND input_tokens = 0`: 2})
	})
}

func TestC50AnErrorEventBeforeContentIsTriedAgainAndAfterItTheReplyIsPartial(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		overloaded := func(at scripted.Point) scripted.Rule {
			return failing(1, scripted.Step{At: at, Do: scripted.DoErrorEvent, Error: "overloaded_error"})
		}
		w.script(overloaded(scripted.AtAfterHeaders), plain(16))
		got := s.turn(askOf(model), nil).completes()
		require.Len(t, got.text, 16*16, "what was shown is one attempt's text")
		w.paid(2, 2)
		w.stands(map[string]int{qReplies: 1, qLedger: 2, `SELECT count(*) FROM provider_calls WHERE output_tokens > 0`: 1})

		w.script(overloaded(scripted.AfterDelta(50)), plain(16))
		in := askOf(model)
		partial := s.turn(in, nil).abandons(providerError)
		require.Equal(t, "overloaded_error", partial.abandoned.GetProviderCode())
		require.Equal(t, uint32(1+50*16), partial.abandoned.GetPartialLength())
		kept := s.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[0]
		require.Equal(t, partial.text, stored(kept), "the partial is kept for display")
	})
}

func TestC51AnErrorEventIsNeverStoredAsContent(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		w.settings.MaxCalls = 1
		s := w.serve()
		for _, at := range []scripted.Point{scripted.AtAfterHeaders, scripted.AfterDelta(3)} {
			w.script(failing(0, scripted.Step{At: at, Do: scripted.DoErrorEvent, Error: "overloaded_error"}))
			in := askOf(model)
			got := s.turn(in, nil).abandons(providerError)
			kept := s.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[0]
			require.Equal(t, got.text, stored(kept))
			require.NotContains(t, stored(kept), "overloaded")
			require.NotContains(t, stored(kept), "error")
		}
	})
}

func TestC56ARetryAfterIsWaitedForInAllItsForms(t *testing.T) {
	for name, hint := range map[string]func() (map[string]string, time.Duration){
		"milliseconds": func() (map[string]string, time.Duration) {
			return map[string]string{"retry-after-ms": "400"}, 400 * time.Millisecond
		},
		"seconds": func() (map[string]string, time.Duration) {
			return map[string]string{"retry-after": "1"}, time.Second
		},
		"a date": func() (map[string]string, time.Duration) {
			return map[string]string{"retry-after": time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat)}, time.Second
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := sqliteWorld(t)
			s := w.serve()
			headers, least := hint()
			w.script(failing(1, scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 429, Error: "rate_limit_error", Headers: headers}), plain(4))
			s.turn(askOf("anthropic"), nil).completes()
			calls := w.provider.Calls()
			require.Len(t, calls, 2)
			require.GreaterOrEqual(t, calls[1].AcceptedAt.Sub(*calls[0].EndedAt), least-50*time.Millisecond)
		})
	}
}

func TestC56AWaitPastTheTurnsPatienceFailsAtOnceAndSaysHowLong(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(failing(0, scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 429, Error: "rate_limit_error",
			Headers: map[string]string{"retry-after": "3600"}}))
		in := askOf(model)
		got := s.turn(in, nil).abandons(providerError)
		require.Equal(t, sameIDAfter, got.abandoned.GetAdvice())
		require.InDelta(t, 3600, got.abandoned.GetRetryDelay().AsDuration().Seconds(), 5)
		again := s.turn(in, nil).abandons(providerError) // sent too early: the provider is left in peace
		require.Equal(t, replayed, again.result)
		w.paid(1, 0)
	})
}

func TestC71ACallerThatIsGoneCostsNothingOnTheLedger(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(gate("", "half", 64, 32))
		ctx, cancel := context.WithCancel(w.ctx)
		_, err := s.turns.SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: askOf(model)})
		require.NoError(t, err)
		require.NoError(t, w.provider.WaitGate(w.ctx, "half", 1))
		cancel()
		require.NoError(t, w.provider.OpenGate("half"))
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		c := w.provider.Counts()
		require.Equal(t, 64, c.OutputTokens)
		w.stands(map[string]int{qReported: c.InputTokens + c.OutputTokens, qWasted: 0, qLive: 1})
	})
}

func TestARefusalOfTheRequestIsFinalAndSaidSo(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(failing(0, scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 401, Error: "authentication_error"}))
		in := askOf(model)
		got := s.turn(in, nil).abandons(turnsv1.AbandonReason_ABANDON_REASON_PROVIDER_REFUSED)
		require.Equal(t, turnsv1.RetryAdvice_RETRY_ADVICE_REGENERATE, got.abandoned.GetAdvice())
		require.Equal(t, replayed, s.turn(in, nil).abandons(turnsv1.AbandonReason_ABANDON_REASON_PROVIDER_REFUSED).result)
		w.paid(1, 0)
	})
}

func TestAnEmptyCompletionIsNoReply(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(scripted.Rule{Name: "empty", Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: 0}}})
		s.turn(askOf(model), nil).abandons(turnsv1.AbandonReason_ABANDON_REASON_EMPTY)
		w.paid(1, 1)
		w.stands(map[string]int{qLive: 0, qOpen: 0})
	})
}

func TestASilentProviderIsEndedByItsIdleLimit(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		w.limits.Idle, w.limits.FirstByte = time.Second, time.Second // the provider must have read the request by then
		s := w.serve()
		for _, at := range []scripted.Point{scripted.AtBeforeHeaders, scripted.AfterDelta(5)} {
			w.script(failing(1, scripted.Step{At: at, Do: scripted.DoSilence}))
			s.turn(askOf(model), nil).abandons(ambiguous)
		}
		w.paid(2, 2)
	})
}

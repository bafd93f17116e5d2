package casetest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/storetest"
)

const (
	// qListenable counts replies that another worker could listen to from their provider.
	qListenable = `SELECT count(*) FROM turns WHERE status = 'in_flight' AND log_len > 300 AND provider_response_id <> ''`
	qComplete   = `SELECT count(*) FROM turns WHERE role = 'assistant' AND status = 'complete'`
)

// refusedOnce is a rule by which the provider refuses once to tell what became of a call.
func refusedOnce() scripted.Rule {
	return scripted.Rule{Name: "refused", Times: 1, Match: scripted.Match{Ask: scripted.AskRetrieve}, Plan: scripted.Plan{
		Steps: []scripted.Step{{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 403}}}}
}

// lostBeforeItsHeaders makes a rule's first call one whose connection breaks before anything is heard of it.
func lostBeforeItsHeaders(r scripted.Rule) scripted.Rule {
	r.Times = 1
	r.Plan.Steps = []scripted.Step{{At: scripted.AtBeforeHeaders, Do: scripted.DoReset}}
	return r
}

// TestALookupOfACallThatWentOnFindsTheRestAndNotTheAnswerItWentOnFrom loses two calls of one generation, whose answers both
// are stored at the provider: the outcome of the first stays unknown, since the provider refuses to tell.
func TestALookupOfACallThatWentOnFindsTheRestAndNotTheAnswerItWentOnFrom(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(refusedOnce(), cutAt(20), lostBeforeItsHeaders(answering("THE REST")))
		in := askOf("stored")
		in.OnAmbiguous, in.OnPartial = retryPolicy, continuePolicy
		got := s.turn(in, nil).completes()
		require.True(t, got.restarted.GetContinues())
		require.Equal(t, "THE REST", got.text[20*16:])
		w.paid(2, 2)
		w.stands(map[string]int{qReplies: 2, qLive: 1, qLedger: 2, qOpen: 0})
	})
}

func TestALookupOfALaterAttemptFindsItsOwnAnswerAndBooksThat(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(refusedOnce(), cutAt(20), lostBeforeItsHeaders(plain(500)))
		in := askOf("stored")
		in.OnAmbiguous = retryPolicy
		require.Len(t, s.turn(in, nil).completes().text, 500*16)
		w.paid(2, 2)
		w.stands(map[string]int{qReplies: 2, qLive: 1, qLedger: 2, qOpen: 0, qClosed: 1,
			`SELECT count(*) FROM provider_calls WHERE class = 'ok' AND token_source = 'reported' AND output_tokens = 500`: 1})
	})
}

func TestACallThatIsSentAgainUnderItsKeyIsNotGivenToAnotherEntryOfItsRoute(t *testing.T) {
	for name, at := range map[string]scripted.Point{"after some text": scripted.AfterDelta(20), "before the headers": scripted.AtBeforeHeaders} {
		t.Run(name, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) {
				w.enforcing(ofOne(failing(1, scripted.Step{At: at, Do: scripted.DoReset})),
					ofOne(failing(1, scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 529, Error: "overloaded_error"})),
					plain(16))
				s := w.serve()
				got := s.turn(askOf("either"), nil).completes()
				require.Nil(t, got.restarted)
				require.Len(t, got.text, 64*16)
				w.paid(3, 1)
				c := w.provider.Counts()
				w.stands(map[string]int{qReplies: 1, qLive: 1, qLedger: 3, qOpen: 0, qWasted: 0, qReported: c.InputTokens + c.OutputTokens,
					`SELECT count(*) FROM provider_calls WHERE endpoint = 'one'`: 3})
			})
		})
	}
}

func TestAFailedCallCostsWhatItsOwnEndpointTakes(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.prices, w.pricesOfTwo = turns.Prices{Input: 3, Output: 15}, turns.Prices{Input: 1000, Output: 1000}
		s := w.serve()
		w.script(ofOne(failing(1, overloaded(scripted.AfterDelta(0)))), plain(16))
		s.turn(askOf("either"), nil).completes()
		w.paid(2, 2)
		w.stands(map[string]int{qLedger: 2, qOpen: 0,
			`SELECT count(*) FROM provider_calls WHERE endpoint = 'one' AND cost_micros = 3 * input_tokens + 15 * output_tokens AND cost_micros > 0`: 1,
			`SELECT count(*) FROM provider_calls WHERE endpoint = 'two' AND cost_micros = 1000 * (input_tokens + output_tokens)`:                     1})
		require.EqualValues(t, 1, w.counted("turnd.provider.calls", "provider", "anthropic"))
		require.EqualValues(t, 1, w.counted("turnd.provider.calls", "provider", "openai"))
	})
}

func TestACancelWhileAProviderIsAskedBooksWhatHadCome(t *testing.T) {
	asks := map[string]scripted.Ask{"stored": scripted.AskRetrieve, "background": scripted.AskResume}
	onEachAskable(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(scripted.Rule{Name: "ask hangs", Match: scripted.Match{Ask: asks[model]}, Plan: scripted.Plan{
			Steps: []scripted.Step{{At: scripted.AtRequestRead, Do: scripted.DoWait, Gate: "ask"}}}}, cutAt(20))
		in := askOf(model)
		running := s.turn(in, nil)
		running.at(1 + 19*16)
		require.NoError(t, w.provider.WaitGate(w.ctx, "ask", 1))
		require.Equal(t, cancelled, s.cancelTurn(in).GetAbandonReason())
		running.abandons(cancelled)
		w.stands(map[string]int{qLedger: 1, qOpen: 0,
			`SELECT count(*) FROM provider_calls WHERE class = 'cancelled' AND output_tokens > 0 AND wasted_tokens = input_tokens + output_tokens`: 1})
	}, "stored", "background")
}

func TestAStreamThatBreaksOffAgainIsGoneOnWithAgain(t *testing.T) {
	onEachAskable(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(scripted.Rule{Name: "again", Times: 2, Match: scripted.Match{Ask: scripted.AskResume}, Plan: scripted.Plan{
			Steps: []scripted.Step{{At: scripted.AfterDelta(40), Do: scripted.DoReset}}}}, cutAt(20))
		got := s.turn(askOf(model), nil).completes()
		require.Nil(t, got.restarted)
		require.Len(t, got.text, 64*16)
		w.paid(1, 1)
		w.once("1")
	}, "background")
}

// TestAReadThatFailsIsNoAnswerOfTheProvider has a log of which only the end is in memory when the answer is asked for, so
// that the beginning is read from the database, which fails once.
func TestAReadThatFailsIsNoAnswerOfTheProvider(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		long := failing(1, scripted.Step{At: scripted.AtBeforeTerminal, Do: scripted.DoWait, Gate: "end"},
			scripted.Step{At: scripted.AtBeforeTerminal, Do: scripted.DoReset})
		long.Plan.Reply = &scripted.Reply{Deltas: 200, DeltaBytes: 4096, Seed: 5}
		w.script(long, plain(16))
		in := askOf("stored")
		in.OnAmbiguous = retryPolicy
		running := s.turn(in, nil)
		running.at(1 + 200*4096)
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE log_len > 200 * 4096`) == 1 })
		faults.FailNext("ReadReply", turns.Unavailable(errors.New("away")))
		require.NoError(t, w.provider.OpenGate("end"))
		got := running.completes()
		require.Nil(t, got.restarted)
		require.Len(t, got.text, 200*4096)
		require.GreaterOrEqual(t, faults.Calls("ReadReply"), 2)
		w.paid(1, 1)
		w.once("1")
	})
}

func TestALateOwnerLeavesTheCallOpenThatItsSuccessorAsksFor(t *testing.T) {
	onEachAskable(t, func(t *testing.T, w *world, model string) {
		w.short()
		w.script(gate("", "mid", 64, 20))
		away, goAway, comeBack := w.wakes()
		other := w.serve()
		in := askOf(model)
		away.turn(in, nil).at(1 + 19*16)
		w.eventually(func() bool { return w.number(qListenable) == 1 })
		goAway()
		w.eventually(func() bool { return w.number(qEpochTwo) == 1 })
		comeBack()
		w.eventually(func() bool { return away.service.InFlight() == 0 })
		w.stands(map[string]int{qOpen: 1})
		require.NoError(t, w.provider.OpenGate("mid"))
		require.Len(t, other.turn(in, nil).completes().text, 64*16)
		w.paid(1, 1)
		w.once("2")
	}, "background")
}

func TestALateOwnerChangesNothingOfAReplyThatAPersonCompleted(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.script(gate("", "mid", 64, 20))
		away, goAway, comeBack := w.wakes()
		other := w.serve()
		in := ask(newID(), newID(), "hi")
		in.OnAmbiguous = holdPolicy
		away.turn(in, nil).at(1 + 19*16)
		goAway()
		w.eventually(func() bool { return w.number(qHeld) == 1 })
		r := other.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[0]
		byHand := stored(r) + " by hand"
		_, err := other.complete(r, byHand)
		require.NoError(t, err)
		comeBack()
		require.NoError(t, w.provider.OpenGate("mid"))
		w.eventually(func() bool { return away.service.InFlight() == 0 })
		w.quit(away)
		got := other.turn(in, nil).completes()
		require.Equal(t, replayed, got.result)
		require.Equal(t, byHand, got.text)
		w.paid(1, 1)
		w.stands(map[string]int{qReplies: 1, qComplete: 1, qLedger: 1, qOpen: 0})
	})
}

func TestAHeldReplyIsReleasedByItsLateOwnersKnownFailure(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.script(failing(0, scripted.Step{At: scripted.AfterDelta(20), Do: scripted.DoWait, Gate: "mid"},
			scripted.Step{At: scripted.AfterDelta(20), Do: scripted.DoErrorEvent, Error: "invalid_request_error"}))
		away, goAway, comeBack := w.wakes()
		other := w.serve()
		in := ask(newID(), newID(), "hi")
		in.OnAmbiguous = holdPolicy
		away.turn(in, nil).at(1 + 19*16)
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE log_len > 300`) == 1 })
		goAway()
		w.eventually(func() bool { return w.number(qHeld) == 1 })
		comeBack()
		require.NoError(t, w.provider.OpenGate("mid"))
		w.eventually(func() bool { return w.number(qHeld) == 0 })
		require.Equal(t, released, other.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[0].GetAbandonReason())
		w.paid(1, 1)
		w.stands(map[string]int{qReplies: 1, qLive: 0, qLedger: 1, qOpen: 0,
			`SELECT count(*) FROM provider_calls WHERE class = 'terminal' AND output_tokens > 0 AND wasted_tokens = input_tokens + output_tokens`: 1})
	})
}

func TestAHeldReplyWhoseCallFailedAfterSomeTextIsReleasedAndThatTextIsBooked(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.script(failing(0, scripted.Step{At: scripted.AfterDelta(20), Do: scripted.DoWait, Gate: "mid"},
			scripted.Step{At: scripted.AfterDelta(40), Do: scripted.DoErrorEvent, Error: "server_error"}))
		dying, die := w.cutOff()
		in := askOf("background")
		dying.turn(in, nil).at(1 + 19*16)
		w.eventually(func() bool { return w.number(qListenable) == 1 })
		die()
		w.lose(`UPDATE turns SET status = 'held', next_lookup_at = deadline_at WHERE status = 'in_flight'`)
		s := w.serve()
		require.NoError(t, w.provider.OpenGate("mid"))
		w.eventually(func() bool { return w.provider.Counts().Running == 0 })
		var response string
		require.NoError(t, w.db.QueryRowContext(w.ctx, `SELECT provider_response_id FROM turns WHERE status = 'held'`).Scan(&response))
		require.NoError(t, s.service.Wake(w.ctx, "background", response))
		w.eventually(func() bool { return w.number(qHeld) == 0 })
		require.Equal(t, released, s.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[0].GetAbandonReason())
		w.paid(1, 1)
		w.stands(map[string]int{qReplies: 1, qLive: 0, qLedger: 1, qOpen: 0,
			`SELECT count(*) FROM provider_calls WHERE waste_cause = 'held_released' AND output_tokens > 0 AND wasted_tokens = input_tokens + output_tokens`: 1})
	})
}

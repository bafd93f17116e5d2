package casetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

const (
	retryPolicy    = turnsv1.OnAmbiguous_ON_AMBIGUOUS_RETRY
	holdPolicy     = turnsv1.OnAmbiguous_ON_AMBIGUOUS_HOLD
	continuePolicy = turnsv1.OnPartial_ON_PARTIAL_CONTINUE
)

// cutAt resets the connection once, after so many deltas.
func cutAt(delta int) scripted.Rule {
	return failing(1, scripted.Step{At: scripted.AfterDelta(delta), Do: scripted.DoReset})
}

func TestC53AnotherCallAfterSomeTextIsAnotherReplyAndFollowersAreToldToStartOver(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(cutAt(20), plain(16))
		in := askOf(model)
		in.OnAmbiguous = retryPolicy
		got := s.turn(in, nil).completes()
		require.Equal(t, ambiguous, got.restarted.GetPreviousReason())
		require.False(t, got.restarted.GetContinues())
		require.NotEqual(t, got.restarted.GetPreviousReplyId(), got.reply)
		require.Len(t, got.text, 16*16, "one attempt's text alone")
		w.paid(2, 2)
		w.stands(map[string]int{qReplies: 2, qLive: 1, qLedger: 2, qOpen: 0,
			`SELECT count(*) FROM provider_calls WHERE class = 'ambiguous' AND token_source = 'estimated' AND waste_cause = 'ambiguous'`: 1,
			`SELECT count(*) FROM turns WHERE status = 'abandoned' AND reason = 'ambiguous' AND replaced_by IS NOT NULL`:                 1})
		old := s.follow(in.GetConversationId(), got.restarted.GetPreviousReplyId(), 0).completes()
		require.Equal(t, got.text, old.text, "who follows the old one is led to the new one")
		require.Equal(t, replayed, s.turn(in, nil).completes().result)
	})
}

func TestAnotherCallByPolicyIsWithinTheBudgetOfTheTurn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.MaxCalls = 3
		s := w.serve()
		w.script(failing(0, scripted.Step{At: scripted.AfterDelta(5), Do: scripted.DoReset}))
		in := ask(newID(), newID(), "hi")
		in.OnAmbiguous = retryPolicy
		s.turn(in, nil).abandons(ambiguous)
		w.paid(3, 3)
		w.stands(map[string]int{qReplies: 3, qLive: 0, qLedger: 3, qOpen: 0})
	})
}

func TestARetryPolicyGoesOnWithADeadWorkersReplyInItsPlace(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		first := gate("", "mid", 64, 20)
		first.Times = 1
		w.script(first, plain(16))
		dying, die := w.cutOff()
		other := w.serve()
		in := ask(newID(), newID(), "hi")
		in.OnAmbiguous = retryPolicy
		seen := dying.turn(in, nil).at(1 + 19*16)
		far := other.follow(in.GetConversationId(), seen.reply, 0)
		die()
		got := far.completes()
		require.NotNil(t, got.restarted)
		require.Len(t, got.text, 16*16)
		w.paid(2, 2)
		w.stands(map[string]int{qReplies: 2, qLive: 1, qLedger: 2, qOpen: 0})
	})
}

func TestAPartialReplyIsGoneOnWithWhereItWasCutOff(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(cutAt(20), plain(16))
		in := askOf(model)
		in.OnAmbiguous, in.OnPartial = retryPolicy, continuePolicy
		got := s.turn(in, nil).completes()
		require.True(t, got.restarted.GetContinues())
		require.Len(t, got.text, (20+16)*16, "what was shown stays, and the rest follows")
		r := s.read(in.GetConversationId(), in.GetTurnId()).GetReplies()
		require.Equal(t, got.text, stored(r[1]))
		require.Equal(t, got.text[:20*16], stored(r[0]))
		w.paid(2, 2)
		next := ask(in.GetConversationId(), newID(), "and then?")
		s.turn(next, nil).completes()
	})
}

func TestASendAgainOfATurnThatIsToBeContinuedGoesOnFromItsPartialReply(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(cutAt(20), plain(16))
		in := ask(newID(), newID(), "hi")
		in.OnPartial = continuePolicy
		s.turn(in, nil).abandons(ambiguous)
		require.Len(t, s.turn(in, nil).completes().text, (20+16)*16)
		w.paid(2, 2)
	})
}

func TestAHeldReplyKeepsItsSlotAndIsNotTriedAgain(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(cutAt(20), plain(16))
		in := askOf(model)
		in.OnAmbiguous = holdPolicy
		got := s.turn(in, nil).end()
		require.NoError(t, got.err)
		require.NotNil(t, got.held)
		again := s.turn(in, nil).end()
		require.Equal(t, replayed, again.result)
		require.NotNil(t, again.held)
		w.paid(1, 1)
		w.stands(map[string]int{qLive: 1, qLedger: 1, qOpen: 1, `SELECT count(*) FROM turns WHERE status = 'held'`: 1})
		s.turn(ask(in.GetConversationId(), newID(), "the next turn is not held up"), nil).completes()
	})
}

func TestADeadWorkersReplyIsHeldByPolicyAndItsLateOwnerFinishesIt(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.script(gate("", "mid", 64, 20))
		away, goAway, comeBack := w.wakes()
		w.serve()
		in := ask(newID(), newID(), "hi")
		in.OnAmbiguous = holdPolicy
		away.turn(in, nil).at(1 + 19*16)
		goAway()
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE status = 'held'`) == 1 })
		comeBack()
		require.NoError(t, w.provider.OpenGate("mid"))
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE status = 'complete'`) == 1 })
		w.paid(1, 1)
		w.once("1")
	})
}

func TestAHeldReplyOfAProviderThatCanBeAskedIsAdoptedOnceItsAnswerIsThere(t *testing.T) {
	onEachAskable(t, func(t *testing.T, w *world, model string) {
		w.short()
		w.script(gate("", "mid", 64, 20))
		dying, die := w.cutOff()
		in := askOf(model)
		in.OnAmbiguous = holdPolicy
		dying.turn(in, nil).at(1 + 19*16)
		w.eventually(func() bool { return w.number(qListenable) == 1 })
		die()
		other := w.serve()
		require.NoError(t, w.provider.OpenGate("mid"))
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE status = 'complete'`) == 1 })
		require.Len(t, other.turn(in, nil).completes().text, 64*16)
		w.paid(1, 1)
		w.stands(map[string]int{qReplies: 1, qLedger: 1, qOpen: 0, qWasted: 0})
	}, "stored", "background")
}

func TestC58AFailureInsideTheStreamBeforeContentFallsBackToTheNextEntry(t *testing.T) {
	for name, step := range map[string]scripted.Step{
		"C58 an error event": {At: scripted.AfterDelta(0), Do: scripted.DoErrorEvent, Error: "overloaded_error"},
		"C54 a status":       {At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 529, Error: "overloaded_error"},
	} {
		t.Run(name, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) {
				s := w.serve()
				rule := failing(0, step)
				rule.Match = scripted.Match{Wire: "anthropic.messages"}
				w.script(rule, plain(16))
				got := s.turn(askOf("either"), nil).completes()
				require.Nil(t, got.restarted)
				require.Len(t, got.text, 16*16)
				w.stands(map[string]int{qReplies: 1, qLive: 1, qLedger: 2, qOpen: 0,
					`SELECT count(DISTINCT idempotency_key) FROM provider_calls`:                                                  2,
					`SELECT count(*) FROM provider_calls WHERE endpoint = 'two' AND provider = 'openai' AND class = 'ok'`:         1,
					`SELECT count(*) FROM turns WHERE role = 'assistant' AND endpoint = 'two' AND attempt = 1 AND generation = 1`: 1})
			})
		})
	}
}

func TestC72EveryCallsTokensAndTheirPriceAreOnTheLedgerAndTheReplyHasTheirSum(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.prices = turns.Prices{Input: 3, Output: 15}
		s := w.serve()
		w.script(cutAt(20), plain(16))
		in := ask(newID(), newID(), "hi")
		in.OnAmbiguous = retryPolicy
		s.turn(in, nil).completes()
		w.stands(map[string]int{
			`SELECT count(*) FROM provider_calls WHERE cost_micros = 3 * input_tokens + 15 * output_tokens AND cost_micros > 0`: 2,
			`SELECT count(*) FROM provider_calls WHERE wasted_tokens = input_tokens + output_tokens AND NOT class = 'ok'`:       1,
		})
	})
}

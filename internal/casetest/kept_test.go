package casetest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

const qKept = `SELECT count(*) FROM provider_calls WHERE request_body IS NOT NULL`

func TestACallIsSentAgainWithTheBodyThatWasKeptOfItThoughItWouldBeBuiltOtherwiseToday(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		w.short()
		w.enforcing(gate("", "mid", 64, 20))
		dying, die := w.cutOff()
		in := askOf(model)
		dying.turn(in, nil).at(1 + 19*16)
		w.stands(map[string]int{qKept: 1})
		w.limits.MaxOutputTokens = 99 // another models file
		other := w.serve()
		die()
		w.eventually(func() bool { return w.number(qEpochTwo) == 1 })
		require.NoError(t, w.provider.OpenGate("mid"))
		other.turn(in, nil).completes()
		w.paid(2, 1)
		w.stands(map[string]int{qReplies: 1, qLedger: 2, qOpen: 0, qWasted: 0, qKept: 0})
	})
}

func TestAKeyThatWasSentUnderAnotherCredentialIsNotTakenAsEnforced(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.key = "sk-one"
		w.enforcing(gate("", "mid", 64, 20))
		dying, die := w.cutOff()
		in := ask(newID(), newID(), "hi")
		dying.turn(in, nil).at(1 + 19*16)
		w.key = "sk-two"
		w.serve()
		die()
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		w.paid(1, 1)
		w.stands(map[string]int{qLive: 0, qLedger: 1, qOpen: 0})
	})
}

func TestAnUnknownOutcomeIsRepeatedUnderTheSameKeyWhereTheEndpointEnforcesIt(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		cut := cutAt(20)
		w.enforcing(cut, plain(64))
		s := w.serve()
		got := s.turn(askOf(model), nil).completes()
		require.Nil(t, got.restarted)
		w.paid(2, 1)
		c := w.provider.Counts()
		w.stands(map[string]int{qReplies: 1, qLedger: 2, qOpen: 0, qWasted: 0, qTaken: 1, qReported: c.InputTokens + c.OutputTokens,
			`SELECT count(DISTINCT idempotency_key) FROM provider_calls`: 1})
	})
}

func TestAHeldPolicyTellsACallThatNeverLeftFromOneThatMayHave(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.script(plain(16))
		dying, faults := w.losing()
		arrived, open := faults.Gate("NoteCalls") // it dies between its claim and its call
		t.Cleanup(open)
		in := ask(newID(), newID(), "hi")
		in.OnAmbiguous = turnsv1.OnAmbiguous_ON_AMBIGUOUS_HOLD
		_, err := dying.submit(in)
		require.NoError(t, err)
		<-arrived
		w.stands(map[string]int{`SELECT count(*) FROM provider_calls WHERE submitted_at IS NULL`: 1})
		faults.Down(turns.Unavailable(errors.New("cut off")))
		other := w.serve()
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE status = 'complete'`) == 1 })
		require.Len(t, other.turn(in, nil).completes().text, 16*16)
		w.paid(1, 1)
		w.stands(map[string]int{qReplies: 1, qLedger: 2, qOpen: 0, qWasted: 0, qEpochTwo: 1,
			`SELECT count(*) FROM provider_calls WHERE class = 'not_sent'`: 1})
	})
}

func TestC07EveryLayerTogetherStaysWithinTheBudget(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(failing(0, scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 529, Error: "overloaded_error"}))
		in := askOf("either")
		in.OnAmbiguous = retryPolicy
		for range 4 { // a queue that delivers again
			s.turn(in, nil).abandons(providerError)
		}
		require.LessOrEqual(t, w.provider.Counts().Requests, 5)
	})
}

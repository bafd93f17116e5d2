package casetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/storetest"
)

const (
	qEpochTwo = `SELECT count(*) FROM turns WHERE role = 'assistant' AND epoch = 2`
	qTaken    = `SELECT count(*) FROM provider_calls WHERE class = 'ambiguous' AND input_tokens = 0 AND output_tokens = 0 AND wasted_tokens = 0`
)

// throttled is a rule that asks once to be left alone for a while.
func throttled() scripted.Rule {
	return failing(1, scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 429, Error: "rate_limit_error",
		Headers: map[string]string{"retry-after": "20"}})
}

// betweenCalls submits a turn whose first call is throttled, and waits until its reply is between two calls.
func (s *worker) betweenCalls(in *turnsv1.TurnInput) *turnsv1.SubmitTurnResponse {
	s.t.Helper()
	s.script(throttled(), plain(16))
	got, err := s.submit(in)
	require.NoError(s.t, err)
	s.eventually(func() bool { return s.number(qOpen) == 0 && s.number(qLedger) == 1 })
	return got
}

// enforcing makes endpoints that answer a key with one generation, and workers that know it.
func (w *world) enforcing(rules ...scripted.Rule) {
	w.caps = turns.Capabilities{Idempotency: turns.IdempotencyEnforced, Retention: time.Hour}
	require.NoError(w.t, w.provider.SetScript(scripted.Script{
		Endpoint: scripted.Endpoint{Idempotency: scripted.IdempotencyEnforce}, Rules: rules}))
}

func TestAReplyWhoseWorkerDiedBetweenTwoCallsIsFinishedByAnother(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		dying, die := w.cutOff()
		w.serve()
		dying.betweenCalls(ask(newID(), newID(), "nobody waits for it"))
		die()
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE status = 'complete'`) == 1 })
		w.paid(2, 1)
		w.stands(map[string]int{qReplies: 1, qLive: 1, qLedger: 2, qOpen: 0, qEpochTwo: 1, qWasted: 0})
	})
}

func TestATakeoverWithoutAnAnswerIsReadAgainAndNeverAssumed(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		dying, die := w.cutOff()
		faults := storetest.NewFaults(w.store())
		w.serveOn(faults)
		dying.betweenCalls(ask(newID(), newID(), "hi"))
		faults.LoseAnswer("TakeOver")
		die()
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE status = 'complete'`) == 1 })
		require.Equal(t, 2, faults.Calls("TakeOver"), "the same again, which makes the first definite")
		w.paid(2, 1)
		w.stands(map[string]int{qReplies: 1, qLedger: 2, qOpen: 0, qEpochTwo: 1})
	})
}

func TestADeliveryThatMeetsADeadWorkersReplyAttachesToItsNewOwner(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.settings.Sweep = time.Hour // nobody looks by himself: the one who asks does
		dying, die := w.cutOff()
		other := w.serve()
		in := ask(newID(), newID(), "hi")
		lost := dying.betweenCalls(in)
		die()
		w.eventually(func() bool { other.read(in.GetConversationId(), in.GetTurnId()); return w.number(qEpochTwo) == 1 })
		got := other.turn(in, nil).completes()
		require.NotEqual(t, retried, got.result)
		require.Equal(t, lost.GetReply().GetReplyId(), got.reply)
		w.paid(2, 1)
	})
}

func TestADeadWorkersCallIsSentAgainWhereTheEndpointEnforcesItsKey(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		w.short()
		w.enforcing(gate("", "mid", 64, 20))
		dying, die := w.cutOff()
		other := w.serve()
		in := askOf(model)
		seen := dying.turn(in, nil).at(1 + 19*16)
		far := other.follow(in.GetConversationId(), seen.reply, 0)
		far.at(1 + 19*16)
		die()
		w.eventually(func() bool { return w.number(qEpochTwo) == 1 })
		require.NoError(t, w.provider.OpenGate("mid"))
		got := far.completes()
		require.Equal(t, seen.reply, got.reply)
		require.Nil(t, got.restarted, "its followers see nothing of it")
		require.Equal(t, seen.text, got.text[:len(seen.text)])
		w.paid(2, 1)
		w.stands(map[string]int{qReplies: 1, qLive: 1, qLedger: 2, qOpen: 0, qTaken: 1, qWasted: 0,
			`SELECT count(DISTINCT idempotency_key) FROM provider_calls`: 1})
		c := w.provider.Counts()
		w.stands(map[string]int{qReported: c.InputTokens + c.OutputTokens}) // each token once
		require.Equal(t, got.text, other.turn(in, nil).completes().text)
	})
}

func TestARepeatedAnswerThatDiffersIsNeverShownUnderTheSameReply(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		first := gate("", "mid", 64, 20)
		first.Times = 1
		w.script(first, plain(64)) // it says that it enforces the key, and does not
		w.caps = turns.Capabilities{Idempotency: turns.IdempotencyEnforced, Retention: time.Hour}
		dying, die := w.cutOff()
		other := w.serve()
		in := ask(newID(), newID(), "hi")
		seen := dying.turn(in, nil).at(1 + 20*16) // all that was said before the gate
		far := other.follow(in.GetConversationId(), seen.reply, 0)
		far.at(1 + 20*16)
		die()
		got := far.abandons(ambiguous)
		require.Contains(t, seen.text, got.text, "nothing of the other answer")
		w.paid(2, 2)
		w.stands(map[string]int{qLive: 0, qOpen: 0, qEpochTwo: 1})
	})
}

func TestACallThatIsSentAgainAndNeverAnsweredIsOnTheLedgerByEstimate(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		refused := failing(9, scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 401, Error: "authentication_error"})
		first := gate("", "mid", 64, 20)
		first.Times = 1
		w.enforcing(first)
		dying, die := w.cutOff()
		w.serve()
		dying.turn(ask(newID(), newID(), "hi"), nil).at(1 + 19*16)
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE log_len > 300`) == 1 })
		w.script(refused) // as when the key of the endpoint is revoked meanwhile
		die()
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE reason = 'provider_refused'`) == 1 })
		w.stands(map[string]int{qLedger: 2, qOpen: 0, qEpochTwo: 1,
			`SELECT count(*) FROM provider_calls WHERE token_source = 'estimated' AND output_tokens > 0 AND wasted_tokens = input_tokens + output_tokens`: 1})
	})
}

func TestACallWhoseKeyIsForgottenByNowIsNotSentAgain(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.enforcing(gate("", "mid", 64, 20))
		w.caps.Retention = time.Millisecond
		dying, die := w.cutOff()
		other := w.serve()
		in := ask(newID(), newID(), "hi")
		seen := dying.turn(in, nil).at(1 + 19*16)
		die()
		other.follow(in.GetConversationId(), seen.reply, 0).abandons(turnsv1.AbandonReason_ABANDON_REASON_LEASE_EXPIRED)
		w.paid(1, 1)
	})
}

// buries lets the only worker find itself declared dead while it makes a reply, and waits until it has a new id.
func (w *world) buries() {
	w.lose(`UPDATE workers SET dead = ` + map[string]string{"sqlite": "1", "postgres": "true"}[w.engine])
	w.eventually(func() bool { return w.number(`SELECT count(*) FROM workers WHERE NOT dead`) == 1 })
}

func TestAWorkerNeverTakesOverWhatItStillMakesItself(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.settings.Sweep = time.Hour // the one who asks looks
		w.enforcing(gate("", "mid", 64, 20))
		s := w.serve()
		in := ask(newID(), newID(), "hi")
		running := s.turn(in, nil)
		running.at(1 + 19*16)
		w.buries()
		s.read(in.GetConversationId(), in.GetTurnId())
		w.eventually(func() bool { return w.number(qEpochTwo) == 1 })
		require.NoError(t, w.provider.OpenGate("mid"))
		require.Len(t, running.completes().text, 64*16)
		w.paid(1, 1)
		w.stands(map[string]int{qReplies: 1, qLive: 1, qLedger: 1, qOpen: 0, qWasted: 0})
		require.Zero(t, s.service.InFlight())
	})
}

func TestAWorkerThatDoesNotYetKnowThatItIsDeadRevivesItsReplyOnceItDoes(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.settings.Lease, w.settings.Sweep = 3*time.Second, 20*time.Millisecond // it is swept long before it renews
		w.script(gate("", "mid", 64, 20))
		s := w.serve()
		running := s.turn(ask(newID(), newID(), "hi"), nil)
		running.at(1 + 19*16)
		w.buries()
		w.eventually(func() bool { return w.number(qEpochTwo) == 1 })
		require.NoError(t, w.provider.OpenGate("mid"))
		require.Len(t, running.completes().text, 64*16)
		w.paid(1, 1)
		w.stands(map[string]int{qReplies: 1, qLive: 1, qLedger: 1, qOpen: 0, qWasted: 0})
	})
}

func TestACursorPastWhatADeadWorkerHadStoredIsGoneOnFrom(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		first, second := gate("", "mid", 64, 20), gate("", "late", 64, 20)
		first.Times, second.Plan.Steps[0].At = 1, scripted.AtAfterHeaders
		w.enforcing(first, second)
		dying, die := w.cutOff()
		other := w.serve()
		in := ask(newID(), newID(), "hi")
		seen := dying.turn(in, nil).at(1 + 19*16)
		die()
		w.lose(`UPDATE turns SET log_len = 0 WHERE role = 'assistant'`, `DELETE FROM reply_chunks`)
		w.eventually(func() bool { return w.number(qEpochTwo) == 1 })
		back := other.turn(in, &turnsv1.Cursor{ReplyId: seen.reply, Offset: seen.offset})
		back.until(func(s state) bool { return s.reply != "" })
		require.NoError(t, w.provider.OpenGate("late"))
		require.NoError(t, w.provider.OpenGate("mid"))
		whole := other.turn(in, nil).completes()
		require.Equal(t, whole.text, seen.text+back.completes().text)
	})
}

func TestAFullWorkerLeavesWhatAnotherCanGoOnWithToIt(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.enforcing(gate("block", "block", 64, 20), gate("", "mid", 64, 20))
		dying, die := w.cutOff()
		patient := w.settings
		w.settings.MaxInFlight = 1
		full := w.serve()
		full.turn(ask(newID(), newID(), "block"), nil).at(1 + 19*16)
		w.settings = patient
		w.settings.Sweep = 250 * time.Millisecond // the full one looks first
		w.serve()
		dying.turn(ask(newID(), newID(), "hi"), nil).at(1 + 19*16)
		die()
		w.eventually(func() bool { return w.number(qEpochTwo) == 1 || w.number(qLive) == 1 })
		w.stands(map[string]int{qEpochTwo: 1})
		require.NoError(t, w.provider.OpenGate("mid"))
		require.NoError(t, w.provider.OpenGate("block"))
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE status = 'complete'`) == 2 })
		w.paid(3, 2)
	})
}

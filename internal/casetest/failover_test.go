package casetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns/storetest"
)

const leaseExpired = turnsv1.AbandonReason_ABANDON_REASON_LEASE_EXPIRED

// lose takes rows away, as a failover to a standby does that had not received the last commits.
func (w *world) lose(statements ...string) {
	w.t.Helper()
	tx, err := w.db.BeginTx(w.ctx, nil)
	require.NoError(w.t, err)
	for _, statement := range statements {
		_, err := tx.ExecContext(w.ctx, statement)
		require.NoError(w.t, err, statement)
	}
	require.NoError(w.t, tx.Commit())
}

// loseAll takes away all that was claimed in the last commit of a new conversation; loseReply leaves its turn, which was
// there before.
func (w *world) loseAll() {
	w.t.Helper()
	w.lose(`DELETE FROM provider_calls`, `DELETE FROM reply_chunks`, `DELETE FROM turns`, `DELETE FROM conversations`)
}

func (w *world) loseReply() {
	w.t.Helper()
	w.lose(`DELETE FROM provider_calls`, `DELETE FROM reply_chunks`, `DELETE FROM turns WHERE role = 'assistant'`)
}

// clientGone waits until the provider has seen the client of a call go.
func (w *world) clientGone(call int) {
	w.t.Helper()
	w.eventually(func() bool { return w.provider.Calls()[call].ClientGoneAt != nil })
}

func TestAReplyWhoseRowsWereLostIsPutBackAndItsFollowersSeeNothingOfIt(t *testing.T) {
	for name, lose := range map[string]func(*world){"reply": (*world).loseReply, "turn and conversation": (*world).loseAll} {
		t.Run(name, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) {
				s := w.serve()
				w.script(gate("", "mid", 64, 20))
				in := ask(newID(), newID(), "hi")
				running := s.turn(in, nil)
				running.at(1 + 19*16)
				lose(w)
				w.eventually(func() bool { return w.number(qEpochTwo) == 1 })
				require.NoError(t, w.provider.OpenGate("mid"))
				got := running.completes()
				require.Nil(t, got.restarted)
				require.Equal(t, got.text, s.turn(in, nil).completes().text)
				w.paid(1, 1)
				w.stands(map[string]int{qUsers: 1, qReplies: 1, qLive: 1, qLedger: 1, qOpen: 0, qWasted: 0})
			})
		})
	}
}

func TestAReplyThatEndedWhileItsRowWasLostIsCompleteAllTheSame(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		w.script(plain(16))
		arrived, open := faults.Gate("End")
		in := ask(newID(), newID(), "hi")
		running := s.turn(in, nil)
		<-arrived
		w.loseAll()
		open()
		got := running.completes()
		require.Equal(t, got.text, s.turn(in, nil).completes().text)
		w.paid(1, 1)
		w.stands(map[string]int{qUsers: 1, qReplies: 1, qLive: 1, qLedger: 1, qOpen: 0, qEpochTwo: 1, qWasted: 0})
	})
}

func TestAnInsertionWithoutAnAnswerIsReadAgainAndNeverAssumed(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		w.script(gate("", "mid", 64, 20))
		running := s.turn(ask(newID(), newID(), "hi"), nil)
		running.at(1)
		faults.LoseAnswer("Claim")
		w.loseAll()
		w.eventually(func() bool { return w.number(qEpochTwo) == 1 })
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		w.stands(map[string]int{qReplies: 1, qLive: 1, qLedger: 1, qEpochTwo: 1})
	})
}

func TestALostReplyWhoseSlotWasGivenAwayIsKeptAsWaste(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		faults := storetest.NewFaults(w.store())
		one, two := w.serveOn(faults), w.serve()
		first := gate("", "never", 64, 20)
		first.Times = 1
		w.script(first, plain(16))
		in := ask(newID(), newID(), "hi")
		lost := one.turn(in, nil)
		seen := lost.at(1 + 19*16)
		arrived, open := faults.Gate("Checkpoint")
		<-arrived
		w.loseAll()
		cursor := &turnsv1.Cursor{ReplyId: seen.reply, Offset: seen.offset}
		got := two.turn(in, cursor).completes() // whoever followed the lost one sends the turn again with its cursor
		require.Equal(t, seen.reply, got.restarted.GetPreviousReplyId())
		require.Equal(t, turnsv1.AbandonReason_ABANDON_REASON_UNSPECIFIED, got.restarted.GetPreviousReason())
		require.NotEqual(t, seen.reply, got.reply)
		open()
		require.Equal(t, seen.reply, lost.abandons(leaseExpired).reply)
		w.clientGone(0)
		w.eventually(func() bool { return w.number(qReplies) == 2 })
		w.stands(map[string]int{qLive: 1, qLedger: 2, qOpen: 0,
			`SELECT count(*) FROM provider_calls WHERE waste_cause = 'lost' AND wasted_tokens > 0`:                 1,
			`SELECT count(*) FROM turns WHERE reason = 'lease_expired' AND settled_at IS NOT NULL AND log_len > 0`: 1})
		require.Equal(t, got.text, two.turn(in, nil).completes().text)
	})
}

func TestALostReplyThatIsWholeCanBeSelected(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		faults := storetest.NewFaults(w.store())
		one, two := w.serveOn(faults), w.serve()
		w.script(plain(64))
		arrived, open := faults.Gate("End")
		in := ask(newID(), newID(), "hi")
		lost := one.turn(in, nil)
		<-arrived
		text := lost.at(1 + 64*16).text
		w.loseAll()
		w.script(plain(16))
		two.turn(in, nil).completes()
		open()
		w.eventually(func() bool { return w.number(qReplies) == 2 })
		w.stands(map[string]int{qLive: 1, qLedger: 2, qOpen: 0, `SELECT count(*) FROM turns WHERE reason = 'superseded' AND settled_at IS NOT NULL`: 1})
		_, err := two.turns.SelectReply(w.ctx, &turnsv1.SelectReplyRequest{ConversationId: in.GetConversationId(), ReplyId: lost.until(func(s state) bool { return s.reply != "" }).reply})
		require.NoError(t, err)
		require.Equal(t, text, two.turn(in, nil).completes().text)
	})
}

func TestALostReplyOfAStoppedGenerationDoesNotComeBack(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(gate("", "never", 64, 20))
		s.turn(ask(newID(), newID(), "hi"), nil).at(1 + 19*16)
		w.lose(`DELETE FROM provider_calls`, `DELETE FROM reply_chunks`, `DELETE FROM turns WHERE role = 'assistant'`,
			`UPDATE turns SET cancelled_generation = 1`)
		w.clientGone(0)
		w.eventually(func() bool { return w.number(qReplies) == 1 })
		w.stands(map[string]int{qLive: 0, qOpen: 0, qLedger: 1})
	})
}

func TestALogWhoseEndWasLostIsStoredAgain(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(gate("", "mid", 64, 20))
		in := ask(newID(), newID(), "hi")
		running := s.turn(in, nil)
		running.at(1 + 19*16)
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE log_len > 300`) == 1 })
		w.lose(`DELETE FROM reply_chunks`, `UPDATE turns SET log_len = 0 WHERE role = 'assistant'`)
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE log_len > 300`) == 1 })
		require.NoError(t, w.provider.OpenGate("mid"))
		got := running.completes()
		require.Equal(t, got.text, s.turn(in, nil).completes().text)
		w.stands(map[string]int{qLive: 1, qOpen: 0, qWasted: 0})
	})
}

func TestAReplyLostBetweenTwoCallsKeepsItsLedgerAndItsBudget(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		wait := failing(1, scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 429, Error: "rate_limit_error",
			Headers: map[string]string{"retry-after": "1"}})
		w.script(wait, plain(16))
		running := s.turn(ask(newID(), newID(), "hi"), nil)
		w.eventually(func() bool { return w.number(qLedger) == 1 && w.number(qOpen) == 0 })
		w.loseAll()
		running.completes()
		w.paid(2, 1)
		w.stands(map[string]int{qReplies: 1, qLive: 1, qLedger: 2, qOpen: 0, qEpochTwo: 1,
			`SELECT max(calls) FROM turns`: 2, `SELECT count(*) FROM provider_calls WHERE class = 'throttled'`: 1})
	})
}

package casetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/storetest"
)

// short makes leases that a test can outlive.
func (w *world) short() {
	w.settings.Lease, w.settings.Sweep = 1500*time.Millisecond, 50*time.Millisecond
}

// cutOff is a worker whose database can be taken away, which is how a worker dies as far as the others see.
func (w *world) cutOff() (*worker, func()) {
	faults := storetest.NewFaults(w.store())
	s := w.serveOn(faults)
	down := func() { faults.Down(turns.Unavailable(errors.New("cut off"))) }
	w.t.Cleanup(func() { faults.Down(nil) })
	return s, down
}

func TestC17AClaimWhoseWorkerDiedBlocksNobody(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		dying, die := w.cutOff()
		other := w.serve()
		hung := scripted.Rule{Name: "hung", Times: 1, Plan: scripted.Plan{Steps: []scripted.Step{{At: scripted.AtBeforeHeaders, Do: scripted.DoWait, Gate: "never"}}}}
		w.script(hung, plain(16))
		in := ask(newID(), newID(), "hi")
		lost := dying.turn(in, nil)
		lost.until(func(s state) bool { return s.reply != "" })
		require.NoError(t, w.provider.WaitGate(w.ctx, "never", 1))
		die()
		other.turn(ask(newID(), newID(), "elsewhere"), nil).completes() // no other conversation waits
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		other.turn(ask(in.GetConversationId(), newID(), "the next turn"), nil).completes()
		got := other.turn(in, nil).abandons(turnsv1.AbandonReason_ABANDON_REASON_LEASE_EXPIRED)
		require.Equal(t, replayed, got.result, "a turn is tried again only while no later one was started")
		w.stands(map[string]int{qOpen: 0, `SELECT count(*) FROM provider_calls WHERE class = 'ambiguous' AND token_source = 'estimated' AND waste_cause = 'lease_expired' AND wasted_tokens > 0`: 1})
	})
}

func TestC17TheSameTurnIsClaimedAnewOnceItsWorkerIsBuried(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		dying, die := w.cutOff()
		other := w.serve()
		first := gate("", "never", 64, 20)
		first.Times = 1
		w.script(first, plain(64))
		in := ask(newID(), newID(), "hi")
		lost := dying.turn(in, nil)
		seen := lost.at(1 + 19*16)
		die()
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		cursor := &turnsv1.Cursor{ReplyId: seen.reply, Offset: seen.offset}
		again := other.turn(in, cursor).completes()
		require.Equal(t, retried, again.result)
		require.Equal(t, seen.reply, again.restarted.GetPreviousReplyId())
		require.Equal(t, turnsv1.AbandonReason_ABANDON_REASON_LEASE_EXPIRED, again.restarted.GetPreviousReason())
		require.NotEqual(t, seen.reply, again.reply)
		w.paid(2, 2)
		w.stands(map[string]int{qReplies: 2, qLive: 1, qLedger: 2, qOpen: 0})
		replies := other.read(in.GetConversationId(), in.GetTurnId()).GetReplies()
		require.Len(t, replies, 2)
		require.Equal(t, []int32{1, 2}, []int32{replies[0].GetAttempt(), replies[1].GetAttempt()})
		require.Equal(t, []int32{1, 1}, []int32{replies[0].GetGeneration(), replies[1].GetGeneration()})
		require.Contains(t, seen.text, stored(replies[0]), "what was kept is a part of what was shown")
	})
}

func TestC24AFollowerOfADeadWorkersReplyIsToldItsEnd(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		dying, die := w.cutOff()
		other := w.serve()
		w.script(gate("", "never", 64, 20))
		in := ask(newID(), newID(), "hi")
		lost := dying.turn(in, nil)
		seen := lost.at(1 + 19*16)
		fresh := other.follow(in.GetConversationId(), seen.reply, 0)
		fresh.at(1 + 19*16)
		die()
		got := fresh.abandons(turnsv1.AbandonReason_ABANDON_REASON_LEASE_EXPIRED)
		require.Equal(t, uint32(len(got.text)+1), got.abandoned.GetPartialLength())
		require.Equal(t, turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_NOW, got.abandoned.GetAdvice())
		reply := other.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[0]
		require.Equal(t, turnsv1.ReplyStatus_REPLY_STATUS_ABANDONED, reply.GetStatus())
		require.Equal(t, got.text, stored(reply))
		replay := other.follow(in.GetConversationId(), seen.reply, 0).abandons(turnsv1.AbandonReason_ABANDON_REASON_LEASE_EXPIRED)
		require.Equal(t, got.text, replay.text)
	})
}

func TestC24NothingIsCalledRunningWithoutALiveLease(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.settings.Sweep = time.Hour // nobody sweeps by himself: the one who asks does
		dying, die := w.cutOff()
		other := w.serve()
		w.script(gate("", "never", 64, 20))
		in := ask(newID(), newID(), "hi")
		dying.turn(in, nil).at(1)
		die()
		w.eventually(func() bool {
			r := other.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[0]
			running := r.GetStatus() == turnsv1.ReplyStatus_REPLY_STATUS_IN_FLIGHT
			if running {
				require.NotNil(t, r.GetLeaseExpireTime())
			}
			return !running
		})
	})
}

func TestC27AReplyIsSweptByItsLeaseAndNeverByItsAge(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		one, two := w.serve(), w.serve()
		w.script(gate("", "mid", 64, 20))
		s := one.turn(ask(newID(), newID(), "a long piece of research"), nil)
		s.at(1)
		w.eventually(func() bool { return w.number(`SELECT min(beat) FROM workers WHERE NOT dead`) >= 6 }) // two leases long
		require.NoError(t, w.provider.OpenGate("mid"))
		s.completes()
		two.turn(ask(newID(), newID(), "hi"), nil).completes()
		w.stands(map[string]int{`SELECT count(*) FROM workers WHERE dead`: 0, qLive: 2})
	})
}

func TestAWorkerCutOffPastItsLeaseSendsNothingMore(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		dying, die := w.cutOff()
		other := w.serve()
		w.settings.Backoff = time.Second
		slow := scripted.Rule{Name: "fails", Times: 1, Plan: scripted.Plan{Steps: []scripted.Step{
			{At: scripted.AtRequestRead, Do: scripted.DoWait, Gate: "held"},
			{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 500, Error: "api_error"}}}}
		w.script(slow, plain(16))
		in := ask(newID(), newID(), "hi")
		dying.turn(in, nil).until(func(s state) bool { return s.reply != "" })
		require.NoError(t, w.provider.WaitGate(w.ctx, "held", 1))
		die()
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		require.NoError(t, w.provider.OpenGate("held")) // the failure could be cured, but not by a worker without a lease
		other.turn(in, nil).completes()
		require.NoError(t, w.provider.WaitFinished(w.ctx, 2))
		w.paid(2, 1)
	})
}

func TestAClaimIsRefusedWhileTheDatabaseIsAwayAndServedWhenItIsBack(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		w.script(gate("", "mid", 64, 20))
		running := s.turn(ask(newID(), newID(), "runs through the outage"), nil)
		running.at(1 + 10*16)
		faults.Down(turns.Unavailable(errors.New("no database")))
		in := ask(newID(), newID(), "hi")
		_, err := s.submit(in)
		w.fails(err, codes.Unavailable, "STORE_UNAVAILABLE", "SAME_ID_AFTER_WAIT")
		require.NoError(t, w.provider.OpenGate("mid"))
		running.at(1 + 64*16) // the reply goes on in memory, to its last byte
		require.NoError(t, w.provider.WaitFinished(w.ctx, 1))
		faults.Down(nil)
		running.completes()
		s.turn(in, nil).completes()
		w.stands(map[string]int{qLive: 2, qOpen: 0, qWasted: 0})
	})
}

func TestACommitWithoutAnAnswerIsReadAgainAndNeverAssumed(t *testing.T) {
	for _, method := range []string{"Claim", "End", "Checkpoint"} {
		t.Run(method, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) {
				faults := storetest.NewFaults(w.store())
				s := w.serveOn(faults)
				w.script(gate("", "mid", 64, 20))
				faults.LoseAnswer(method)
				running := s.turn(ask(newID(), newID(), "hi"), nil)
				running.at(1 + 19*16)
				w.eventually(func() bool { return faults.Calls("Checkpoint") > 3 })
				require.NoError(t, w.provider.OpenGate("mid"))
				got := running.completes()
				w.paid(1, 1)
				w.stands(map[string]int{qLive: 1, qReplies: 1, qLedger: 1, qOpen: 0, `SELECT count(*) FROM reply_chunks`: 0})
				require.Equal(t, got.text, s.turn(ask(got.turn.GetConversationId(), got.turn.GetTurnId(), "hi"), nil).completes().text)
			})
		})
	}
}

func TestAFailedClaimSendsNothing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		faults.FailNext("Claim", context.DeadlineExceeded)
		_, err := s.submit(ask(newID(), newID(), "hi"))
		require.Error(t, err)
		w.paid(0, 0)
		w.stands(map[string]int{qUsers: 0, qReplies: 0, qLedger: 0, qConvs: 0})
	})
}

package casetest

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns/live"
)

func TestC08DeliveriesOfOneEventToThreeReplicasAreOneReply(t *testing.T) {
	w := postgresWorld(t)
	workers := []*worker{w.serve(), w.serve(), w.serve()}
	w.script(gate("", "mid", 64, 8))
	in := ask(newID(), newID(), "an event from upstream")
	in.Source = turnsv1.DeliverySource_DELIVERY_SOURCE_REDELIVERY
	results := make([]*turnsv1.SubmitTurnResponse, 9)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() { results[i], _ = workers[i%3].submit(in) })
	}
	wg.Wait()
	news := 0
	for _, r := range results {
		require.NotNil(t, r)
		require.Equal(t, results[0].GetReply().GetReplyId(), r.GetReply().GetReplyId())
		if r.GetResult() == isNew {
			news++
		}
	}
	require.Equal(t, 1, news)
	followers := []*stream{workers[0].turn(in, nil), workers[1].turn(in, nil), workers[2].turn(in, nil)}
	require.NoError(t, w.provider.OpenGate("mid"))
	for _, f := range followers {
		require.Equal(t, followers[0].completes().text, f.completes().text)
	}
	w.paid(1, 1)
	w.stands(map[string]int{qUsers: 1, qReplies: 1, qLedger: 1})
	require.EqualValues(t, 8+3, w.counted("turnd.duplicates", "layer", "redelivery"))
}

func TestC18ARestartLeavesNothingRunningAndACancelFreesTheThread(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.settings.Sweep = time.Hour // nobody looks by himself
		dying, die := w.cutOff()
		other := w.serve()
		held := gate("", "never", 64, 20)
		held.Times = 1
		w.script(held, plain(16))
		in := ask(newID(), newID(), "hi")
		dying.turn(in, nil).at(1 + 19*16)
		die()
		restarted := w.serve() // under the same name
		got := restarted.cancelTurn(in)
		require.Equal(t, abandoned, got.GetStatus())
		// If its lease ran out first, it is ended for that before the stop is noted.
		require.Contains(t, []turnsv1.AbandonReason{cancelled, leaseExpired}, got.GetAbandonReason())
		require.Equal(t, replayed, other.turn(in, nil).abandons(got.GetAbandonReason()).result, "nothing starts in what was stopped")
		other.turn(ask(in.GetConversationId(), newID(), "the next turn"), nil).completes() // the thread is free
		w.paid(2, 2)
		w.stands(map[string]int{qInFlight: 0, qOpen: 0})
	})
}

func TestC22APausedWorkerThatWakesWritesNothingAndItsTokensAreWaste(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		paused, down, up := w.wakes()
		other, third := w.serve(), w.serve()
		first := gate("", "mid", 64, 20)
		first.Times = 1
		w.script(first, plain(16))
		in := ask(newID(), newID(), "hi")
		lost := paused.turn(in, nil)
		seen := lost.at(1 + 19*16)
		down()
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		whole := other.turn(in, nil).completes()
		up()
		require.NoError(t, w.provider.OpenGate("mid"))
		moved := lost.abandons(turnsv1.AbandonReason_ABANDON_REASON_LEASE_EXPIRED) // told by the store, not by who lost it
		require.Equal(t, seen.reply, moved.reply)
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE settled_at IS NOT NULL`) == 2 })
		again := third.turn(in, nil).completes()
		require.Equal(t, whole.reply, again.reply)
		require.Equal(t, whole.text, again.text, "the reply is the second worker's alone")
		w.paid(2, 2)
		w.stands(map[string]int{qLive: 1, qReplies: 2, qLedger: 2, qOpen: 0})
		require.Positive(t, w.counted("turnd.tokens.wasted", "cause", "lease_expired"))
	})
}

func TestC26TwoTurnsSentAtOnceToTwoReplicasAreOneAfterTheOther(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		workers := []*worker{w.serve(), w.serve()}
		w.script(scripted.Rule{Name: "say", Plan: scripted.Plan{Blocks: []scripted.Block{{Text: "three words said"}}}})
		conversation := newID()
		workers[0].turn(ask(conversation, newID(), "one"), nil).completes()
		w.script(gate("", "mid", 64, 20))
		turns := []*turnsv1.TurnInput{ask(conversation, newID(), "a"), ask(conversation, newID(), "b")}
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for i, in := range turns {
			wg.Go(func() { _, errs[i] = workers[i].submit(in) })
		}
		wg.Wait()
		loser := 0
		if errs[0] == nil {
			loser = 1
		}
		require.NoError(t, errs[1-loser])
		require.Equal(t, codes.FailedPrecondition, status.Code(errs[loser]), "%v", errs[loser])
		w.fails(errs[loser], codes.FailedPrecondition, "CONVERSATION_BUSY", "SAME_ID_AFTER_WAIT")
		require.NoError(t, w.provider.WaitGate(w.ctx, "mid", 1))
		require.NoError(t, w.provider.OpenGate("mid"))
		won := workers[loser].turn(turns[1-loser], nil).completes()
		workers[loser].turn(turns[loser], nil).completes()
		calls := w.provider.Calls()
		require.Len(t, calls, 3)
		require.Equal(t, 1+3+1, calls[1].InputTokens, "what was said before, and the turn itself")
		require.Greater(t, calls[2].InputTokens, 1+3+1+1, "the other's reply as it was said, whole")
		history, err := workers[0].turns.ListTurns(w.ctx, &turnsv1.ListTurnsRequest{ConversationId: conversation})
		require.NoError(t, err)
		require.Len(t, history.GetEntries(), 3, "no message is lost")
		require.Equal(t, won.text, stored(history.GetEntries()[1].GetReply()))
		w.stands(map[string]int{qReplies: 3, qLive: 3, `SELECT count(DISTINCT seq) FROM turns`: 6})
	})
}

func TestC41AndC43AStopReachesAnotherWorkersReplyWellBelowATick(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.bus = live.NewMemory(0)
		w.settings.Checkpoint = time.Hour // what the owner stores, it stores since it was told
		one, two := w.serve(), w.serve()
		w.script(gate("", "never", 64, 20))
		in := ask(newID(), newID(), "hi")
		running := one.turn(in, nil)
		running.at(1 + 19*16)
		got := two.cancelTurn(in)
		require.Equal(t, cancelled, got.GetAbandonReason())
		told := running.abandons(cancelled)
		w.clientGone(0)
		kept := two.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[0]
		require.Equal(t, told.text, stored(kept), "the owner ended it, with the exact partial")
		w.stands(map[string]int{qOpen: 0, `SELECT count(*) FROM turns WHERE settled_at IS NOT NULL`: 1})
	})
}

func TestTwoWorkersOfOneNameAreTwoWorkers(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		dying, die := w.cutOff()
		twin := w.serve()
		require.NotEqual(t, dying.service.WorkerID(), twin.service.WorkerID())
		held := gate("", "never", 64, 20)
		held.Times = 1
		w.script(held, gate("stays", "mid", 64, 20), plain(16))
		in := ask(newID(), newID(), "hi")
		dying.turn(in, nil).at(1 + 19*16)
		stays := twin.turn(ask(newID(), newID(), "stays"), nil)
		stays.at(1 + 19*16)
		die()
		w.eventually(func() bool { return w.number(qInFlight) == 1 }) // the twin's renewals keep nothing of the other alive
		require.NoError(t, w.provider.OpenGate("mid"))
		stays.completes()
		require.Equal(t, retried, twin.turn(in, nil).completes().result)
		w.stands(map[string]int{`SELECT count(DISTINCT name) FROM workers`: 1, `SELECT count(*) FROM workers WHERE dead`: 1, qOpen: 0})
	})
}

package casetest

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// superseding is a turn that takes the place of whatever runs.
func superseding(conversation, text string) *turnsv1.TurnInput {
	in := ask(conversation, newID(), text)
	in.OnBusy = turnsv1.OnBusy_ON_BUSY_SUPERSEDE
	return in
}

func (w *worker) parentOf(in *turnsv1.TurnInput) string {
	w.t.Helper()
	return w.read(in.GetConversationId(), in.GetTurnId()).GetTurn().GetParentId()
}

func TestATurnThatSupersedesHangsBesideTheOneThatRanAndNothingIsLost(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		one, two := w.serve(), w.serve()
		w.script(gate("wrong", "mid", 64, 20), plain(8))
		conversation := newID()
		before := one.turn(ask(conversation, newID(), "before"), nil).completes()
		wrong := ask(conversation, newID(), "wrong")
		running := one.turn(wrong, nil)
		running.at(1 + 19*16)
		right := superseding(conversation, "right")
		two.turn(right, nil).completes()
		told := running.abandons(cancelled)
		require.Equal(t, before.reply, one.parentOf(right))
		require.Equal(t, told.text, stored(one.read(conversation, wrong.GetTurnId()).GetReplies()[0]), "the partial is kept")
		require.Equal(t, []string{"before", "right"}, one.history(conversation))
		list, err := one.turns.ListTurns(w.ctx, &turnsv1.ListTurnsRequest{ConversationId: conversation})
		require.NoError(t, err)
		require.Equal(t, []string{wrong.GetTurnId(), right.GetTurnId()}, list.GetEntries()[0].GetSiblingTurnIds())
		w.madeFrom(3, "before", before.text, "right")
		require.Equal(t, replayed, one.turn(right, nil).completes().result)
		idle := superseding(conversation, "goes on")
		one.turn(idle, nil).completes()
		require.Equal(t, []string{"before", "right", "goes on"}, one.history(conversation), "where nothing runs it hangs below the leaf")
	})
}

func TestASupersedeThatWasCutOffAfterItsStopStillHangsBeside(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(gate("wrong", "mid", 64, 20), plain(8))
		wrong := ask(newID(), newID(), "wrong")
		running := s.turn(wrong, nil)
		running.at(1 + 19*16)
		right := superseding(wrong.GetConversationId(), "right")
		// The stop of a worker that dies before its claim.
		key := turns.KeyOf("default", turns.ConversationID{UUID: uuid.MustParse(wrong.GetConversationId())})
		_, err := w.store().RequestStop(w.ctx, key, turns.TurnID{UUID: uuid.MustParse(wrong.GetTurnId())}, 0,
			turns.TurnID{UUID: uuid.MustParse(right.GetTurnId())})
		require.NoError(t, err)
		running.abandons(cancelled)
		s.turn(right, nil).completes()
		require.Empty(t, s.parentOf(right))
		require.Equal(t, []string{"right"}, s.history(wrong.GetConversationId()))
	})
}

func TestOfTwoThatSupersedeAtOnceBothHangBesideTheFirstAndOneIsLive(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		workers := []*worker{w.serve(), w.serve()}
		w.script(gate("", "mid", 64, 20))
		conversation := newID()
		first := ask(conversation, newID(), "first")
		running := workers[0].turn(first, nil)
		running.at(1 + 19*16)
		inputs := []*turnsv1.TurnInput{superseding(conversation, "one"), superseding(conversation, "two")}
		streams := make([]*stream, 2)
		var both sync.WaitGroup
		for i := range inputs {
			both.Go(func() { streams[i] = workers[i].turn(inputs[i], nil) })
		}
		both.Wait()
		running.abandons(cancelled)
		for _, s := range streams {
			s.until(func(s state) bool { return s.offset > 0 || s.abandoned != nil })
		}
		w.eventually(func() bool { return w.number(qInFlight) == 1 && w.number(qReplies) == 3 })
		require.NoError(t, w.provider.OpenGate("mid"))
		whole := 0
		for i, s := range streams {
			got := s.end()
			require.NoError(t, got.err)
			if got.completed != nil {
				whole++
			} else {
				require.Equal(t, cancelled, got.abandoned.GetReason())
			}
			require.Empty(t, workers[0].parentOf(inputs[i]), "beside the first")
		}
		require.Equal(t, 1, whole)
		w.stands(map[string]int{qUsers: 3, qLive: 1, qReplies: 3, qOpen: 0})
	})
}

func TestC26TwoInterruptsAtOnceLoseNoMessage(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		workers := []*worker{w.serve(), w.serve()}
		w.script(gate("", "mid", 64, 20))
		first := ask(newID(), newID(), "first")
		running := workers[0].turn(first, nil)
		running.at(1 + 19*16)
		streams := make([]*stream, 2)
		var both sync.WaitGroup
		for i := range streams {
			both.Go(func() { streams[i] = workers[i].turn(interrupting(first.GetConversationId()), nil) })
		}
		both.Wait()
		running.abandons(cancelled)
		w.eventually(func() bool { return w.number(qInFlight) == 1 && w.number(qReplies) == 3 })
		require.NoError(t, w.provider.OpenGate("mid"))
		for _, s := range streams {
			got := s.end()
			require.NoError(t, got.err)
		}
		require.Equal(t, []string{"first", "two", "two"}, workers[0].history(first.GetConversationId()))
		// One that is stopped at once may never have asked.
		w.madeFrom(len(w.provider.Calls()), "first", "two", "two")
	})
}

func TestResultsOfToolCallsComeBeforeTheLineAndWhatIsPlainWaitsForThem(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Sweep = 50 * time.Millisecond
		s := w.serve()
		w.script(callsTools(gate("", "mid", 8, 1).Plan.Steps...), plain(8))
		first := offering("anthropic", newID())
		running := s.turn(first, nil)
		running.at(1)
		plainly := enqueuing(first.GetConversationId(), "and then")
		waiting := s.turn(plainly, nil)
		waiting.waits(0)
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		_, err := s.submit(ask(first.GetConversationId(), newID(), "plain"))
		meta := w.fails(err, codes.FailedPrecondition, "CONVERSATION_BUSY", "SAME_ID_AFTER_WAIT")
		require.Equal(t, plainly.GetTurnId(), meta["turn_id"])
		w.stands(map[string]int{qInLine: 1, qReplies: 1})
		results := offering("anthropic", first.GetConversationId(), resultOf("t1", "found"), resultOf("t2", "noon"))
		s.turn(results, nil).completes()
		waiting.completes()
		got := s.read(first.GetConversationId(), plainly.GetTurnId())
		answered := s.read(first.GetConversationId(), results.GetTurnId())
		require.Equal(t, answered.GetReplies()[0].GetReplyId(), got.GetTurn().GetParentId())
		w.paid(3, 3)
	})
}

func TestALineWaitsForToolsNoLongerThanItsTime(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Sweep, w.settings.ToolWait = 50*time.Millisecond, 300*time.Millisecond
		s := w.serve()
		w.script(callsTools(gate("", "mid", 8, 1).Plan.Steps...), plain(8))
		first := offering("anthropic", newID())
		running := s.turn(first, nil)
		running.at(1)
		waiting := s.turn(enqueuing(first.GetConversationId(), "never mind"), nil)
		waiting.waits(0)
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		waiting.completes()
		w.paid(2, 2)
	})
}

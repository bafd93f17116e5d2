package casetest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/archive"
)

// endsReplaced is a first attempt that waits at a gate and is cut then, and a whole answer for all that follows.
func (w *world) endsReplaced() {
	cut := gate("first", "mid", 64, 20)
	cut.Times = 1
	cut.Plan.Steps = append(cut.Plan.Steps, cutAt(20).Plan.Steps...)
	w.script(cut, plain(8))
}

func TestATurnThatLeftTheLineIsMadeFromTheAnswerThatCameInTheEnd(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.endsReplaced()
		s := w.serve()
		first := ask(newID(), newID(), "first")
		first.OnAmbiguous = retryPolicy
		running := s.turn(first, nil)
		running.at(1)
		second := enqueuing(first.GetConversationId(), "second")
		s.turn(second, nil).waits(0)
		s.cancelTurn(second)
		require.NoError(t, w.provider.OpenGate("mid"))
		running.end()
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		one := s.turn(first, nil).completes()
		r := s.read(first.GetConversationId(), second.GetTurnId()).GetReplies()[0]
		_, err := s.regenerate(first.GetConversationId(), r.GetReplyId(), 0)
		require.NoError(t, err)
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		two := s.turn(second, nil).completes()
		require.Equal(t, one.reply, s.parentOf(second))
		s.turn(ask(first.GetConversationId(), newID(), "third"), nil).completes()
		w.madeFrom(len(w.provider.Calls()), "first", one.text, "second", two.text, "third")
	})
}

func TestALineThatMovesToAnotherTenantIsAnsweredThere(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(gate("first", "mid", 8, 2), plain(8))
		first, _ := s.busyAt()
		bad := offering("anthropic", first.GetConversationId(), resultOf("nocall", "what"))
		bad.OnBusy = turnsv1.OnBusy_ON_BUSY_ENQUEUE
		s.turn(bad, nil).waits(0)
		s.turn(enqueuing(first.GetConversationId(), "behind"), nil).waits(1)
		file := w.archived()

		there := sqliteWorld(t)
		there.settings.Sweep = 50 * time.Millisecond
		there.script(plain(8))
		store, ok := there.store().(turns.Archive)
		require.True(t, ok)
		for range 2 { // again is nothing new
			_, err := archive.Import(there.ctx, store, strings.NewReader(file), archive.Options{Tenant: "other"})
			require.NoError(t, err)
		}
		there.serve()
		there.eventually(func() bool { return there.number(qInLine) == 0 && there.number(qInFlight) == 0 })
		require.Equal(t, 1, there.number(`SELECT count(*) FROM turns WHERE status = 'complete'`))
		require.Zero(t, there.number(`SELECT count(*) FROM provider_calls WHERE tenant <> 'other'`))
	})
}

func TestALineThatMovesToAnotherTenantIsHeldToItsCaps(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(gate("first", "mid", 8, 2), plain(8))
		first, _ := s.busyAt()
		s.turn(enqueuing(first.GetConversationId(), "second"), nil).waits(0)
		file := w.archived()

		there := sqliteWorld(t)
		there.settings.Sweep = 50 * time.Millisecond
		there.settings.TenantCaps = turns.Caps{Turns: 1} // the imported call is that one
		store, ok := there.store().(turns.Archive)
		require.True(t, ok)
		_, err := archive.Import(there.ctx, store, strings.NewReader(file), archive.Options{Tenant: "other"})
		require.NoError(t, err)
		there.serve()
		there.eventually(func() bool { return there.number(qInLine) == 0 && there.number(qInFlight) == 0 })
		require.Equal(t, 1, there.number(qLedger))
	})
}

func TestATurnThatWasAnsweredSinceItsStopIsNotSuperseded(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(gate("one", "mid", 64, 20), plain(8))
		one := ask(newID(), newID(), "one")
		running := s.turn(one, nil)
		running.at(1 + 19*16)
		// The turn that it was stopped for never came.
		key := turns.KeyOf("default", turns.ConversationID{UUID: uuid.MustParse(one.GetConversationId())})
		_, err := w.store().RequestStop(w.ctx, key, turns.TurnID{UUID: uuid.MustParse(one.GetTurnId())}, 0, turns.TurnID{UUID: uuid.New()})
		require.NoError(t, err)
		running.abandons(cancelled)
		r := s.read(one.GetConversationId(), one.GetTurnId()).GetReplies()[0]
		require.NoError(t, w.provider.OpenGate("mid"))
		_, err = s.regenerate(one.GetConversationId(), r.GetReplyId(), 0)
		require.NoError(t, err)
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		s.turn(superseding(one.GetConversationId(), "two"), nil).completes()
		require.Equal(t, []string{"one", "two"}, s.history(one.GetConversationId()))
	})
}

func TestAnInterruptThatStoppedAReplyIsNotRefusedForWhatThatReplyTook(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.ConversationCaps = turns.Caps{Tokens: 5}
		s := w.serve()
		w.script(gate("first", "mid", 64, 40), plain(8))
		first := ask(newID(), newID(), "first")
		running := s.turn(first, nil)
		running.at(1 + 39*16)
		in := ask(first.GetConversationId(), newID(), "instead")
		in.OnBusy = turnsv1.OnBusy_ON_BUSY_INTERRUPT
		instead := s.turn(in, nil)
		running.abandons(cancelled)
		require.NoError(t, w.provider.OpenGate("mid"))
		instead.completes()
		_, err := s.submit(ask(first.GetConversationId(), newID(), "more"))
		w.fails(err, codes.FailedPrecondition, "CAP_REACHED", "DO_NOT_RETRY")
	})
}

func TestATurnThatWasRefusedInLineIsRefusedAgainWhenItIsRegenerated(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Sweep = 50 * time.Millisecond
		s := w.serve()
		w.script(callsTools(gate("", "mid", 8, 1).Plan.Steps...), plain(8))
		first := offering("anthropic", newID())
		running := s.turn(first, nil)
		running.at(1)
		half := offering("anthropic", first.GetConversationId(), resultOf("t1", "found"), resultOf("nocall", "what"))
		half.OnBusy = turnsv1.OnBusy_ON_BUSY_ENQUEUE
		waiting := s.turn(half, nil)
		waiting.waits(0)
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		waiting.abandons(refused)
		r := s.read(first.GetConversationId(), half.GetTurnId()).GetReplies()[0]
		require.Equal(t, turnsv1.RetryAdvice_RETRY_ADVICE_DO_NOT_RETRY, r.GetAdvice(), "as if it had been refused at once")
		_, err := s.regenerate(first.GetConversationId(), r.GetReplyId(), 0)
		w.fails(err, codes.InvalidArgument, "INVALID_TOOL_RESULT", "DO_NOT_RETRY")
		require.Equal(t, 1, w.number(qLedger))
	})
}

func TestAKilledTurnThatALineHasPassedIsRegeneratedBelowItself(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		lost := gate("", "never", 64, 20)
		lost.Times = 1
		w.script(lost, plain(4))
		dying, die := w.cutOff()
		in := ask(newID(), newID(), "one")
		running := dying.turn(in, nil)
		running.at(1 + 19*16)
		behind := ask(in.GetConversationId(), newID(), "two")
		behind.OnBusy = turnsv1.OnBusy_ON_BUSY_ENQUEUE
		_, err := dying.submit(behind)
		require.NoError(t, err)
		other := w.serve()
		die()
		moved := other.turn(behind, nil).completes()
		killed := other.turn(in, nil).abandons(turnsv1.AbandonReason_ABANDON_REASON_LEASE_EXPIRED)
		require.Equal(t, replayed, killed.result)
		require.Equal(t, turnsv1.RetryAdvice_RETRY_ADVICE_REGENERATE, killed.abandoned.GetAdvice(), "a later turn was started")

		_, err = other.regenerate(in.GetConversationId(), killed.reply, 0)
		require.NoError(t, err)
		again := other.turn(in, nil).completes()
		require.NotEqual(t, killed.reply, again.reply)
		c, err := other.convs.GetConversation(w.ctx, &turnsv1.GetConversationRequest{ConversationId: in.GetConversationId()})
		require.NoError(t, err)
		require.Equal(t, again.reply, c.GetConversation().GetLeafId(), "it is a branch beside the later turn, and now the leaf")
		require.Equal(t, []string{in.GetTurnId()}, other.path(in.GetConversationId()))
		other.selects(in.GetConversationId(), moved.reply)
		require.Equal(t, []string{in.GetTurnId(), behind.GetTurnId()}, other.path(in.GetConversationId()))
	})
}

func TestATurnInLineThatGoesElsewhereWaitsForNoToolsOfTheLeaf(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(callsTools(gate("", "mid", 8, 1).Plan.Steps...), plain(8))
		first := offering("anthropic", newID())
		running := s.turn(first, nil)
		running.at(1)
		in := enqueuing(first.GetConversationId(), "elsewhere")
		in.Parent = &turnsv1.TurnInput_Root{Root: true}
		waiting := s.turn(in, nil)
		waiting.waits(0)
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		waiting.completes()
	})
}

package casetest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// TestC14EachAdviceLeadsOutOfItsErrorAndAskingOtherwiseCostsNothing meets an error of each advice, first does something else,
// which changes and costs nothing, and then what it was advised.
func TestC14EachAdviceLeadsOutOfItsErrorAndAskingOtherwiseCostsNothing(t *testing.T) {
	t.Run("SAME_ID_NOW", func(t *testing.T) {
		onEachEngine(t, func(t *testing.T, w *world) {
			s := w.serve()
			w.script(failing(1, scripted.Step{At: scripted.AfterDelta(3), Do: scripted.DoReset}), plain(4))
			in := ask(newID(), newID(), "hi")
			require.Equal(t, sameIDNow, s.turn(in, nil).abandons(ambiguous).abandoned.GetAdvice())
			require.Equal(t, retried, s.turn(in, nil).completes().result)
			w.paid(2, 2)
		})
	})
	t.Run("SAME_ID_AFTER_WAIT", func(t *testing.T) {
		onEachEngine(t, func(t *testing.T, w *world) {
			s := w.serve()
			w.script(gate("first", "go", 8, 4), plain(4))
			in := ask(newID(), newID(), "first")
			running := s.turn(in, nil)
			running.at(2)
			next := ask(in.GetConversationId(), newID(), "second")
			for range 2 {
				_, err := s.submit(next)
				w.fails(err, codes.FailedPrecondition, "CONVERSATION_BUSY", "SAME_ID_AFTER_WAIT")
			}
			require.NoError(t, w.provider.OpenGate("go"))
			running.completes()
			require.Equal(t, isNew, s.turn(next, nil).completes().result)
			w.paid(2, 2)
		})
	})
	t.Run("NEW_ID", func(t *testing.T) {
		onEachEngine(t, func(t *testing.T, w *world) {
			s := w.serve()
			in := ask(newID(), newID(), "hi")
			s.turn(in, nil).completes()
			other := ask(in.GetConversationId(), in.GetTurnId(), "something else")
			for range 2 {
				_, err := s.submit(other)
				w.fails(err, codes.AlreadyExists, "TURN_ID_REUSED", "NEW_ID")
			}
			other.TurnId = newID()
			require.Equal(t, isNew, s.turn(other, nil).completes().result)
			w.paid(2, 2)
		})
	})
	t.Run("DO_NOT_RETRY", func(t *testing.T) {
		onEachEngine(t, func(t *testing.T, w *world) {
			s := w.serve()
			empty := ask(newID(), newID(), "")
			for range 2 {
				_, err := s.submit(empty)
				w.fails(err, codes.InvalidArgument, "CONTENT_EMPTY", "DO_NOT_RETRY")
			}
			w.paid(0, 0)
		})
	})
	t.Run("REGENERATE", func(t *testing.T) {
		onEachEngine(t, func(t *testing.T, w *world) {
			s := w.serve()
			w.script(gate("hi", "never", 8, 4), plain(4))
			in := ask(newID(), newID(), "hi")
			running := s.turn(in, nil)
			running.at(2)
			reply := s.cancelTurn(in)
			cancelled := turnsv1.AbandonReason_ABANDON_REASON_CANCELLED
			running.abandons(cancelled)
			require.Equal(t, turnsv1.RetryAdvice_RETRY_ADVICE_REGENERATE, s.turn(in, nil).abandons(cancelled).abandoned.GetAdvice())
			w.paid(1, 1)
			w.script(plain(4))
			made, err := s.regenerate(in.GetConversationId(), reply.GetReplyId(), 1)
			require.NoError(t, err)
			s.follow(in.GetConversationId(), made.GetReply().GetReplyId(), 0).completes()
			w.paid(2, 2)
		})
	})
}

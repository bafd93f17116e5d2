package casetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// below hangs a turn below a row.
func below(in *turnsv1.TurnInput, parent string) *turnsv1.TurnInput {
	in.Parent = &turnsv1.TurnInput_ParentId{ParentId: parent}
	return in
}

// path are the user turns on the way to the conversation's leaf, the first first.
func (w *worker) path(conversation string) (ids []string) {
	got, err := w.turns.ListTurns(w.t.Context(), &turnsv1.ListTurnsRequest{ConversationId: conversation})
	require.NoError(w.t, err)
	for i := len(got.GetEntries()) - 1; i >= 0; i-- {
		ids = append(ids, got.GetEntries()[i].GetTurn().GetTurnId())
	}
	return ids
}

func (w *worker) selects(conversation, reply string) {
	_, err := w.choose(conversation, reply)
	require.NoError(w.t, err)
}

func (w *worker) version(conversation string) int64 {
	got, err := w.convs.GetConversation(w.t.Context(), &turnsv1.GetConversationRequest{ConversationId: conversation})
	require.NoError(w.t, err)
	return got.GetConversation().GetVersion()
}

func TestGoingBackToABranchGoesToItsEnd(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		conversation := newID()
		first, second, third := ask(conversation, newID(), "one"), ask(conversation, newID(), "two"), ask(conversation, newID(), "three")
		root := s.turn(first, nil).completes().reply
		old := s.turn(second, nil).completes().reply
		s.turn(third, nil).completes()
		edited := ask(conversation, newID(), "two, edited")
		s.turn(below(edited, root), nil).completes()
		require.Equal(t, []string{first.GetTurnId(), edited.GetTurnId()}, s.path(conversation))

		s.selects(conversation, old)
		require.Equal(t, []string{first.GetTurnId(), second.GetTurnId(), third.GetTurnId()}, s.path(conversation), "the leaf is the branch's end")
		fourth := ask(conversation, newID(), "four")
		s.turn(fourth, nil).completes()
		require.Equal(t, []string{first.GetTurnId(), second.GetTurnId(), third.GetTurnId(), fourth.GetTurnId()}, s.path(conversation))

		before := s.version(conversation)
		s.selects(conversation, old)
		require.Equal(t, before, s.version(conversation), "what is selected already is left alone")
	})
}

func TestAReplyThatIsMadeLiveAgainBringsItsBranchWithIt(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		conversation := newID()
		first, second := ask(conversation, newID(), "one"), ask(conversation, newID(), "two")
		old := s.turn(first, nil).completes().reply
		s.turn(second, nil).completes()
		made, err := s.turns.RegenerateReply(w.ctx, &turnsv1.RegenerateReplyRequest{ConversationId: conversation, ReplyId: old})
		require.NoError(t, err)
		s.turn(first, nil).completes()
		require.Equal(t, []string{first.GetTurnId()}, s.path(conversation), "another answer has no turns below it yet")
		require.NotEqual(t, old, made.GetReply().GetReplyId())

		s.selects(conversation, old)
		require.Equal(t, []string{first.GetTurnId(), second.GetTurnId()}, s.path(conversation))
		s.selects(conversation, made.GetReply().GetReplyId())
		require.Equal(t, []string{first.GetTurnId()}, s.path(conversation))
		require.Equal(t, 1, w.number(`SELECT count(*) FROM turns WHERE status = 'complete' AND parent_id = (SELECT id FROM turns WHERE parent_id IS NULL)`))
	})
}

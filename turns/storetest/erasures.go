package storetest

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func turnDeletions() []promise {
	return []promise{
		{"a deleted turn takes all branches below it along and leaves marks", aDeletedTurnTakesAllBelowItAlong},
		{"what is beside a deleted turn stays", whatIsBesideADeletedTurnStays},
		{"a deleted turn's running reply ends, and its calls are closed by a guess", aDeletedTurnsRunningReplyEnds},
		{"a deleted turn's held reply ends, and its calls are closed by a guess", aDeletedTurnsHeldReplyEnds},
		{"of an erased turn and its replies it is said that it was deleted", anErasedTurnIsSaidToBeDeleted},
		{"an erased turn is no sibling, no parent, and on no way to a leaf", anErasedTurnIsOnNoList},
		{"the leaf and the last turn move out of what is deleted", theEndsMoveOut},
		{"a deletion above an erased turn takes its mark along", aDeletionAboveAMark},
		{"a turn in line is deleted by itself", aTurnInLineIsDeleted},
		{"a claim that was computed before a turn was deleted is lost", aTurnsDeletionMovesTheVersion},
		{"nothing is restored into an erased turn", nothingIsRestoredIntoAnErasedTurn},
		{"a turn that is deleted again stays as it is", aTurnDeletedAgain},
		{"a turn of nobody, of another conversation or of a deleted one is not deleted", onlyAStoredTurnIsDeleted},
		{"more than the limit is refused and nothing is changed", tooMuchIsRefused},
		{"of a deletion and a claim at once, both hold or the claim is lost", aDeletionAndAClaimAtOnce},
		{"an erased turn goes with its conversation", anErasedTurnGoesWithItsConversation},
	}
}

const manyRows = 1000

func (w *world) deleteTurn(c conversation, turn turns.TurnID) turns.Deletion {
	w.t.Helper()
	d, err := w.Store.DeleteTurn(w.ctx, c.key, turn, manyRows)
	require.NoError(w.t, err)
	return d
}

// answeredBelow claims a turn below a row and answers it.
func (w *world) answeredBelow(c conversation, parent turns.RowID) turns.Claim {
	w.t.Helper()
	claim := w.next(c)
	claim.NewTurn.Parent = parent
	w.finish(completing(w.win(claim), 0, whole("answer")))
	return claim
}

// isMark asserts what is left of a user turn.
func (w *world) isMark(turn turns.TurnID) {
	w.t.Helper()
	require.EqualValues(w.t, 1, w.count("SELECT count(*) FROM turns WHERE erased AND content = '' AND options = '' AND waiting = ''"+
		" AND input_hash IS NOT NULL AND id = %s", turn.UUID))
}

func aDeletedTurnTakesAllBelowItAlong(t *testing.T, w *world) {
	c, root := w.answered()
	branch := w.answeredBelow(c, root.Reply.ID.Row())
	again := w.regenerate(c, root.Turn)
	w.finish(completing(w.win(again), 0, whole("another")))
	other, deep := w.answeredBelow(c, again.Reply.ID.Row()), w.answeredBelow(c, branch.Reply.ID.Row())
	d := w.deleteTurn(c, root.Turn)
	require.Equal(t, 4, d.Turns)
	require.Empty(t, d.Ended)
	for _, claim := range []turns.Claim{root, branch, other, deep} {
		w.isMark(claim.Turn)
	}
	require.EqualValues(t, 4, w.rows(c, "turns"))
	require.EqualValues(t, 5, w.rows(c, "provider_calls"))
	st := w.lookup(c, deep.Turn)
	require.True(t, st.Turn.Erased)
	require.Equal(t, []byte("hash"), st.InputHash)
	require.Empty(t, st.Turn.Content)
	require.Nil(t, st.Newest)
}

func whatIsBesideADeletedTurnStays(t *testing.T, w *world) {
	c, root := w.answered()
	edit, second := w.answeredBelow(c, root.Reply.ID.Row()), w.answeredBelow(c, root.Reply.ID.Row())
	require.Equal(t, 1, w.deleteTurn(c, edit.Turn).Turns)
	require.Equal(t, []turns.TurnID{second.Turn}, w.entries(c, second.Turn)[second.Turn].Siblings)
	path, err := w.Store.ReadPath(w.ctx, c.key, second.Reply.ID.Row(), turns.PathLimit{Rows: 10, Bytes: 1000})
	require.NoError(t, err)
	require.Len(t, path, 4)
	require.Equal(t, second.Reply.ID.Row(), w.lookup(c, second.Turn).Leaf)
}

func aDeletedTurnsRunningReplyEnds(t *testing.T, w *world) {
	c, root := w.answered()
	running := w.win(w.next(c))
	w.append(fenceOf(running), 0, opening("half of it"))
	d := w.deleteTurn(c, root.Turn)
	require.Equal(t, 2, d.Turns)
	require.Len(t, d.Ended, 1)
	require.Equal(t, []any{running.Reply.ID, turns.StatusInFlight}, []any{d.Ended[0].Reply.ID, d.Ended[0].Reply.Status})
	require.Zero(t, w.rows(c, "reply_chunks"))
	require.Equal(t, "deleted", w.callOf(c, running.Call.ID).WasteCause)
	require.False(t, w.checkpoint(fenceOf(running), 11).Held)
	require.False(t, w.end(completing(running, 11, whole("half of it and more"))).Won)
	w.finish(completing(w.win(w.next(c)), 0, whole("the conversation goes on")))
}

func aDeletedTurnsHeldReplyEnds(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.hold(claim.Reply.ID)
	d := w.deleteTurn(c, claim.Turn)
	require.Equal(t, turns.StatusHeld, d.Ended[0].Reply.Status)
	equal(t, []turns.OpenCall{openOf(claim.Call)}, d.Ended[0].OpenCalls, ageless)
	require.Equal(t, turns.ClassAmbiguous, w.callOf(c, claim.Call.ID).Class)
}

func anErasedTurnIsSaidToBeDeleted(t *testing.T, w *world) {
	c, root := w.answered()
	below := w.answeredBelow(c, root.Reply.ID.Row())
	w.deleteTurn(c, root.Turn)
	for _, claim := range []turns.Claim{root, below} {
		for _, id := range []turns.RowID{claim.Turn.Row(), claim.Reply.ID.Row()} {
			_, err := w.Store.FindTurn(w.ctx, c.key, id)
			require.ErrorIs(t, err, turns.ErrTurnDeleted)
			_, err = w.Store.NewestLeaf(w.ctx, c.key, id, 10)
			require.ErrorIs(t, err, turns.ErrTurnDeleted)
		}
		_, err := w.Store.ReadReply(w.ctx, c.key, claim.Reply.ID)
		require.ErrorIs(t, err, turns.ErrTurnDeleted)
	}
	_, err := w.Store.FindTurn(w.ctx, c.key, newTurnID().Row())
	require.ErrorIs(t, err, turns.ErrNotFound)
}

func anErasedTurnIsOnNoList(t *testing.T, w *world) {
	c, root := w.answered()
	kept, gone := w.answeredBelow(c, root.Reply.ID.Row()), w.answeredBelow(c, root.Reply.ID.Row())
	w.deleteTurn(c, gone.Turn)
	require.Empty(t, w.entries(c, gone.Turn))
	require.Equal(t, []turns.TurnID{kept.Turn}, w.entries(c, kept.Turn)[kept.Turn].Siblings)
	leaf, err := w.Store.NewestLeaf(w.ctx, c.key, root.Turn.Row(), 100)
	require.NoError(t, err)
	require.Equal(t, kept.Reply.ID.Row(), leaf)
	st, err := w.Store.Lookup(w.ctx, turns.LookupQuery{Key: c.key, Turn: newTurnID(), Parent: gone.Turn.Row()})
	require.NoError(t, err)
	require.False(t, st.ParentFound)
}

func theEndsMoveOut(t *testing.T, w *world) {
	c, root := w.answered()
	second := w.answeredBelow(c, root.Reply.ID.Row())
	w.answeredBelow(c, second.Reply.ID.Row())
	before := w.lookup(c, root.Turn)
	w.deleteTurn(c, second.Turn)
	st := w.lookup(c, root.Turn)
	require.Equal(t, []any{before.Version + 1, before.NextSeq, root.Reply.ID.Row(), root.Turn},
		[]any{st.Version, st.NextSeq, st.Leaf, st.LastTurn})
	w.deleteTurn(c, root.Turn)
	st = w.lookup(c, root.Turn)
	require.True(t, st.Leaf.IsZero())
	require.True(t, st.LastTurn.IsZero())
	w.finish(completing(w.win(w.next(c)), 0, whole("a new beginning")))
}

func aDeletionAboveAMark(t *testing.T, w *world) {
	c, root := w.answered()
	second := w.answeredBelow(c, root.Reply.ID.Row())
	third := w.answeredBelow(c, second.Reply.ID.Row())
	require.Equal(t, 1, w.deleteTurn(c, third.Turn).Turns)
	require.Equal(t, 2, w.deleteTurn(c, root.Turn).Turns)
	w.isMark(third.Turn)
	require.EqualValues(t, 3, w.rows(c, "turns"))
}

func aTurnInLineIsDeleted(t *testing.T, w *world) {
	c, root := w.answered()
	turn := newTurnID()
	w.exec("INSERT INTO turns (conversation_key, id, role, seq, content, input_hash, waiting, create_time)"+
		" SELECT conversation_key, %s, 'user', 100, '[]', input_hash, 'line', create_time FROM turns WHERE id = %s", turn.UUID, root.Turn.UUID)
	require.Equal(t, 1, w.deleteTurn(c, turn).Turns)
	w.isMark(turn)
	require.Equal(t, root.Reply.ID.Row(), w.lookup(c, turn).Leaf)
}

func aTurnsDeletionMovesTheVersion(_ *testing.T, w *world) {
	c, root := w.answered()
	second := w.answeredBelow(c, root.Reply.ID.Row())
	next, again := w.next(c), w.regenerate(c, second.Turn)
	w.deleteTurn(c, second.Turn)
	w.lose(next)
	w.lose(again)
}

func nothingIsRestoredIntoAnErasedTurn(t *testing.T, w *world) {
	c, claim := w.answered()
	lost := w.restoring(claim)
	w.deleteTurn(c, claim.Turn)
	lost.ExpectVersion = w.lookup(c, claim.Turn).Version
	w.unchanged(func() {
		won, err := w.Store.Restore(w.ctx, lost)
		require.NoError(t, err)
		require.False(t, won)
	})
}

func aTurnDeletedAgain(t *testing.T, w *world) {
	c, claim := w.answered()
	w.deleteTurn(c, claim.Turn)
	w.unchanged(func() { require.Equal(t, turns.Deletion{}, w.deleteTurn(c, claim.Turn)) })
}

func onlyAStoredTurnIsDeleted(t *testing.T, w *world) {
	c, claim := w.answered()
	other, theirs := w.answered()
	refused := func(key turns.ConversationKey, turn turns.TurnID, want error) {
		t.Helper()
		w.unchanged(func() {
			_, err := w.Store.DeleteTurn(w.ctx, key, turn, manyRows)
			require.ErrorIs(t, err, want)
		})
	}
	refused(c.key, newTurnID(), turns.ErrNotFound)
	refused(c.key, theirs.Turn, turns.ErrNotFound)
	refused(c.key, turns.TurnID(claim.Reply.ID), turns.ErrNotFound)
	refused(newConversation().key, claim.Turn, turns.ErrNotFound)
	w.deleteConversation(other)
	refused(other.key, theirs.Turn, turns.ErrDeleted)
}

func tooMuchIsRefused(t *testing.T, w *world) {
	c, root := w.answered()
	w.answeredBelow(c, root.Reply.ID.Row())
	w.unchanged(func() {
		_, err := w.Store.DeleteTurn(w.ctx, c.key, root.Turn, 3)
		require.Equal(t, turns.CodeWrongState, turns.CodeOf(err))
	})
	d, err := w.Store.DeleteTurn(w.ctx, c.key, root.Turn, 4)
	require.NoError(t, err)
	require.Equal(t, 2, d.Turns)
}

func aDeletionAndAClaimAtOnce(t *testing.T, w *world) {
	for range 20 {
		c, root := w.answered()
		next := w.next(c)
		var won bool
		var both sync.WaitGroup
		both.Go(func() {
			results, err := w.Store.Claim(context.WithoutCancel(w.ctx), []turns.Claim{next})
			won = err == nil && results[0].Won
		})
		w.deleteTurn(c, root.Turn)
		both.Wait()
		require.Zero(t, w.count("SELECT count(*) FROM turns WHERE role = 'assistant' AND conversation_key = %s", c.key))
		if won {
			w.isMark(next.Turn)
			require.Equal(t, "deleted", w.callOf(c, next.Call.ID).WasteCause)
		} else {
			require.Nil(t, w.lookup(c, next.Turn).Turn)
		}
	}
}

func anErasedTurnGoesWithItsConversation(t *testing.T, w *world) {
	c, root := w.answered()
	w.answeredBelow(c, root.Reply.ID.Row())
	w.deleteTurn(c, root.Turn)
	w.deleteConversation(c)
	w.erase(c, 1)
	require.Zero(t, w.rows(c, "turns"))
}

package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func conversationDeletions() []promise {
	return []promise{
		{"of an erased conversation its mark and its calls are left, and no content", ofAnErasedConversationItsMarkIsLeft},
		{"a deletion ends the running reply and closes its calls by a guess", aDeletionEndsTheRunningReply},
		{"a deletion ends a held reply and closes its calls by a guess", aDeletionEndsAHeldReply},
		{"a call that was not sent is closed as such by a deletion", aDeletionKnowsWhatWasNotSent},
		{"what a call's maker knows takes the place of a deletion's guess", aGuessGivesWay},
		{"from the mark on nothing is read and all is said to be deleted", nothingIsReadFromTheMarkOn},
		{"a claim that was computed before a deletion is lost", aDeletionMovesTheVersion},
		{"a deleted reply does not come back, is not settled and does not grow", aDeletedReplyDoesNotComeBack},
		{"a deletion again changes nothing", aDeletionAgainChangesNothing},
		{"a conversation that is missing is not deleted", aMissingConversationIsNotDeleted},
		{"erasing goes on in pieces until nothing is left", erasingGoesOnInPieces},
		{"erasing takes a turn that was put below a later reply", erasingTakesATurnOutOfOrder},
		{"erasing closes a call that nobody closed", erasingClosesALeftCall},
		{"a conversation that is not deleted is not erased", onlyWhatIsDeletedIsErased},
		{"a deletion leaves other conversations alone", aDeletionIsOfOneConversation},
	}
}

func (w *world) deleteConversation(c conversation) turns.Deletion {
	w.t.Helper()
	d, err := w.Store.DeleteConversation(w.ctx, c.key)
	require.NoError(w.t, err)
	return d
}

// erase erases a conversation to its end, and counts the pieces.
func (w *world) erase(c conversation, limit int) (pieces int) {
	w.t.Helper()
	for {
		left, err := w.Store.EraseConversation(w.ctx, c.key, limit)
		require.NoError(w.t, err)
		if pieces++; !left {
			return pieces
		}
		require.Less(w.t, pieces, 1000, "erasing goes on for ever")
	}
}

// rows counts the rows of a conversation in a table.
func (w *world) rows(c conversation, table string) int64 {
	return w.count("SELECT count(*) FROM "+table+" WHERE conversation_key = %s", c.key)
}

func ofAnErasedConversationItsMarkIsLeft(t *testing.T, w *world) {
	c, first := w.answered()
	w.exec("UPDATE conversations SET title = 'a title', spent_tokens = 7 WHERE conversation_key = %s", c.key)
	w.exec("INSERT INTO conversation_defaults (conversation_key, version, defaults, create_time)"+
		" SELECT conversation_key, 1, '{}', create_time FROM conversations WHERE conversation_key = %s", c.key)
	second := w.next(c)
	second.Call.Body = []byte("what was said")
	w.win(second)
	w.append(fenceOf(second), 0, opening("half"))
	require.Len(t, w.deleteConversation(c).Ended, 1)
	keys, err := w.Store.ConversationsToErase(w.ctx, 10)
	require.NoError(t, err)
	require.Equal(t, []turns.ConversationKey{c.key}, keys)
	w.erase(c, 100)
	for _, table := range []string{"turns", "reply_chunks", "conversation_defaults", "reply_takeovers"} {
		require.Zero(t, w.rows(c, table), table)
	}
	require.EqualValues(t, 2, w.rows(c, "provider_calls"), "what it cost stays")
	require.Zero(t, w.count("SELECT count(*) FROM provider_calls WHERE request_body IS NOT NULL AND conversation_key = %s", c.key))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM conversations WHERE title = '' AND defaults = '' AND subject = ''"+
		" AND leaf_id IS NULL AND spent_tokens = 7 AND tenant = 'tenant' AND erased_at IS NOT NULL AND conversation_key = %s", c.key))
	require.Empty(t, w.conversation(c).Labels)
	keys, err = w.Store.ConversationsToErase(w.ctx, 10)
	require.NoError(t, err)
	require.Empty(t, keys)
	require.True(t, w.lookup(c, first.Turn).Deleted)
}

func aDeletionEndsTheRunningReply(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.append(fenceOf(claim), 0, opening("half of it"))
	d := w.deleteConversation(c)
	require.Len(t, d.Ended, 1)
	require.Equal(t, claim.Reply.ID, d.Ended[0].Reply.ID)
	require.Equal(t, turns.StatusInFlight, d.Ended[0].Reply.Status)
	equal(t, []turns.OpenCall{openOf(claim.Call)}, d.Ended[0].OpenCalls, ageless)
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM turns WHERE status = 'abandoned' AND reason = 'deleted' AND id = %s", claim.Reply.ID.UUID))
	call := w.callOf(c, claim.Call.ID)
	require.Equal(t, turns.ClassAmbiguous, call.Class)
	require.Equal(t, turns.Usage{Input: 29, Output: 4, Wasted: 33, Source: turns.SourceEstimated, Calls: 1}, call.Usage)
	require.Equal(t, "deleted", call.WasteCause)
	require.False(t, w.checkpoint(fenceOf(claim), 11).Held)
	require.False(t, w.end(completing(claim, 11, whole("half of it and more"))).Won)
}

// callOf is a row of the ledger.
func (w *world) callOf(c conversation, id turns.CallID) turns.LedgerCall {
	w.t.Helper()
	calls, err := w.Store.ListCalls(w.ctx, turns.LedgerQuery{Filter: turns.LedgerFilter{Tenant: c.tenant, Key: &c.key}, Limit: 100})
	require.NoError(w.t, err)
	for _, call := range calls {
		if call.ID == id {
			return call
		}
	}
	w.t.Fatalf("no call %s", id)
	return turns.LedgerCall{}
}

func aDeletionEndsAHeldReply(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.hold(claim.Reply.ID)
	d := w.deleteConversation(c)
	require.Len(t, d.Ended, 1)
	require.Equal(t, turns.StatusHeld, d.Ended[0].Reply.Status)
	require.Equal(t, turns.ClassAmbiguous, w.callOf(c, claim.Call.ID).Class)
	held, err := w.Store.HeldReplies(w.ctx, turns.HeldQuery{Tenant: c.tenant, Limit: 10})
	require.NoError(t, err)
	require.Empty(t, held)
	result, err := w.Store.ResolveHeld(w.ctx, turns.Resolution{Fence: turns.Fence{Key: c.key, Reply: claim.Reply.ID, Epoch: 1},
		Verb: turns.VerbAdopt, Status: turns.StatusComplete, Content: []turns.Piece{whole("late")}, Length: 6})
	require.NoError(t, err)
	require.False(t, result.Won)
}

func aDeletionKnowsWhatWasNotSent(t *testing.T, w *world) {
	c := newConversation()
	claim := w.first(c)
	claim.Call.Unsent = true
	w.win(claim)
	w.deleteConversation(c)
	call := w.callOf(c, claim.Call.ID)
	require.Equal(t, turns.ClassNotSent, call.Class)
	require.Equal(t, turns.Usage{Calls: 1}, call.Usage)
}

func aGuessGivesWay(t *testing.T, w *world) {
	for _, erased := range []bool{false, true} {
		c, claim := w.fresh()
		w.deleteConversation(c)
		if erased {
			w.erase(c, 100)
		}
		known := closing(c.key, claim.Call.ID, turns.ClassAmbiguous)
		known.WasteCause = "lost"
		require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{*known}))
		require.Equal(t, known.Usage, w.callOf(c, claim.Call.ID).Usage)
		again := *known
		again.Usage.Input++
		require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{again}))
		require.Equal(t, known.Usage, w.callOf(c, claim.Call.ID).Usage, "what was known is not overwritten")
	}
}

func nothingIsReadFromTheMarkOn(t *testing.T, w *world) {
	c, claim := w.answered()
	w.deleteConversation(c)
	for _, erased := range []bool{false, true} {
		if erased {
			w.erase(c, 100)
		}
		_, err := w.Store.ReadReply(w.ctx, c.key, claim.Reply.ID)
		require.ErrorIs(t, err, turns.ErrDeleted)
		_, err = w.Store.FindTurn(w.ctx, c.key, claim.Turn.Row())
		require.ErrorIs(t, err, turns.ErrDeleted)
		_, err = w.Store.NewestLeaf(w.ctx, c.key, claim.Turn.Row(), 100)
		require.ErrorIs(t, err, turns.ErrDeleted)
		replies, err := w.Store.RepliesTo(w.ctx, c.key, claim.Turn, 10)
		require.NoError(t, err)
		require.Empty(t, replies)
		require.Empty(t, w.entries(c, claim.Turn))
		path, err := w.Store.ReadPath(w.ctx, c.key, claim.Reply.ID.Row(), turns.PathLimit{Rows: 10, Bytes: 1000})
		require.NoError(t, err)
		require.Empty(t, path)
		views, err := w.Store.ReadLogs(w.ctx, []turns.LogPosition{{Key: c.key, Reply: claim.Reply.ID}})
		require.NoError(t, err)
		require.Equal(t, make([]turns.LogView, 1), views)
		_, err = w.Store.RequestStop(w.ctx, c.key, claim.Turn, 0, turns.TurnID{})
		require.ErrorIs(t, err, turns.ErrNotFound)
		st := w.lookup(c, claim.Turn)
		require.Equal(t, []any{true, true}, []any{st.Exists, st.Deleted})
		require.Nil(t, st.Turn)
		require.Nil(t, st.Live)
	}
}

func aDeletionMovesTheVersion(_ *testing.T, w *world) {
	c, claim := w.answered()
	next, regenerate := w.next(c), w.regenerate(c, claim.Turn)
	w.deleteConversation(c)
	w.lose(next)
	w.lose(regenerate)
	next.ExpectVersion++
	w.lose(next)
	w.erase(c, 100)
	w.lose(w.first(c))
}

func aDeletedReplyDoesNotComeBack(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.bury(w.worker)
	won, err := w.Store.Sweep(w.ctx, sweeping(claim, 0))
	require.NoError(t, err)
	require.True(t, won)
	w.deleteConversation(c)
	late := completing(claim, 0, whole("late"))
	w.unchanged(func() {
		won, err := w.Store.Settle(w.ctx, late)
		require.NoError(t, err)
		require.False(t, won, "settled")
		won, err = w.Store.Salvage(w.ctx, late)
		require.NoError(t, err)
		require.False(t, won, "salvaged")
		won, err = w.Store.Revive(w.ctx, turns.Revival{Fence: fenceOf(claim), Owner: w.worker, Deadline: hour})
		require.NoError(t, err)
		require.False(t, won, "revived")
	})
}

func aDeletionAgainChangesNothing(t *testing.T, w *world) {
	c, _ := w.fresh()
	w.deleteConversation(c)
	for range 2 {
		w.unchanged(func() { require.Equal(t, turns.Deletion{}, w.deleteConversation(c)) })
		w.erase(c, 100)
	}
	w.unchanged(func() { w.erase(c, 100) })
}

func aMissingConversationIsNotDeleted(t *testing.T, w *world) {
	_, err := w.Store.DeleteConversation(w.ctx, newConversation().key)
	require.ErrorIs(t, err, turns.ErrNotFound)
	left, err := w.Store.EraseConversation(w.ctx, newConversation().key, 10)
	require.NoError(t, err)
	require.False(t, left)
}

func erasingGoesOnInPieces(t *testing.T, w *world) {
	c, first := w.answered()
	for range 4 {
		w.finish(completing(w.win(w.next(c)), 0, whole("a")))
	}
	w.win(w.regenerate(c, first.Turn))
	w.deleteConversation(c)
	require.EqualValues(t, 11, w.rows(c, "turns"))
	left, err := w.Store.EraseConversation(w.ctx, c.key, 4)
	require.NoError(t, err)
	require.True(t, left)
	require.EqualValues(t, 7, w.rows(c, "turns"))
	require.Equal(t, 2, w.erase(c, 4))
	require.Zero(t, w.rows(c, "turns"))
}

func erasingTakesATurnOutOfOrder(t *testing.T, w *world) {
	c, first := w.answered()
	second := w.next(c)
	w.finish(completing(w.win(second), 0, whole("a")))
	again := w.win(w.regenerate(c, first.Turn))
	w.exec("UPDATE turns SET parent_id = %s WHERE id = %s", again.Reply.ID.UUID, second.Turn.UUID)
	w.deleteConversation(c)
	w.erase(c, 1)
	require.Zero(t, w.rows(c, "turns"))
}

func erasingClosesALeftCall(t *testing.T, w *world) {
	c, claim := w.answered()
	w.exec("UPDATE provider_calls SET class = '', end_time = NULL WHERE call_id = %s", claim.Call.ID.UUID)
	w.deleteConversation(c)
	w.erase(c, 100)
	require.Equal(t, turns.ClassAmbiguous, w.callOf(c, claim.Call.ID).Class)
}

func onlyWhatIsDeletedIsErased(t *testing.T, w *world) {
	c, _ := w.answered()
	w.unchanged(func() { require.Equal(t, 1, w.erase(c, 10)) })
}

func aDeletionIsOfOneConversation(t *testing.T, w *world) {
	c, _ := w.fresh()
	other, running := w.fresh()
	before := w.lookup(other, running.Turn)
	w.deleteConversation(c)
	w.erase(c, 100)
	after := w.lookup(other, running.Turn)
	require.Equal(t, before.Version, after.Version)
	require.Equal(t, turns.StatusInFlight, after.Running.Status)
	require.EqualValues(t, 2, w.rows(other, "turns"))
	require.True(t, w.checkpoint(fenceOf(running), 0, opening("on")).Held)
}

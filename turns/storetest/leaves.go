package storetest

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func leaves() []promise {
	return []promise{
		{"the newest branch leads to a leaf", theNewestBranchLeadsToALeaf},
		{"a turn's live reply is followed, though another is newer", theLiveReplyIsFollowed},
		{"a row with nothing below it is its own leaf", aLeafIsItsOwn},
		{"a turn in line is on no way to a leaf", aTurnInLineIsNoLeaf},
		{"the way to a leaf ends at its limit", theWayToALeafIsBounded},
		{"a row of nobody has no leaf", nobodyHasNoLeaf},
		{"a select moves the leaf below the reply that it makes live", aSelectMovesTheLeafBelow},
		{"a select of a live reply moves the leaf alone", aSelectOfALiveReplyMovesTheLeaf},
		{"a select of a live reply needs one that is complete, in its own turn, at its version", aSelectOfALiveReplyNeedsIt},
		{"of very many siblings the turn and the newest are named", siblingsAreBounded},
		{"of very many replies the newest are read", repliesAreBounded},
	}
}

func (w *world) leafOf(c conversation, from turns.RowID) turns.RowID {
	w.t.Helper()
	leaf, err := w.Store.NewestLeaf(w.ctx, c.key, from, 100)
	require.NoError(w.t, err)
	return leaf
}

func theNewestBranchLeadsToALeaf(t *testing.T, w *world) {
	c, root := w.answered()
	older := w.answeredBelow(c, root.Reply.ID.Row())
	w.answeredBelow(c, older.Reply.ID.Row())
	newer := w.answeredBelow(c, root.Reply.ID.Row())
	end := w.answeredBelow(c, newer.Reply.ID.Row())
	require.Equal(t, end.Reply.ID.Row(), w.leafOf(c, root.Turn.Row()))
	require.Equal(t, end.Reply.ID.Row(), w.leafOf(c, root.Reply.ID.Row()))
}

func theLiveReplyIsFollowed(t *testing.T, w *world) {
	c, first, second := w.twoReplies()
	end := w.answeredBelow(c, first.Reply.ID.Row())
	require.Equal(t, second.Reply.ID.Row(), w.leafOf(c, first.Turn.Row()))
	require.True(t, w.choose(w.selection(c, first.Turn, first.Reply.ID)))
	require.Equal(t, end.Reply.ID.Row(), w.leafOf(c, first.Turn.Row()))
	failed := w.win(w.regenerate(c, end.Turn))
	w.finish(abandoning(failed, 0, turns.ReasonProviderError))
	require.Equal(t, failed.Reply.ID.Row(), w.leafOf(c, first.Turn.Row()), "of replies that are all abandoned the newest")
}

func aLeafIsItsOwn(t *testing.T, w *world) {
	c, claim := w.answered()
	require.Equal(t, claim.Reply.ID.Row(), w.leafOf(c, claim.Reply.ID.Row()))
}

func aTurnInLineIsNoLeaf(t *testing.T, w *world) {
	c, claim := w.answered()
	second := w.answeredBelow(c, claim.Reply.ID.Row())
	third := w.answeredBelow(c, second.Reply.ID.Row())
	w.exec("DELETE FROM turns WHERE id = %s", third.Reply.ID.UUID)
	w.exec("UPDATE turns SET waiting = 'line' WHERE id = %s", third.Turn.UUID)
	require.Equal(t, second.Reply.ID.Row(), w.leafOf(c, claim.Turn.Row()))
	w.exec("UPDATE turns SET parent_id = NULL WHERE id = %s", third.Turn.UUID)
	require.Equal(t, []turns.TurnID{claim.Turn}, w.entries(c, claim.Turn)[claim.Turn].Siblings)
}

func theWayToALeafIsBounded(t *testing.T, w *world) {
	c, ids := w.line(10)
	for limit, want := range map[int]turns.RowID{1: ids[19], 4: ids[16], 20: ids[0], 21: ids[0]} {
		leaf, err := w.Store.NewestLeaf(w.ctx, c.key, ids[19], limit)
		require.NoError(t, err)
		require.Equal(t, want, leaf)
	}
}

func nobodyHasNoLeaf(t *testing.T, w *world) {
	c, _ := w.answered()
	_, err := w.Store.NewestLeaf(w.ctx, c.key, newReplyID().Row(), 10)
	require.ErrorIs(t, err, turns.ErrNotFound)
}

func aSelectMovesTheLeafBelow(t *testing.T, w *world) {
	c, first, _ := w.twoReplies()
	end := w.answeredBelow(c, first.Reply.ID.Row())
	s := w.selection(c, first.Turn, first.Reply.ID)
	s.Leaf = end.Reply.ID.Row()
	require.True(t, w.choose(s))
	require.Equal(t, s.Leaf, w.lookup(c, first.Turn).Leaf)
}

// liveSelection moves the leaf to a reply that is live.
func (w *world) liveSelection(c conversation, claim turns.Claim) turns.Selection {
	w.t.Helper()
	return turns.Selection{Key: c.key, ExpectVersion: w.lookup(c, claim.Turn).Version, Turn: claim.Turn, Select: claim.Reply.ID, Live: true}
}

func aSelectOfALiveReplyMovesTheLeaf(t *testing.T, w *world) {
	c, root := w.answered()
	edit := w.answeredBelow(c, root.Reply.ID.Row())
	w.answeredBelow(c, root.Reply.ID.Row())
	before := w.lookup(c, edit.Turn)
	require.True(t, w.choose(w.liveSelection(c, edit)))
	st := w.lookup(c, edit.Turn)
	require.Equal(t, []any{before.Version + 1, edit.Reply.ID.Row()}, []any{st.Version, st.Leaf})
	equal(t, before.Live, st.Live, cmpopts.IgnoreFields(turns.Reply{}, "Age"))
	require.Zero(t, w.slotVersion(edit.Turn))
}

func aSelectOfALiveReplyNeedsIt(_ *testing.T, w *world) {
	c, first, second := w.twoReplies()
	w.passed(w.liveSelection(c, first))
	late := w.liveSelection(c, second)
	late.ExpectVersion--
	w.passed(late)
	both := w.liveSelection(c, second)
	both.Supersede = first.Reply.ID
	w.passed(both)
	other := w.answeredBelow(c, second.Reply.ID.Row())
	elsewhere := w.liveSelection(c, other)
	elsewhere.Turn = first.Turn
	w.passed(elsewhere)
	running := w.win(w.next(c))
	w.passed(w.liveSelection(c, running))
}

// siblings adds n user turns beside each other below a parent, in order.
func (w *world) siblings(c conversation, parent turns.RowID, n int) (ids []turns.TurnID) {
	w.t.Helper()
	below := "NULL"
	if !parent.IsZero() {
		below = w.ID(parent.UUID)
	}
	for i := range n {
		id := newTurnID()
		w.exec("INSERT INTO turns (conversation_key, id, role, parent_id, seq, content, input_hash, create_time)"+
			" SELECT conversation_key, %s, 'user', "+below+", "+strconv.Itoa(1000+i)+", '[]', (SELECT input_hash FROM turns"+
			" WHERE conversation_key = c.conversation_key AND role = 'user' LIMIT 1), create_time FROM conversations c"+
			" WHERE conversation_key = %s", id.UUID, c.key)
		ids = append(ids, id)
	}
	return ids
}

func siblingsAreBounded(t *testing.T, w *world) {
	c, root := w.answered()
	for _, parent := range []turns.RowID{{}, root.Reply.ID.Row()} {
		ids := w.siblings(c, parent, turns.MaxSiblings+20)
		shown := w.entries(c, ids[0])[ids[0]].Siblings
		require.Equal(t, append([]turns.TurnID{ids[0]}, ids[len(ids)-turns.MaxSiblings+1:]...), shown)
		newest := ids[len(ids)-1]
		require.Equal(t, ids[len(ids)-turns.MaxSiblings:], w.entries(c, newest)[newest].Siblings)
		w.exec("DELETE FROM turns WHERE seq >= 1000 AND conversation_key = %s", c.key)
	}
}

func repliesAreBounded(t *testing.T, w *world) {
	c, claim := w.answered()
	ids := []turns.ReplyID{claim.Reply.ID}
	for range 4 {
		again := w.regenerate(c, claim.Turn)
		w.finish(completing(w.win(again), 0, whole("a")))
		ids = append(ids, again.Reply.ID)
	}
	replies, err := w.Store.RepliesTo(w.ctx, c.key, claim.Turn, 3)
	require.NoError(t, err)
	var read []turns.ReplyID
	for _, r := range replies {
		read = append(read, r.ID)
	}
	require.Equal(t, ids[2:], read)
}

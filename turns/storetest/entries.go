package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func entries() []promise {
	return []promise{
		{"an entry shows the live reply without content and the number of replies", anEntryShowsTheLiveReply},
		{"an entry without a live reply shows the newest", anEntryShowsTheNewest},
		{"an entry names all turns that share its parent, oldest first", anEntryNamesItsSiblings},
		{"turns that are missing have no entry", missingTurnsHaveNoEntry},
	}
}

func (w *world) entries(c conversation, ids ...turns.TurnID) map[turns.TurnID]turns.Entry {
	w.t.Helper()
	shown, err := w.Store.Entries(w.ctx, c.key, ids)
	require.NoError(w.t, err)
	return shown
}

func anEntryShowsTheLiveReply(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(abandoning(claim, 0, turns.ReasonShutdown))
	second := w.win(w.again(c, claim.Turn))
	w.finish(completing(second, 0, whole("a")))
	// A later attempt that failed hides nothing.
	require.NoError(t, w.plant(second, claim.Turn, "abandoned", "shutdown", "create_time"))
	e := w.entries(c, claim.Turn)[claim.Turn]
	require.Equal(t, second.Reply.ID, e.Reply.ID)
	require.Empty(t, e.Reply.Content)
	require.Equal(t, uint32(3), e.Reply.Length)
	require.Equal(t, 3, e.ReplyCount)
	require.Equal(t, []turns.TurnID{claim.Turn}, e.Siblings)
}

func anEntryShowsTheNewest(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(abandoning(claim, 0, turns.ReasonShutdown))
	second := w.win(w.again(c, claim.Turn))
	w.append(fenceOf(second), 0, opening("a"))
	require.Equal(t, uint32(2), w.entries(c, claim.Turn)[claim.Turn].Reply.Length)
	w.finish(abandoning(second, 2, turns.ReasonShutdown, opening("a")))
	e := w.entries(c, claim.Turn)[claim.Turn]
	require.Equal(t, second.Reply.ID, e.Reply.ID)
	require.Equal(t, 2, e.ReplyCount)
}

func anEntryNamesItsSiblings(t *testing.T, w *world) {
	c, root := w.fresh()
	w.finish(completing(root, 0, whole("a")))
	var below []turns.TurnID
	for range 3 {
		next := w.next(c)
		next.NewTurn.Parent = root.Reply.ID.Row()
		w.finish(completing(w.win(next), 0, whole("b")))
		below = append(below, next.Turn)
	}
	otherRoot := w.next(c)
	otherRoot.NewTurn.Parent = turns.RowID{}
	w.finish(completing(w.win(otherRoot), 0, whole("c")))
	_, elsewhere := w.fresh()
	shown := w.entries(c, root.Turn, below[1], otherRoot.Turn, elsewhere.Turn)
	require.Len(t, shown, 3)
	require.Equal(t, below, shown[below[1]].Siblings)
	require.Equal(t, []turns.TurnID{root.Turn, otherRoot.Turn}, shown[root.Turn].Siblings)
	require.Equal(t, []turns.TurnID{root.Turn, otherRoot.Turn}, shown[otherRoot.Turn].Siblings)
}

func missingTurnsHaveNoEntry(t *testing.T, w *world) {
	c, claim := w.fresh()
	require.Empty(t, w.entries(c, newTurnID(), turns.TurnID(claim.Reply.ID)))
}

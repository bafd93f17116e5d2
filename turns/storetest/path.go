package storetest

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func paths() []promise {
	return []promise{
		{"a path goes from a row to the root, newest first", aPathGoesToTheRoot},
		{"a path has at most so many rows", aPathIsBounded},
		{"a path ends with the row that takes it to so many bytes", aPathIsBoundedInBytes},
		{"a path of a row that does not exist is empty", aPathOfNothingIsEmpty},
		{"no path begins at an erased row or at a turn in line", noPathBeginsWhereNoPlaceIs},
		{"a path follows parents and leaves siblings out", aPathLeavesSiblingsOut},
		{"a path carries the content of both kinds of rows", aPathCarriesContent},
	}
}

func (w *world) path(c conversation, from turns.RowID, limit int) []turns.PathRow {
	w.t.Helper()
	rows, err := w.Store.ReadPath(w.ctx, c.key, from, turns.PathLimit{Rows: limit, Bytes: 1 << 20})
	require.NoError(w.t, err)
	return rows
}

func idsOf(rows []turns.PathRow) (ids []turns.RowID) {
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}

// line completes n turns one below the other and gives the rows' ids, newest first.
func (w *world) line(n int) (conversation, []turns.RowID) {
	c, claim := w.fresh()
	ids := []turns.RowID{claim.Reply.ID.Row(), claim.Turn.Row()}
	for range n - 1 {
		w.finish(completing(claim, 0, whole("a")))
		claim = w.win(w.next(c))
		ids = append([]turns.RowID{claim.Reply.ID.Row(), claim.Turn.Row()}, ids...)
	}
	w.finish(completing(claim, 0, whole("a")))
	return c, ids
}

func aPathGoesToTheRoot(t *testing.T, w *world) {
	c, ids := w.line(4)
	rows := w.path(c, ids[0], 100)
	require.Equal(t, ids, idsOf(rows))
	for i, row := range rows[:len(rows)-1] {
		require.Equal(t, rows[i+1].ID, row.Parent)
	}
	require.True(t, rows[len(rows)-1].Parent.IsZero())
	require.Equal(t, ids[3:], idsOf(w.path(c, ids[3], 100)))
}

func noPathBeginsWhereNoPlaceIs(t *testing.T, w *world) {
	c, root := w.answered()
	gone := w.answeredBelow(c, root.Reply.ID.Row())
	w.deleteTurn(c, gone.Turn)
	running := w.win(w.next(c))
	waiting := w.enqueue(c)
	for _, id := range []turns.RowID{gone.Turn.Row(), gone.Reply.ID.Row(), waiting.Row()} {
		require.Empty(t, w.path(c, id, 10))
	}
	require.Len(t, w.path(c, running.Reply.ID.Row(), 10), 4)
}

func aPathIsBounded(t *testing.T, w *world) {
	c, ids := w.line(3)
	require.Equal(t, ids[:4], idsOf(w.path(c, ids[0], 4)))
	require.Equal(t, ids[:1], idsOf(w.path(c, ids[0], 1)))
}

func aPathIsBoundedInBytes(t *testing.T, w *world) {
	c, ids := w.line(6)
	for bytes, last := 1, 0; bytes < 2000; bytes *= 2 {
		rows, err := w.Store.ReadPath(w.ctx, c.key, ids[0], turns.PathLimit{Rows: 100, Bytes: bytes})
		require.NoError(t, err)
		require.NotEmpty(t, rows, "the first row is always read")
		require.GreaterOrEqual(t, len(rows), last)
		require.Equal(t, ids[:len(rows)], idsOf(rows))
		last = len(rows)
	}
	one, err := w.Store.ReadPath(w.ctx, c.key, ids[0], turns.PathLimit{Rows: 100, Bytes: 1})
	require.NoError(t, err)
	require.Len(t, one, 1)
}

func aPathOfNothingIsEmpty(t *testing.T, w *world) {
	c, _ := w.line(1)
	_, others := w.line(1)
	require.Empty(t, w.path(c, turns.RowID{UUID: uuid.New()}, 10))
	require.Empty(t, w.path(c, others[0], 10))
}

func aPathLeavesSiblingsOut(t *testing.T, w *world) {
	c, ids := w.line(2)
	beside := w.next(c)
	beside.NewTurn.Parent = ids[2]
	w.win(beside)
	require.Equal(t, append([]turns.RowID{beside.Reply.ID.Row(), beside.Turn.Row()}, ids[2:]...),
		idsOf(w.path(c, beside.Reply.ID.Row(), 10)))
	require.Equal(t, ids, idsOf(w.path(c, ids[0], 10)))
}

func aPathCarriesContent(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.append(fenceOf(claim), 0, opening("par"))
	rows := w.path(c, claim.Reply.ID.Row(), 10)
	require.Equal(t, []turns.Piece{opening("par")}, rows[0].Reply.Content, "in flight: as far as it is stored")
	w.finish(completing(claim, 4, whole("partial no more")))
	rows = w.path(c, claim.Reply.ID.Row(), 10)
	require.Nil(t, rows[0].User)
	require.Equal(t, []turns.Piece{whole("partial no more")}, rows[0].Reply.Content)
	require.Equal(t, turns.StopEndTurn, rows[0].Reply.StopReason)
	require.Nil(t, rows[1].Reply)
	require.Equal(t, claim.NewTurn.Content, rows[1].User.Content)
	require.Equal(t, c.id, rows[1].User.Conversation)
}

package storetest

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func pathEnds() []promise {
	return []promise{
		{"a path ends with the row that is named", aPathEndsWithARow},
		{"a path ends where the newest reply by a model began", aPathEndsWhereAReplyBegan},
		{"a path passes by what other models made, what failed and what runs", aPathPassesByOtherReplies},
		{"a path ends where a superseded reply began", aPathEndsWhereASupersededReplyBegan},
		{"a path is bounded in tokens while it knows no row to end with", aPathIsBoundedInTokens},
	}
}

func (w *world) pathTo(c conversation, from turns.RowID, limit turns.PathLimit) []turns.RowID {
	w.t.Helper()
	if limit.Rows == 0 {
		limit.Rows = 100
	}
	limit.Bytes = 1 << 20
	rows, err := w.Store.ReadPath(w.ctx, c.key, from, limit)
	require.NoError(w.t, err)
	return idsOf(rows)
}

// below completes a turn below a conversation's leaf, made by a model from a window's start on, and gives its rows, newest
// first, before those there were.
func (w *world) below(c conversation, ids []turns.RowID, model string, start turns.RowID, text string) []turns.RowID {
	w.t.Helper()
	claim := w.next(c)
	claim.Reply.Route.Model, claim.Reply.WindowStart = model, start
	w.win(claim)
	w.finish(completing(claim, 0, whole(text)))
	return append([]turns.RowID{claim.Reply.ID.Row(), claim.Turn.Row()}, ids...)
}

func aPathEndsWithARow(t *testing.T, w *world) {
	c, ids := w.line(5)
	for i, id := range ids {
		require.Equal(t, ids[:i+1], w.pathTo(c, ids[0], turns.PathLimit{Until: id, Model: "demo", Tokens: 1}))
	}
	elsewhere := turns.RowID{UUID: uuid.New()}
	require.Equal(t, ids, w.pathTo(c, ids[0], turns.PathLimit{Until: elsewhere}), "a row that is not on the path ends nothing")
	require.Equal(t, ids[:3], w.pathTo(c, ids[0], turns.PathLimit{Until: elsewhere, Rows: 3}))
}

func aPathEndsWhereAReplyBegan(t *testing.T, w *world) {
	c, ids := w.line(3) // each of these began at its own turn
	require.Equal(t, ids[:2], w.pathTo(c, ids[0], turns.PathLimit{Model: "demo"}))
	start := ids[3]
	for range 4 {
		ids = w.below(c, ids, "demo", start, "a")
		got := w.pathTo(c, ids[0], turns.PathLimit{Model: "demo", Tokens: 1})
		require.Equal(t, ids[:len(ids)-2], got, "it ends at the start, however many tokens it has")
		require.Equal(t, start, got[len(got)-1])
	}
	require.Equal(t, ids[:3], w.pathTo(c, ids[0], turns.PathLimit{Model: "demo", Rows: 3}))
	gone := w.below(c, ids, "demo", turns.RowID{UUID: uuid.New()}, "a")
	require.Equal(t, gone, w.pathTo(c, gone[0], turns.PathLimit{Model: "demo"}), "a start that is not on the path ends nothing")
}

func aPathPassesByOtherReplies(t *testing.T, w *world) {
	c, ids := w.line(3)
	start := ids[1]
	ids = w.below(c, ids, "demo", start, "a")
	ids = w.below(c, ids, "other", ids[1], "a")
	failed := w.win(w.next(c))
	w.finish(abandoning(failed, 0, turns.ReasonCancelled))
	ids = append([]turns.RowID{failed.Turn.Row()}, ids...)
	if st := w.lookup(c, turns.TurnID{}); st.Leaf == failed.Reply.ID.Row() {
		ids = append([]turns.RowID{failed.Reply.ID.Row()}, ids...)
	}
	running := w.win(w.next(c))
	ids = append([]turns.RowID{running.Reply.ID.Row(), running.Turn.Row()}, ids...)
	got := w.pathTo(c, ids[0], turns.PathLimit{Model: "demo"})
	require.Equal(t, start, got[len(got)-1])
	require.Equal(t, ids[:len(got)], got)
	require.Equal(t, ids, w.pathTo(c, ids[0], turns.PathLimit{}), "no model is no end")
	require.Equal(t, ids, w.pathTo(c, ids[0], turns.PathLimit{Model: "unknown"}))
}

func aPathEndsWhereASupersededReplyBegan(t *testing.T, w *world) {
	c, ids := w.line(3)
	turn := turns.TurnID(ids[1])
	second := w.regenerate(c, turn)
	second.Reply.Route.Model = "other"
	w.win(second)
	require.Equal(t, ids[:2], w.pathTo(c, ids[0], turns.PathLimit{Model: "demo"}), "superseded, it still is what it was")
}

func aPathIsBoundedInTokens(t *testing.T, w *world) {
	c, ids := w.line(4)
	ids = w.below(c, ids, "demo", ids[3], strings.Repeat("long ", 1000))
	require.Equal(t, ids[:1], w.pathTo(c, ids[0], turns.PathLimit{Tokens: 1}))
	require.Equal(t, ids[:1], w.pathTo(c, ids[0], turns.PathLimit{Tokens: 5000 / turns.LeastBytesPerToken}))
	require.Equal(t, ids, w.pathTo(c, ids[0], turns.PathLimit{Tokens: 5000}))
	last := 0
	for tokens := 5000 / turns.LeastBytesPerToken; tokens < 1000; tokens++ {
		got := w.pathTo(c, ids[0], turns.PathLimit{Tokens: tokens})
		require.GreaterOrEqual(t, len(got), last)
		require.Equal(t, ids[:len(got)], got)
		last = len(got)
	}
	require.Equal(t, len(ids), last)
	huge := w.below(c, ids, "other", ids[1], strings.Repeat("x", 4*turns.LeastBytesOfRow))
	most := turns.LeastBytesOfRow/turns.LeastBytesPerToken + 1
	require.Len(t, w.pathTo(c, huge[0], turns.PathLimit{Tokens: most}), 1)
	require.Greater(t, len(w.pathTo(c, huge[0], turns.PathLimit{Tokens: most + 1})), 1, "no row counts for more than that")
}

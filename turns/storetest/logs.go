package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func logs() []promise {
	return []promise{
		{"a running reply's log is read from the chunk that holds the offset", aLogIsReadFromItsChunk},
		{"a running reply's log is read in whole chunks up to a bound", aLogIsReadUpToABound},
		{"an ended reply's log is read from the offset, at most the bound", anEndedLogIsReadFromTheOffset},
		{"an offset inside a rune reads from where the rune starts", aRuneIsReadWhole},
		{"a log that is read part by part is the whole log, whatever the bound", partByPart},
		{"an empty log is read from its start, which is its end", anEmptyLogIsRead},
		{"bounds of a batch are each its own", boundsAreEachItsOwn},
	}
}

// view reads one part of a log.
func (w *world) view(p turns.LogPosition) turns.LogView {
	w.t.Helper()
	views, err := w.Store.ReadLogs(w.ctx, []turns.LogPosition{p})
	require.NoError(w.t, err)
	require.Len(w.t, views, 1)
	return views[0]
}

// inChunks is a running reply whose log has chunks at 0, 3 and 5, and ends at 8.
func (w *world) inChunks() (conversation, turns.Claim) {
	w.t.Helper()
	c, claim := w.fresh()
	length := w.append(fenceOf(claim), 0, opening("ab"))
	length = w.append(fenceOf(claim), length, more("cd"))
	w.append(fenceOf(claim), length, more("efg"))
	return c, claim
}

func aLogIsReadFromItsChunk(t *testing.T, w *world) {
	c, claim := w.inChunks()
	all := []turns.Piece{opening("ab"), more("cd"), more("efg")}
	for from, first := range []struct {
		starts uint32
		chunk  int
	}{{0, 0}, {0, 0}, {0, 0}, {3, 1}, {3, 1}, {5, 2}, {5, 2}, {5, 2}, {8, 3}} {
		view := w.view(turns.LogPosition{Key: c.key, Reply: claim.Reply.ID, From: uint32(from)})
		require.Equal(t, claim.Reply.ID, view.Reply.ID, from)
		require.Equal(t, first.starts, view.From, from)
		equal(t, all[first.chunk:], view.Pieces, cmpopts.EquateEmpty())
	}
	equal(t, turns.LogView{}, w.view(turns.LogPosition{Key: c.key, Reply: claim.Reply.ID, From: 9}), cmpopts.EquateEmpty())
}

func aLogIsReadUpToABound(t *testing.T, w *world) {
	c, claim := w.inChunks()
	for _, r := range []struct {
		from, starts uint32
		most         int
		chunks       []turns.Piece
	}{
		{0, 0, 1, []turns.Piece{opening("ab")}},
		{0, 0, 3, []turns.Piece{opening("ab")}},
		{0, 0, 4, []turns.Piece{opening("ab"), more("cd")}},
		{0, 0, 100, []turns.Piece{opening("ab"), more("cd"), more("efg")}},
		{3, 3, 2, []turns.Piece{more("cd")}},
		{4, 3, 1, []turns.Piece{more("cd")}},
		{4, 3, 2, []turns.Piece{more("cd"), more("efg")}},
		{7, 5, 1, []turns.Piece{more("efg")}},
		{8, 8, 1, nil},
	} {
		view := w.view(turns.LogPosition{Key: c.key, Reply: claim.Reply.ID, From: r.from, Max: r.most})
		require.Equal(t, r.starts, view.From, r)
		equal(t, r.chunks, view.Pieces, cmpopts.EquateEmpty())
		require.EqualValues(t, 8, view.Reply.Length, "of the whole log")
	}
}

func anEndedLogIsReadFromTheOffset(t *testing.T, w *world) {
	c, claim := w.fresh()
	second := turns.Piece{Block: 1, Kind: turns.KindThinking, Starts: true, Text: "xy", Ends: true}
	w.finish(completing(claim, 0, whole("abc"), second))
	rest := func(text string) turns.Piece { return turns.Piece{Kind: turns.KindText, Text: text, Ends: true} }
	for _, r := range []struct {
		from   uint32
		most   int
		pieces []turns.Piece
	}{
		{0, 0, []turns.Piece{whole("abc"), second}},
		{1, 0, []turns.Piece{rest("abc"), second}},
		{3, 0, []turns.Piece{rest("c"), second}},
		{4, 0, []turns.Piece{rest(""), second}},
		{5, 0, []turns.Piece{second}},
		{9, 0, nil},
		{1, 2, []turns.Piece{more("ab")}},
		{3, 2, []turns.Piece{rest("c")}},
	} {
		view := w.view(turns.LogPosition{Key: c.key, Reply: claim.Reply.ID, From: r.from, Max: r.most})
		require.Equal(t, claim.Reply.ID, view.Reply.ID)
		require.Equal(t, r.from, view.From)
		require.Nil(t, view.Reply.Content)
		equal(t, r.pieces, view.Pieces, cmpopts.EquateEmpty())
	}
	equal(t, turns.LogView{}, w.view(turns.LogPosition{Key: c.key, Reply: claim.Reply.ID, From: 10}), cmpopts.EquateEmpty())
}

func aRuneIsReadWhole(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a👩é")))
	for from, starts := range []uint32{0, 1, 2, 2, 2, 2, 6, 6, 8, 9} {
		view := w.view(turns.LogPosition{Key: c.key, Reply: claim.Reply.ID, From: uint32(from)})
		require.Equal(t, starts, view.From, from)
		require.Equal(t, 9-starts, lengthOf(view.Pieces), from)
	}
}

func partByPart(t *testing.T, w *world) {
	c, claim := w.inChunks()
	read := func(most int) []turns.Piece {
		log := new(turns.Log)
		for log.Len() < 8 {
			view := w.view(turns.LogPosition{Key: c.key, Reply: claim.Reply.ID, From: log.Len(), Max: most})
			require.Equal(t, log.Len(), view.From)
			require.NotEmpty(t, view.Pieces)
			for _, p := range view.Pieces {
				require.NoError(t, log.Append(p))
			}
		}
		pieces, _, err := log.From(0, 0)
		require.NoError(t, err)
		return pieces
	}
	for most := range 10 {
		require.Equal(t, []turns.Piece{opening("abcdefg")}, read(most), most)
	}
	w.finish(completing(claim, 8, opening("abcdefg")))
	for most := range 10 {
		require.Equal(t, []turns.Piece{opening("abcdefg")}, read(most), most)
	}
}

func anEmptyLogIsRead(t *testing.T, w *world) {
	c, claim := w.fresh()
	for range 2 {
		view := w.view(turns.LogPosition{Key: c.key, Reply: claim.Reply.ID, Max: 10})
		require.Equal(t, claim.Reply.ID, view.Reply.ID)
		require.Zero(t, view.From)
		require.Empty(t, view.Pieces)
		w.end(abandoning(claim, 0, turns.ReasonShutdown))
	}
}

func boundsAreEachItsOwn(t *testing.T, w *world) {
	c, claim := w.inChunks()
	at := turns.LogPosition{Key: c.key, Reply: claim.Reply.ID}
	some, rest := at, at
	some.Max, rest.From = 1, 4
	views, err := w.Store.ReadLogs(w.ctx, []turns.LogPosition{some, rest, at})
	require.NoError(t, err)
	require.Equal(t, []turns.Piece{opening("ab")}, views[0].Pieces)
	require.Equal(t, []turns.Piece{more("cd"), more("efg")}, views[1].Pieces)
	require.Len(t, views[2].Pieces, 3)
	require.Equal(t, []uint32{0, 3, 0}, []uint32{views[0].From, views[1].From, views[2].From})
}

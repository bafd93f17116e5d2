package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func checkpoints() []promise {
	return []promise{
		{"a checkpoint appends, and the log reads back at every offset", aCheckpointAppends},
		{"a checkpoint from another length is refused", aCheckpointFromElsewhereIsRefused},
		{"a checkpoint sent again holds and appends nothing", aCheckpointAgainAppendsNothing},
		{"a checkpoint of nothing only asks", anEmptyCheckpointAsks},
		{"a checkpoint learns that a stop was asked for", aCheckpointLearnsOfAStop},
		{"a checkpoint after the sweep is refused and writes no chunk", aStaleCheckpointWritesNothing},
		{"a checkpoint stores the response's id as soon as it is known", aCheckpointStoresTheResponseID},
		{"a checkpoint rewrites no chunk", aCheckpointRewritesNothing},
		{"checkpoints of a batch are answered each", checkpointsAreAnsweredEach},
	}
}

// logPieces is a log of two blocks in uneven runs, with runes of every length.
func logPieces() []turns.Piece {
	return []turns.Piece{
		{Block: 0, Kind: turns.KindThinking, Starts: true},
		{Block: 0, Kind: turns.KindThinking, Text: "héé"},
		{Block: 0, Kind: turns.KindThinking, Text: "é", Ends: true},
		{Block: 1, Kind: turns.KindText, Starts: true, Text: "wörld "},
		{Block: 1, Kind: turns.KindText, Text: "👩‍👩‍👧"},
		{Block: 1, Kind: turns.KindText, Ends: true},
		{Block: 2, Kind: turns.KindToolUse, Starts: true, ToolUseID: "t1", ToolName: "f", Text: `{"a": 1}`, Ends: true},
	}
}

// sameLog asserts that pieces make the same log, however it is cut.
func sameLog(t reporter, want, got []turns.Piece) {
	t.Helper()
	wanted, err := turns.LogOf(want)
	require.NoError(t, err)
	log, err := turns.LogOf(got)
	require.NoError(t, err)
	wantPieces, _, err := wanted.From(0, 0)
	require.NoError(t, err)
	gotPieces, _, err := log.From(0, 0)
	require.NoError(t, err)
	equal(t, wantPieces, gotPieces)
}

func (w *world) viewFrom(c conversation, id turns.ReplyID, from uint32) turns.LogView {
	w.t.Helper()
	views, err := w.Store.ReadLogs(w.ctx, []turns.LogPosition{{Key: c.key, Reply: id, From: from}})
	require.NoError(w.t, err)
	require.Len(w.t, views, 1)
	return views[0]
}

func aCheckpointAppends(t *testing.T, w *world) {
	c, claim := w.fresh()
	pieces := logPieces()
	var length uint32
	for i, p := range pieces {
		length = w.append(fenceOf(claim), length, p)
		r := w.read(c, claim.Reply.ID)
		require.Equal(t, length, r.Length)
		sameLog(t, pieces[:i+1], r.Content)
	}
	var from uint32
	for i := range pieces {
		require.Equal(t, pieces[i:], w.viewFrom(c, claim.Reply.ID, from).Pieces)
		from += pieces[i].Len()
	}
	require.Empty(t, w.viewFrom(c, claim.Reply.ID, length).Pieces)
}

func aCheckpointFromElsewhereIsRefused(t *testing.T, w *world) {
	_, claim := w.fresh()
	length := w.append(fenceOf(claim), 0, opening("abc"))
	w.unchanged(func() {
		require.False(t, w.checkpoint(fenceOf(claim), 0, opening("x")).Held)
		require.False(t, w.checkpoint(fenceOf(claim), length-1, more("x"), more("y")).Held)
		require.False(t, w.checkpoint(fenceOf(claim), length+1, more("x")).Held)
	})
}

func aCheckpointAgainAppendsNothing(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.append(fenceOf(claim), 0, opening("abc"))
	w.unchanged(func() {
		require.True(t, w.checkpoint(fenceOf(claim), 0, opening("abc")).Held, "the stored log is as long as it says")
	})
}

func anEmptyCheckpointAsks(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.unchanged(func() {
		require.Equal(t, turns.CheckpointResult{Held: true}, w.checkpoint(fenceOf(claim), 0))
	})
	length := w.append(fenceOf(claim), 0, opening("abc"))
	w.unchanged(func() {
		require.True(t, w.checkpoint(fenceOf(claim), length).Held)
		require.False(t, w.checkpoint(fenceOf(claim), length+1).Held)
	})
}

func aCheckpointLearnsOfAStop(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.askToStop(claim.Reply.ID)
	require.Equal(t, turns.CheckpointResult{Held: true, CancelRequested: true}, w.checkpoint(fenceOf(claim), 0, opening("a")))
	require.Equal(t, turns.CheckpointResult{Held: true, CancelRequested: true}, w.checkpoint(fenceOf(claim), 2))
}

func aStaleCheckpointWritesNothing(t *testing.T, w *world) {
	_, claim := w.fresh()
	length := w.append(fenceOf(claim), 0, opening("abc"))
	w.bury(w.worker)
	require.True(t, w.sweep(sweeping(claim, length, opening("abc"))))
	w.unchanged(func() { require.Zero(t, w.checkpoint(fenceOf(claim), length, more("late"))) })
	require.Zero(t, w.count("SELECT count(*) FROM reply_chunks"))
}

func aCheckpointStoresTheResponseID(t *testing.T, w *world) {
	_, claim := w.fresh()
	ask := func(cp turns.Checkpoint) {
		cp.Fence = fenceOf(claim)
		results, err := w.Store.Checkpoint(w.ctx, []turns.Checkpoint{cp})
		require.NoError(t, err)
		require.True(t, results[0].Held)
	}
	ask(turns.Checkpoint{ResponseID: "resp-1"})
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM turns WHERE provider_response_id = 'resp-1'"))
	ask(turns.Checkpoint{To: 2, Pieces: []turns.Piece{opening("a")}})
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM turns WHERE provider_response_id = 'resp-1'"), "no id leaves the known one")
}

func aCheckpointRewritesNothing(t *testing.T, w *world) {
	_, claim := w.fresh()
	length := w.append(fenceOf(claim), 0, opening("abc"))
	chunks := func() [][]any {
		rows, err := w.Query(w.ctx, "SELECT start_offset, end_offset, pieces FROM reply_chunks ORDER BY start_offset")
		require.NoError(t, err)
		return rows
	}
	before := chunks()
	w.append(fenceOf(claim), length, more("d"))
	equal(t, before, chunks()[:1])
	require.Len(t, chunks(), 2)
}

func checkpointsAreAnsweredEach(t *testing.T, w *world) {
	var batch []turns.Checkpoint
	for range 4 {
		_, claim := w.fresh()
		batch = append(batch, turns.Checkpoint{Fence: fenceOf(claim), To: 2, Pieces: []turns.Piece{opening("a")}})
	}
	batch[1].Fence.Epoch = 2
	w.askToStop(batch[2].Fence.Reply)
	batch[3].To, batch[3].Pieces = 0, nil
	results, err := w.Store.Checkpoint(w.ctx, batch)
	require.NoError(t, err)
	require.Equal(t, []turns.CheckpointResult{{Held: true}, {}, {Held: true, CancelRequested: true}, {Held: true}}, results)
	require.EqualValues(t, 2, w.count("SELECT count(*) FROM reply_chunks"))
}

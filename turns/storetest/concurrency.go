package storetest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func concurrency() []promise {
	return []promise{
		{"of many claims of one turn at once, one is won", oneOfManyClaims},
		{"of many claims in one conversation at once, one is won", oneOfManyTurns},
		{"of an ending and a sweep at once, one is won", anEndingOrASweep},
		{"of a checkpoint and a sweep at once, no text is lost or left behind", aCheckpointOrASweep},
		{"of a burial and a renewal at once, the worker lives or can't renew", aBurialOrARenewal},
		{"many reads at once all end", manyReads},
		{"batches over the same conversations in opposite orders all end", oppositeBatches},
	}
}

// atOnce runs acts at the same time and waits for all.
func atOnce(n int, act func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			act(i)
		})
	}
	close(start)
	wg.Wait()
}

// tryClaims sends claims at once and counts the won.
func (w *world) tryClaims(claims []turns.Claim) (won int64) {
	var n atomic.Int64
	atOnce(len(claims), func(i int) {
		results, err := w.Store.Claim(w.ctx, claims[i:i+1])
		if err == nil && results[0].Won {
			n.Add(1)
		}
	})
	return n.Load()
}

func oneOfManyClaims(t *testing.T, w *world) {
	c := newConversation()
	same := w.first(c)
	claims := make([]turns.Claim, 8)
	for i := range claims {
		claims[i] = w.first(c)
		claims[i].Turn, claims[i].NewTurn = same.Turn, same.NewTurn
	}
	require.EqualValues(t, 1, w.tryClaims(claims))
	require.EqualValues(t, 2, w.count("SELECT count(*) FROM turns"))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls"))
}

func oneOfManyTurns(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	claims := make([]turns.Claim, 8)
	for i := range claims {
		claims[i] = w.next(c)
	}
	require.EqualValues(t, 1, w.tryClaims(claims))
	require.EqualValues(t, 4, w.count("SELECT count(*) FROM turns"))
	require.EqualValues(t, 2, w.lookup(c, claim.Turn).Version)
}

func anEndingOrASweep(t *testing.T, w *world) {
	for range 10 {
		c, claim := w.fresh()
		w.passDeadline(claim.Reply.ID)
		var ended, swept bool
		atOnce(2, func(i int) {
			if i == 0 {
				results, err := w.Store.End(w.ctx, []turns.Ending{completing(claim, 0, whole("a"))})
				ended = err == nil && results[0].Won
			} else {
				won, err := w.Store.Sweep(w.ctx, expiring(claim, 0))
				swept = err == nil && won
			}
		})
		require.NotEqual(t, ended, swept)
		require.Equal(t, ended, w.read(c, claim.Reply.ID).Status == turns.StatusComplete)
	}
	require.Zero(t, w.count("SELECT count(*) FROM provider_calls WHERE end_time IS NULL"))
}

func aCheckpointOrASweep(t *testing.T, w *world) {
	for range 10 {
		c, claim := w.fresh()
		w.passDeadline(claim.Reply.ID)
		var held, swept bool
		atOnce(2, func(i int) {
			if i == 0 {
				results, err := w.Store.Checkpoint(w.ctx, []turns.Checkpoint{
					{Fence: fenceOf(claim), To: 2, Pieces: []turns.Piece{opening("a")}}})
				held = err == nil && results[0].Held
			} else {
				won, err := w.Store.Sweep(w.ctx, expiring(claim, 0))
				swept = err == nil && won
			}
		})
		require.NotEqual(t, held, swept)
		r := w.read(c, claim.Reply.ID)
		require.Equal(t, held, r.Length == 2)
		require.Equal(t, r.Length, lengthOf(r.Content))
	}
}

func aBurialOrARenewal(t *testing.T, w *world) {
	for range 10 {
		id := w.register()
		w.expireLease(id)
		var renewed error
		var buried []turns.WorkerID
		atOnce(2, func(i int) {
			if i == 0 {
				renewed = w.Store.RenewLease(w.ctx, id, time.Hour)
			} else {
				buried, _ = w.Store.BuryWorkers(w.ctx)
			}
		})
		if len(buried) > 0 {
			require.ErrorIs(t, renewed, turns.ErrBuried)
		} else {
			require.NoError(t, renewed)
		}
	}
}

// Far more than any pool has connections, on a store that has not run these statements yet.
func manyReads(t *testing.T, w *world) {
	c, claim := w.fresh()
	var failed atomic.Int64
	atOnce(64, func(i int) {
		var err error
		switch i % 4 {
		case 0:
			_, err = w.Store.Lookup(w.ctx, turns.LookupQuery{Key: c.key, Turn: claim.Turn})
		case 1:
			_, err = w.Store.ReadReply(w.ctx, c.key, claim.Reply.ID)
		case 2:
			_, err = w.Store.ReadPath(w.ctx, c.key, claim.Reply.ID.Row(), turns.PathLimit{Rows: 10, Bytes: 1 << 20})
		case 3:
			_, err = w.Store.StaleReplies(w.ctx, turns.StaleQuery{Limit: 10})
		}
		if err != nil {
			failed.Add(1)
		}
	})
	require.Zero(t, failed.Load())
}

func oppositeBatches(t *testing.T, w *world) {
	var forth, back []turns.Checkpoint
	for range 8 {
		_, claim := w.fresh()
		forth = append(forth, turns.Checkpoint{Fence: fenceOf(claim), To: 2, Pieces: []turns.Piece{opening("a")}})
	}
	for i := range forth {
		back = append(back, forth[len(forth)-1-i])
	}
	var failed atomic.Int64
	atOnce(8, func(i int) {
		batch := forth
		if i%2 == 1 {
			batch = back
		}
		if _, err := w.Store.Checkpoint(w.ctx, batch); err != nil {
			failed.Add(1)
		}
	})
	require.Zero(t, failed.Load())
	require.EqualValues(t, 8, w.count("SELECT count(*) FROM reply_chunks"))
}

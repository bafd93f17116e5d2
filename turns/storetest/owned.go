package storetest

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func owned() []promise {
	return []promise{
		{"an owner's replies in flight are found, oldest first", ownedRepliesAreFound},
		{"an owner's replies that have ended, and those of others, are not", onlyOwnedRepliesInFlight},
		{"only replies claimed longer ago than asked are found", ownedRepliesHaveAnAge},
	}
}

func (w *world) owned(owner turns.WorkerID, age time.Duration, limit int) []turns.Fence {
	w.t.Helper()
	fences, err := w.Store.OwnedReplies(w.ctx, owner, age, limit)
	require.NoError(w.t, err)
	return fences
}

// backdate moves a claim into the past, as far as the one worker's lease is long.
func (w *world) backdate(id turns.ReplyID) {
	w.exec("UPDATE turns SET create_time = (SELECT min(create_time) FROM turns) - (lease_until - start_time) FROM workers WHERE id = %s", id.UUID)
}

func ownedRepliesAreFound(t *testing.T, w *world) {
	var want []turns.Fence
	for range 3 {
		_, claim := w.fresh()
		want = append(want, fenceOf(claim))
	}
	equal(t, want, w.owned(w.worker, 0, 10))
	equal(t, want[:2], w.owned(w.worker, 0, 2))
	c, claim := w.lost()
	r := reviving(claim, w.worker)
	require.True(t, w.revive(r))
	equal(t, []turns.Fence{{Key: c.key, Reply: claim.Reply.ID, Epoch: 2, Owner: w.worker}}, w.owned(w.worker, 0, 10))
}

func onlyOwnedRepliesInFlight(t *testing.T, w *world) {
	w.answered()
	_, held := w.fresh()
	w.hold(held.Reply.ID)
	_, over := w.fresh()
	w.finish(abandoning(over, 0, turns.ReasonShutdown))
	other := w.worker
	w.worker = w.register()
	w.fresh()
	require.Empty(t, w.owned(other, 0, 10))
	require.Empty(t, w.owned(turns.WorkerID{UUID: uuid.New()}, 0, 10))
	require.Len(t, w.owned(w.worker, 0, 10), 1)
}

func ownedRepliesHaveAnAge(t *testing.T, w *world) {
	_, young := w.fresh()
	_, claim := w.fresh()
	w.backdate(claim.Reply.ID)
	require.Equal(t, []turns.Fence{fenceOf(claim)}, w.owned(w.worker, time.Minute, 10))
	require.Equal(t, []turns.Fence{fenceOf(claim), fenceOf(young)}, w.owned(w.worker, 0, 10))
}

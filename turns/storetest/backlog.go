package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// Backlog implements turns.Store.
func (f *Faults) Backlog(ctx context.Context, most int) (turns.Backlog, error) {
	return spoil(ctx, f, "Backlog", func() (turns.Backlog, error) { return f.store.Backlog(ctx, most) })
}

func backlogs() []promise {
	return []promise{
		{"held replies are counted up to a limit, over all tenants", countsHeld},
		{"the oldest claim has an age while it is in flight", agesTheOldestClaim},
	}
}

func countsHeld(t *testing.T, w *world) {
	require.Equal(t, turns.Backlog{}, w.backlog(10))
	for range 3 {
		_, claim := w.fresh()
		w.hold(claim.Reply.ID)
	}
	require.Equal(t, turns.Backlog{Held: 3}, w.backlog(10))
	require.Equal(t, turns.Backlog{Held: 2}, w.backlog(2))
}

func agesTheOldestClaim(t *testing.T, w *world) {
	_, first := w.fresh()
	before := w.backlog(10).OldestClaim
	require.Positive(t, before)
	require.Less(t, before, time.Hour)
	w.fresh()
	require.Greater(t, w.backlog(10).OldestClaim, before, "a newer one does not make it younger")
	w.hold(first.Reply.ID)
	require.Positive(t, w.backlog(10).OldestClaim)
}

func (w *world) backlog(most int) turns.Backlog {
	w.t.Helper()
	b, err := w.Store.Backlog(w.ctx, most)
	require.NoError(w.t, err)
	return b
}

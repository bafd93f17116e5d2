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
		{"turns in line are counted up to a limit", countsLines},
		{"the database says what time it is", saysTheTime},
		{"the oldest claim has an age while it is in flight", agesTheOldestClaim},
	}
}

func countsHeld(t *testing.T, w *world) {
	none := w.backlog(10)
	none.Now = time.Time{}
	require.Equal(t, turns.Backlog{}, none)
	for range 3 {
		_, claim := w.fresh()
		w.hold(claim.Reply.ID)
	}
	require.Equal(t, 3, w.backlog(10).Held)
	require.Equal(t, 2, w.backlog(2).Held)
}

func countsLines(t *testing.T, w *world) {
	c, _ := w.fresh()
	w.enqueue(c)
	w.enqueue(c)
	require.Equal(t, 2, w.backlog(10).InLine)
	require.Equal(t, 1, w.backlog(1).InLine)
}

func saysTheTime(t *testing.T, w *world) {
	require.WithinDuration(t, time.Now(), w.backlog(1).Now, time.Minute)
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

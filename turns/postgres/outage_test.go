package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/internal/pgtest"
	"github.com/turnd/turnd/turns"
)

// unavailable asserts what every failure to reach the database is, and whether the outcome is known.
func unavailable(t *testing.T, err error, unknown bool) {
	t.Helper()
	require.ErrorIs(t, err, turns.ErrStoreUnavailable)
	if unknown {
		require.ErrorIs(t, err, turns.ErrUnknownOutcome)
	} else {
		require.NotErrorIs(t, err, turns.ErrUnknownOutcome)
	}
}

// writes is every write that can be made to wait by locks on all rows, by name.
func (d database) writes(ctx context.Context, c turns.Claim) map[string]func() (int, error) {
	return map[string]func() (int, error){
		"claim": func() (int, error) {
			_, err := d.store.Claim(ctx, []turns.Claim{newClaim(c.Reply.Owner)})
			return 0, err
		},
		"permit": func() (int, error) {
			_, err := d.store.PermitCalls(ctx, []turns.CallPermit{permitFor(c)})
			return 0, err
		},
		"checkpoint": func() (int, error) { _, err := d.store.Checkpoint(ctx, []turns.Checkpoint{tail(c)}); return 0, err },
		"end":        func() (int, error) { _, err := d.store.End(ctx, []turns.Ending{completing(c)}); return 0, err },
		"close":      func() (int, error) { return 0, d.store.CloseCalls(ctx, []turns.CallOutcome{*completing(c).Call}) },
		"renew":      func() (int, error) { return 0, d.store.RenewLease(ctx, c.Reply.Owner, time.Hour) },
	}
}

const lockEverything = `LOCK TABLE workers, turns, provider_calls IN ACCESS EXCLUSIVE MODE`

func TestAWriteWhoseSessionIsKilledHasAnUnknownOutcome(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	for name, write := range d.writes(t.Context(), c) {
		s := d.begin(t, lockEverything)
		done := start(write)
		_, err := d.rows.Exec(t.Context(), `SELECT pg_terminate_backend($1)`, d.waiting(t))
		require.NoError(t, err)
		a := await(t, done)
		require.Error(t, a.err, name)
		unavailable(t, a.err, true)
		s.commit()
		require.NoError(t, d.store.RenewLease(t.Context(), c.Reply.Owner, time.Hour), "the store goes on")
	}
}

func TestAWriteWhoseContextEndsWhileItRunsHasAnUnknownOutcome(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	for name := range d.writes(t.Context(), c) {
		ctx, cancel := context.WithCancel(t.Context())
		s := d.begin(t, lockEverything)
		done := start(d.writes(ctx, c)[name])
		d.waiting(t)
		cancel()
		a := await(t, done)
		require.ErrorIs(t, a.err, context.Canceled, name)
		unavailable(t, a.err, true)
		s.commit()
	}
}

func TestAWriteThatNeverLeftHasAKnownOutcome(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, write := range d.writes(ctx, c) {
		_, err := write()
		require.ErrorIs(t, err, context.Canceled, name)
		require.NotErrorIs(t, err, turns.ErrUnknownOutcome, name)
	}
}

func TestAReadWhoseSessionIsKilledIsUnavailable(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	d.begin(t, lockEverything)
	done := start(func() (turns.Reply, error) { return d.store.ReadReply(t.Context(), c.Key, c.Reply.ID) })
	_, err := d.rows.Exec(t.Context(), `SELECT pg_terminate_backend($1)`, d.waiting(t))
	require.NoError(t, err)
	unavailable(t, await(t, done).err, false)
}

func TestAFullPoolCostsNoLease(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	ctx, cancel := context.WithCancel(t.Context())
	s := d.begin(t, `LOCK TABLE conversations IN ACCESS EXCLUSIVE MODE`)
	var blocked []<-chan answer[turns.Reply]
	for range 20 {
		blocked = append(blocked, start(func() (turns.Reply, error) { return d.store.ReadReply(ctx, c.Key, c.Reply.ID) }))
	}
	d.waiting(t)

	require.NoError(t, d.store.RenewLease(t.Context(), c.Reply.Owner, time.Hour))
	held, err := d.store.Checkpoint(t.Context(), []turns.Checkpoint{tail(c)})
	require.NoError(t, err)
	require.True(t, held[0].Held)
	e := completing(c)
	e.StoredLength = 3
	ended, err := d.store.End(t.Context(), []turns.Ending{e})
	require.NoError(t, err)
	require.True(t, ended[0].Won)

	cancel()
	for _, done := range blocked {
		require.ErrorIs(t, await(t, done).err, context.Canceled)
	}
	s.commit()
}

func TestSlowEndingsAndCheckpointsCostNoLease(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	s := d.begin(t, `LOCK TABLE turns IN ACCESS EXCLUSIVE MODE`)
	ended := start(func() ([]turns.EndResult, error) { return d.store.End(t.Context(), []turns.Ending{completing(c)}) })
	var asked []<-chan answer[[]turns.CheckpointResult]
	for range 5 {
		asked = append(asked, start(func() ([]turns.CheckpointResult, error) {
			return d.store.Checkpoint(t.Context(), []turns.Checkpoint{{Fence: fenceOf(c)}})
		}))
	}
	require.Eventually(t, func() bool { return d.store.vital.Stat().AcquiredConns() == vitalConns }, patience, time.Millisecond)
	d.waiting(t)

	other := d.worker(t)
	require.NoError(t, d.store.RenewLease(t.Context(), c.Reply.Owner, time.Hour))
	require.NoError(t, d.store.RetireWorker(t.Context(), other))

	s.commit()
	require.NoError(t, await(t, ended).err)
	for _, done := range asked {
		require.NoError(t, await(t, done).err)
	}
}

func TestThePoolsTogetherAreAsLargeAsWasAsked(t *testing.T) {
	d := open(t)
	require.EqualValues(t, 1, d.store.lease.Config().MaxConns)
	require.EqualValues(t, 8, d.store.pool.Config().MaxConns+d.store.vital.Config().MaxConns+d.store.lease.Config().MaxConns)
}

func TestWithoutAServerTheStoreIsUnavailable(t *testing.T) {
	server := pgtest.Alone(t)
	d := databaseOn(t, server.DSN("postgres"))
	c := d.win(t, newClaim(d.worker(t)))
	require.NoError(t, server.Stop())

	_, err := d.store.ReadReply(t.Context(), c.Key, c.Reply.ID)
	unavailable(t, err, false)
	for name, write := range d.writes(t.Context(), c) {
		_, err := write()
		require.ErrorIs(t, err, turns.ErrStoreUnavailable, name)
	}
	_, err = Open(t.Context(), Config{URL: d.dsn})
	unavailable(t, err, false)
}

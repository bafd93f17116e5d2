package postgres

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/internal/pgtest"
	"github.com/turnd/turnd/turns"
)

func TestAfterAFailoverTheStoreGoesOnWithThePromotedServer(t *testing.T) {
	primary, standby := pgtest.Pair(t)
	require.NoError(t, primary.Synchronous(t.Context(), standby))
	d := databaseOn(t, pgtest.FailoverDSN("postgres", primary, standby))
	c := d.win(t, newClaim(d.worker(t)))
	before, err := d.store.Server(t.Context())
	require.NoError(t, err)

	require.NoError(t, primary.Crash())
	_, err = d.store.ReadReply(t.Context(), c.Key, c.Reply.ID)
	retryable(t, err, false)
	for name, write := range d.writes(t.Context(), c) {
		_, err := write()
		require.ErrorIs(t, err, turns.ErrStoreUnavailable, name)
	}

	require.NoError(t, standby.Promote(t.Context()))
	require.NoError(t, d.store.RenewLease(t.Context(), c.Reply.Owner, time.Hour))
	after, err := d.store.Server(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, before.Name, after.Name, "it is another life")
	reply, err := d.store.ReadReply(t.Context(), c.Key, c.Reply.ID)
	require.NoError(t, err)
	require.Equal(t, turns.StatusInFlight, reply.Status)
	d.win(t, newClaim(c.Reply.Owner))
}

// The old primary goes on to answer, so that nothing but its answers tells that it is the old one.
func TestConnectionsToAServerThatBecameReadOnlyAreLeft(t *testing.T) {
	primary, standby := pgtest.Pair(t)
	require.NoError(t, primary.Synchronous(t.Context(), standby))
	d := databaseOn(t, pgtest.FailoverDSN("postgres", primary, standby))
	c := d.win(t, newClaim(d.worker(t)))
	_, err := d.store.Checkpoint(t.Context(), []turns.Checkpoint{tail(c)})
	require.NoError(t, err)
	require.NoError(t, primary.Asynchronous(t.Context()))
	require.NoError(t, standby.Promote(t.Context()))
	require.NoError(t, primary.Configure(t.Context(), "default_transaction_read_only", "on"))

	life, err := promoted(t, standby)
	require.NoError(t, err)
	for name, write := range d.writes(t.Context(), c) {
		_, err := write()
		require.NoError(t, err, name)
	}
	now, err := d.store.Server(t.Context())
	require.NoError(t, err)
	require.Equal(t, life.Name, now.Name)
}

func promoted(t *testing.T, server *pgtest.Server) (turns.ServerLife, error) {
	t.Helper()
	store, err := Open(t.Context(), Config{URL: server.DSN("postgres")})
	require.NoError(t, err)
	defer store.Close()
	return store.Server(t.Context())
}

func TestAStandbyIsNoDatabaseToServe(t *testing.T) {
	primary, standby := pgtest.Pair(t)
	require.NoError(t, pgtest.Migrate(primary.DSN("postgres")))
	_, err := Open(t.Context(), Config{URL: standby.DSN("postgres")})
	require.ErrorIs(t, err, ErrReadOnly)
	retryable(t, err, false)

	// With several hosts the one that takes writes is found, whatever their order and whether the URL asks for it or not.
	store, err := Open(t.Context(), Config{URL: fmt.Sprintf("postgres://postgres@%s,%s/postgres?sslmode=disable", standby.Addr(), primary.Addr())})
	require.NoError(t, err)
	store.Close()
}

// The time limit of a statement ends the wait for a standby that is gone. Postgres then keeps the commit on the primary:
// the outcome is as unknown as it is said to be.
func TestACommitThatWaitsForALostStandbyEndsInTimeWithAnUnknownOutcome(t *testing.T) {
	primary, standby := pgtest.Pair(t)
	d := databaseOn(t, primary.DSN("postgres"))
	worker := d.worker(t)
	require.NoError(t, primary.Synchronous(t.Context(), standby))
	require.NoError(t, standby.Crash())
	d.limit(limits{connect: patience, idle: time.Hour, ping: patience, wait: patience, statement: 500 * time.Millisecond})
	c := newClaim(worker)
	_, err := d.store.Claim(t.Context(), []turns.Claim{c})
	retryable(t, err, true)
	require.Eventually(t, func() bool { return d.claimed(t, c) == 1 }, patience, 10*time.Millisecond, "it is committed on the primary")

	durable, err := d.store.Durability(t.Context())
	require.NoError(t, err)
	require.Equal(t, Durability{Replicated: true}, durable, "fsync is off in tests")
	require.NoError(t, primary.Asynchronous(t.Context()))
	require.NoError(t, d.store.RenewLease(t.Context(), worker, time.Hour))
}

func TestThroughAPoolerEverythingWorksThoughSessionsAreShared(t *testing.T) {
	d := open(t)
	through, err := Open(t.Context(), Config{URL: pgtest.Pooler(t, d.dsn), MaxConns: 12, Pooled: true})
	require.NoError(t, err)
	t.Cleanup(through.Close)
	d.store = through
	worker := d.worker(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				c := newClaim(worker)
				if results, err := through.Claim(t.Context(), []turns.Claim{c}); err != nil || !results[0].Won {
					t.Errorf("claim: %v %v", results, err)
					return
				}
				if _, err := through.Lookup(t.Context(), turns.LookupQuery{Key: c.Key, Turn: c.Turn}); err != nil {
					t.Errorf("lookup: %v", err)
				}
				if results, err := through.End(t.Context(), []turns.Ending{completing(c)}); err != nil || !results[0].Won {
					t.Errorf("end: %v %v", results, err)
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, 40, d.count(t, `SELECT count(*) FROM turns WHERE status = 'complete'`))
	require.NoError(t, through.CheckSchema(t.Context()))
	require.NoError(t, through.RenewLease(t.Context(), worker, time.Hour))
}

package postgres

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/internal/pgtest"
	"github.com/turnd/turnd/turns"
)

// soon are limits for tests in which something does not answer.
var soon = limits{connect: 300 * time.Millisecond, idle: 0, ping: 100 * time.Millisecond, wait: 400 * time.Millisecond, statement: 300 * time.Millisecond}

// reopen makes the store reach its database by another address, with limits that a test can wait for.
func (d *database) reopen(t *testing.T, dsn string) {
	t.Helper()
	store, err := Open(t.Context(), Config{URL: dsn, MaxConns: 8})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	d.store = store
	d.limit(soon)
}

func (d *database) limit(l limits) {
	for _, p := range []*pool{d.store.pool, d.store.vital, d.store.lease} {
		p.limits = l
	}
}

// retryable asserts an answer that tells a client to send the same again after a while.
func retryable(t *testing.T, err error, unknown bool) {
	t.Helper()
	unavailable(t, err, unknown)
	var e *turns.Error
	require.ErrorAs(t, err, &e)
	require.Positive(t, e.RetryAfter)
}

func (d database) claimed(t *testing.T, c turns.Claim) int {
	return d.count(t, `SELECT count(*) FROM turns WHERE id = $1`, c.Reply.ID.UUID)
}

func TestWaitingForAConnectionEndsInTimeAndCostsNoLease(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	s := d.begin(t, `LOCK TABLE conversations IN ACCESS EXCLUSIVE MODE`)
	var blocked []<-chan answer[turns.UserTurn]
	for range d.store.pool.Config().MaxConns {
		blocked = append(blocked, start(func() (turns.UserTurn, error) { return d.store.FindTurn(t.Context(), c.Key, c.Reply.ID.Row()) }))
	}
	require.Eventually(t, func() bool { return d.store.pool.Stat().AcquiredConns() == d.store.pool.Config().MaxConns }, patience, time.Millisecond)
	d.store.pool.limits.wait = 50 * time.Millisecond
	_, err := d.store.Claim(t.Context(), []turns.Claim{newClaim(c.Reply.Owner)})
	retryable(t, err, false)
	_, err = d.store.ReadReply(t.Context(), c.Key, c.Reply.ID)
	retryable(t, err, false)

	require.NoError(t, d.store.RenewLease(t.Context(), c.Reply.Owner, time.Hour))
	_, err = d.store.Checkpoint(t.Context(), []turns.Checkpoint{tail(c)})
	require.NoError(t, err)
	s.commit()
	for _, done := range blocked {
		require.NoError(t, await(t, done).err)
	}
}

// The outcome is known: a statement that the server ends is rolled back.
func TestAStatementThatTheServerEndsHasDoneNothing(t *testing.T) {
	for _, setting := range []string{"statement_timeout", "lock_timeout"} {
		d := open(t)
		worker, whole := d.worker(t), d.store
		d.reopen(t, d.dsn+"&"+setting+"=200")
		d.limit(defaultLimits)
		s := d.begin(t, `LOCK TABLE turns IN ACCESS EXCLUSIVE MODE`)
		c := newClaim(worker)
		_, err := d.store.Claim(t.Context(), []turns.Claim{c})
		retryable(t, err, false)
		s.commit()
		require.Zero(t, d.claimed(t, c), setting)
		d.store = whole
		d.win(t, c)
	}
}

// raising makes every new turn fail with a SQLSTATE, the first times only.
func (d database) raising(t *testing.T, state string, times int) {
	t.Helper()
	require.NoError(t, d.exec(t.Context(), `CREATE SEQUENCE IF NOT EXISTS raised;
		CREATE OR REPLACE FUNCTION raise() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('raised') <= `+strconv.Itoa(times)+` THEN RAISE 'no' USING ERRCODE = '`+state+`'; END IF; RETURN NEW; END $$;
		CREATE OR REPLACE TRIGGER raising BEFORE INSERT ON conversations FOR EACH ROW EXECUTE FUNCTION raise();
		ALTER SEQUENCE raised RESTART`))
}

func TestWhatTheDatabaseAsksToRepeatIsRepeatedButNotForEver(t *testing.T) {
	d := openOwn(t)
	worker := d.worker(t)
	for _, state := range []string{stateSerialization, stateDeadlock} {
		d.raising(t, state, maxTries-1)
		d.win(t, newClaim(worker))

		d.raising(t, state, 1000)
		c := newClaim(worker)
		_, err := d.store.Claim(t.Context(), []turns.Claim{c})
		retryable(t, err, false)
		require.Equal(t, maxTries, d.count(t, `SELECT last_value FROM raised`), state)
		require.Zero(t, d.claimed(t, c))
	}
}

func TestADatabaseWithoutRoomIsUnavailableAndHasDoneNothing(t *testing.T) {
	d := openOwn(t)
	worker := d.worker(t)
	for _, state := range []string{"53100", "53200", "53300", "58030"} {
		d.raising(t, state, 1)
		c := newClaim(worker)
		_, err := d.store.Claim(t.Context(), []turns.Claim{c})
		retryable(t, err, false)
		require.Zero(t, d.claimed(t, c), state)
		d.win(t, c)
	}
}

func TestACommitWhoseAnswerIsLostHasAnUnknownOutcomeAndCanBeReadAgain(t *testing.T) {
	d := open(t)
	worker := d.worker(t)
	w, dsn := wireTo(t, d.dsn)
	d.reopen(t, dsn)
	d.limit(defaultLimits)
	d.win(t, newClaim(worker)) // the connection and the statement are there
	w.mute(true)
	c := newClaim(worker)
	done := start(func() ([]turns.ClaimResult, error) { return d.store.Claim(t.Context(), []turns.Claim{c}) })
	require.Eventually(t, func() bool { return d.claimed(t, c) == 1 }, patience, time.Millisecond, "it is committed")
	w.mute(false)
	w.cut()
	retryable(t, await(t, done).err, true)

	reply, err := d.store.ReadReply(t.Context(), c.Key, c.Reply.ID)
	require.NoError(t, err)
	require.Equal(t, turns.StatusInFlight, reply.Status)
}

func TestARefusedConnectionIsUnavailableAndHasDoneNothing(t *testing.T) {
	d := open(t)
	worker := d.worker(t)
	w, dsn := wireTo(t, d.dsn)
	d.reopen(t, dsn)
	require.NoError(t, w.listen.Close())
	w.cut()
	c := newClaim(worker)
	_, err := d.store.Claim(t.Context(), []turns.Claim{c})
	retryable(t, err, false)
	require.Zero(t, d.claimed(t, c))
}

// A lease is renewed over one connection. One that swallows everything must be left in time for the next renewal.
func TestASilentConnectionCostsOneRenewalAndNoMore(t *testing.T) {
	d := open(t)
	worker := d.worker(t)
	w, dsn := wireTo(t, d.dsn)
	d.reopen(t, dsn)
	l := soon
	l.idle = time.Hour // it was used just now
	d.limit(l)
	require.NoError(t, d.store.RenewLease(t.Context(), worker, time.Hour))
	w.silence(true)
	begun := time.Now()
	retryable(t, d.store.RenewLease(t.Context(), worker, time.Hour), true)
	retryable(t, d.store.RenewLease(t.Context(), worker, time.Hour), false)
	w.silence(false)
	require.Eventually(t, func() bool { return d.store.RenewLease(t.Context(), worker, time.Hour) == nil }, patience, time.Millisecond)
	require.Less(t, time.Since(begun), 5*time.Second, "the closing of the old connection takes longer and is not waited for")
	w.cut()
}

func TestASilentConnectionThatWasIdleCostsNothing(t *testing.T) {
	d := open(t)
	worker := d.worker(t)
	w, dsn := wireTo(t, d.dsn)
	d.reopen(t, dsn)
	require.NoError(t, d.store.RenewLease(t.Context(), worker, time.Hour))
	w.mute(true)
	// The answer to the ping is lost, and the wire is whole again when the next connection is made.
	w.onClient(func() { w.mute(false) })
	require.NoError(t, d.store.RenewLease(t.Context(), worker, time.Hour))
}

func TestEveryCallEndsInTimeThoughNothingAnswers(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	w, dsn := wireTo(t, d.dsn)
	d.reopen(t, dsn)
	for _, p := range []*pool{d.store.pool, d.store.vital, d.store.lease} {
		p.limits.idle = time.Hour
	}
	w.silence(true)
	for name, write := range d.writes(t.Context(), c) {
		done := start(write)
		require.ErrorIs(t, await(t, done).err, turns.ErrStoreUnavailable, name)
	}
	_, err := d.store.ReadReply(t.Context(), c.Key, c.Reply.ID)
	retryable(t, err, false)
	w.silence(false)
	w.cut()
}

func TestAConnectionThatIsNotMadeInTimeIsUnavailable(t *testing.T) {
	d := open(t)
	w, dsn := wireTo(t, d.dsn)
	d.reopen(t, dsn+"&connect_timeout=1")
	d.store.lease.limits.wait = patience
	w.silence(true)
	retryable(t, d.store.RenewLease(t.Context(), turns.WorkerID{UUID: uuid.New()}, time.Hour), false)
	w.silence(false)
	w.cut()
}

func TestARestartOfTheServerIsSurvivedByTheStore(t *testing.T) {
	server := pgtest.Alone(t)
	d := databaseOn(t, server.DSN("postgres"))
	c := d.win(t, newClaim(d.worker(t)))
	d.begin(t, lockEverything)
	writes := d.writes(t.Context(), c)
	var running []<-chan answer[int]
	for _, name := range []string{"claim", "end", "renew"} {
		running = append(running, start(writes[name]))
	}
	require.Eventually(t, func() bool {
		return d.count(t, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`) == len(running)
	}, patience, time.Millisecond)
	require.NoError(t, server.Restart(t.Context()))
	for _, done := range running {
		retryable(t, await(t, done).err, true)
	}
	require.Eventually(t, func() bool { return d.store.RenewLease(t.Context(), c.Reply.Owner, time.Hour) == nil }, patience, time.Millisecond)
	reply, err := d.store.ReadReply(t.Context(), c.Key, c.Reply.ID)
	require.NoError(t, err)
	require.Equal(t, turns.StatusInFlight, reply.Status, "what ran was rolled back")
	life, err := d.store.Server(t.Context())
	require.NoError(t, err)
	require.Less(t, life.Uptime, time.Minute)
}

func TestAServerThatIsStartingUpIsUnavailable(t *testing.T) {
	for _, state := range []string{"57P03", "53300", "28P01", "3D000"} {
		err := mapWrite("claim", notSent{pgError(state)})
		retryable(t, err, false)
	}
	for _, state := range []string{"57P01", "57P02", "08006"} {
		retryable(t, mapWrite("claim", pgError(state)), true)
		retryable(t, mapRead("look", pgError(state)), false)
	}
}

func TestAPoolerThatLosesStatementsIsNamedWithItsRemedy(t *testing.T) {
	for _, state := range []string{"26000", "42P05"} {
		err := mapWrite("claim", pgError(state))
		require.False(t, errors.Is(err, turns.ErrUnknownOutcome))
		require.ErrorContains(t, err, "default_query_exec_mode=cache_describe")
	}
}

func pgError(state string) error { return &pgconn.PgError{Code: state} }

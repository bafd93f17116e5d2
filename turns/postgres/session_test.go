package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// patience bounds every wait of these tests; nothing waits that long unless it fails.
const patience = 20 * time.Second

// session is another worker's transaction that has written and not committed: the pause in the middle of a race.
type session struct {
	t    testing.TB
	conn *pgx.Conn
	tx   pgx.Tx
}

// begin runs statements in a transaction that stays open.
func (d database) begin(t testing.TB, sql string, args ...any) session {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), d.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	s := session{t, conn, tx}
	s.exec(sql, args...)
	return s
}

func (s session) exec(sql string, args ...any) pgconn.CommandTag {
	s.t.Helper()
	tag, err := s.tx.Exec(s.t.Context(), sql, args...)
	require.NoError(s.t, err)
	return tag
}

func (s session) commit() {
	s.t.Helper()
	require.NoError(s.t, s.tx.Commit(s.t.Context()))
}

// answer is what a call of the store gave.
type answer[T any] struct {
	value T
	err   error
}

// start runs a call beside the test.
func start[T any](call func() (T, error)) <-chan answer[T] {
	done := make(chan answer[T], 1)
	go func() {
		value, err := call()
		done <- answer[T]{value, err}
	}()
	return done
}

func await[T any](t *testing.T, done <-chan answer[T]) answer[T] {
	t.Helper()
	select {
	case a := <-done:
		return a
	case <-time.After(patience):
		require.FailNow(t, "the call did not return")
		panic("unreachable")
	}
}

// waiting returns once a backend of this database waits for a lock, and gives its process id.
func (d database) waiting(t *testing.T) (pid int32) {
	t.Helper()
	require.Eventually(t, func() bool {
		err := d.rows.QueryRow(t.Context(), `SELECT pid FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' LIMIT 1`).Scan(&pid)
		return err == nil
	}, patience, time.Millisecond, "nothing waits for a lock")
	return pid
}

// afterWait starts a call that has to wait for a session, commits the session, and gives the call's answer.
func afterWait[T any](t *testing.T, d database, s session, call func() (T, error)) T {
	t.Helper()
	done := start(call)
	d.waiting(t)
	s.commit()
	a := await(t, done)
	require.NoError(t, a.err)
	return a.value
}

// count is the one number that a query gives.
func (d database) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, d.rows.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

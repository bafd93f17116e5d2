package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

func TestAPromotedStandbyHasWhatWasCommittedAndTakesWrites(t *testing.T) {
	for _, synchronous := range []bool{false, true} {
		primary, standby := Pair(t)
		if synchronous {
			require.NoError(t, primary.Synchronous(t.Context(), standby))
		}
		dsn := FailoverDSN("postgres", primary, standby)
		conn := connect(t, dsn)
		_, err := conn.Exec(t.Context(), `CREATE TABLE kept AS SELECT 3 AS n`)
		require.NoError(t, err)
		if !synchronous {
			has := `SELECT to_regclass('kept') IS NOT NULL`
			require.NoError(t, standby.await(t.Context(), has))
		}
		_, err = connect(t, standby.DSN("postgres")).Exec(t.Context(), `INSERT INTO kept VALUES (4)`)
		require.Equal(t, "25006", state(t, err), "a standby takes no writes")

		require.NoError(t, primary.Crash())
		require.NoError(t, standby.Promote(t.Context()))
		again := connect(t, dsn)
		_, err = again.Exec(t.Context(), `INSERT INTO kept VALUES (4)`)
		require.NoError(t, err)
		require.Equal(t, 7, ask[int](t, again, `SELECT sum(n)::int FROM kept`))
	}
}

func TestACommitOfASynchronousPrimaryWaitsForItsStandby(t *testing.T) {
	primary, standby := Pair(t)
	require.NoError(t, primary.Synchronous(t.Context(), standby))
	require.NoError(t, standby.Shutdown())
	conn := connect(t, primary.DSN("postgres"))
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), `CREATE TABLE waits (n int)`)
		done <- err
	}()
	require.NoError(t, primary.await(t.Context(), `SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'`))
	require.NoError(t, standby.Restart(t.Context()))
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(startTimeout):
		require.Fail(t, "the commit did not end with the standby back")
	}

	require.NoError(t, standby.Crash())
	require.NoError(t, primary.Asynchronous(t.Context()))
	_, err := conn.Exec(t.Context(), `CREATE TABLE waits_for_nobody (n int)`)
	require.NoError(t, err)
}

func TestAServerThatIsStartedAgainKeepsItsAddressAndItsData(t *testing.T) {
	server := Alone(t)
	_, err := connect(t, server.DSN("postgres")).Exec(t.Context(), `CREATE TABLE kept AS SELECT 3 AS n`)
	require.NoError(t, err)
	require.NoError(t, server.Crash())
	dsn := server.DSN("postgres")
	require.NoError(t, server.Restart(t.Context()))
	require.Equal(t, dsn, server.DSN("postgres"))
	require.Equal(t, 3, ask[int](t, connect(t, dsn), `SELECT n FROM kept`))
	require.NoError(t, server.Restart(t.Context()))
	require.Equal(t, 3, ask[int](t, connect(t, dsn), `SELECT n FROM kept`))
}

func TestAServerThatBecameReadOnlyIsLeftByTheAddressOfBoth(t *testing.T) {
	primary, other := Alone(t), Alone(t)
	require.NoError(t, primary.Configure(t.Context(), "default_transaction_read_only", "on"))
	conn := connect(t, FailoverDSN("postgres", primary, other))
	require.Equal(t, other.port, ask[int](t, conn, `SELECT current_setting('port')::int`))
}

func TestAPostgresThatCannotBeCopiedSaysSo(t *testing.T) {
	_, err := Standby(t.Context(), "", &Server{bin: t.TempDir()})
	require.ErrorIs(t, err, ErrNoStandby)
}

func TestASettingOfTheCommandLineCannotBeConfigured(t *testing.T) {
	server := Alone(t, Setting("work_mem", "1MB"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.Error(t, server.Configure(ctx, "work_mem", "2MB"))
}

func state(t *testing.T, err error) string {
	t.Helper()
	var answer *pgconn.PgError
	require.ErrorAs(t, err, &answer)
	return answer.Code
}

func TestAPoolerGivesOutFewSessionsToManyClients(t *testing.T) {
	dsn := Pooler(t, Database(t))
	pids := map[int]bool{}
	for range 2 * pools {
		pids[ask[int](t, connect(t, dsn+"&default_query_exec_mode=exec"), `SELECT pg_backend_pid()`)] = true
	}
	require.LessOrEqual(t, len(pids), pools)
}

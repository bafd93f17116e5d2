package pgtest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

func ask[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	var answer T
	require.NoError(t, conn.QueryRow(t.Context(), sql, args...).Scan(&answer))
	return answer
}

func TestEachTestGetsAnEmptyDatabaseOfItsOwn(t *testing.T) {
	first, second := Database(t), Database(t)
	require.NotEqual(t, first, second)
	_, err := connect(t, first).Exec(t.Context(), `CREATE TABLE mine (n int)`)
	require.NoError(t, err)
	tables := ask[int](t, connect(t, second), `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`)
	require.Zero(t, tables)
}

func TestADatabaseIsDroppedWithItsTestThoughSomeoneIsConnected(t *testing.T) {
	var name string
	t.Run("a test that leaves its connection open", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), Database(t))
		require.NoError(t, err)
		name = ask[string](t, conn, `SELECT current_database()`)
	})
	admin := connect(t, shared.admin)
	require.Zero(t, ask[int](t, admin, `SELECT count(*) FROM pg_database WHERE datname = $1`, name))
}

// migrationRuns counts over the whole test binary, as the template is kept for it: also if the tests are run twice.
var migrationRuns atomic.Int32

// migrate is the migration of the template that the tests of this package share.
func migrate(dsn string) error {
	migrationRuns.Add(1)
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(context.Background(), `CREATE TABLE seed AS SELECT 7 AS n`)
	return err
}

func TestAMigrationRunsOnceAndEveryTestHasItsResult(t *testing.T) {
	dsns := make([]string, 4)
	var all sync.WaitGroup
	for i := range dsns {
		all.Go(func() { dsns[i] = Migrated(t, migrate) })
	}
	all.Wait()
	for i, dsn := range dsns {
		conn := connect(t, dsn)
		require.Equal(t, 7, ask[int](t, conn, `SELECT sum(n)::int FROM seed`))
		_, err := conn.Exec(t.Context(), `INSERT INTO seed VALUES ($1)`, i)
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, migrationRuns.Load())
	require.Equal(t, 7, ask[int](t, connect(t, Migrated(t, migrate)), `SELECT sum(n)::int FROM seed`),
		"what a test writes stays out of the template")
}

// verdict is a testing.TB that notes how a test ended instead of ending it.
type verdict struct {
	testing.TB
	how string
}

func (v *verdict) Helper() {}

func (v *verdict) Skipf(format string, args ...any) { v.end("skip: " + fmt.Sprintf(format, args...)) }

func (v *verdict) Fatalf(format string, args ...any) { v.end("fail: " + fmt.Sprintf(format, args...)) }

// Fatal is called by need, before it looks for a server.
func (v *verdict) Fatal(args ...any) { v.end("fail: " + fmt.Sprint(args...)) }

func (v *verdict) end(how string) {
	v.how = how
	runtime.Goexit()
}

// ending runs f as a test would be run and tells how it ended.
func ending(f func(testing.TB)) string {
	v := &verdict{how: "pass"}
	var done sync.WaitGroup
	done.Go(func() { f(v) })
	done.Wait()
	return v.how
}

func TestWithoutAPostgresATestIsSkippedButNotWhereItIsRequired(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		err  error
		want string
	}{
		{"at a desk", nil, ErrNoPostgres, "skip: pgtest: skipped: no Postgres found"},
		{"in CI", map[string]string{"CI": "true"}, ErrNoPostgres, "fail: pgtest: no Postgres found"},
		{"on demand", map[string]string{"TURND_TEST_REQUIRE_POSTGRES": "1"}, ErrNoPostgres, "fail: pgtest: no Postgres"},
		{"one that does not start", nil, fmt.Errorf("disk full"), "fail: pgtest: disk full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ending(func(tb testing.TB) {
				missing(tb, c.err, func(name string) string { return c.env[name] })
			})
			require.Contains(t, got, c.want)
		})
	}
}

func TestAPackageWithoutMainIsToldSo(t *testing.T) {
	var idle cluster
	require.Contains(t, ending(func(tb testing.TB) { idle.need(tb) }), "must call pgtest.Main")
}

func TestAFailedMigrationLeavesNoTemplate(t *testing.T) {
	Database(t) // starts the server
	admin := connect(t, shared.admin)
	const templates = `SELECT count(*) FROM pg_database WHERE datname LIKE 'turnd_template_%'`
	before := ask[int](t, admin, templates)
	_, err := shared.makeTemplate(func(string) error { return fmt.Errorf("no such table") })
	require.ErrorContains(t, err, "migrate: no such table")
	require.Equal(t, before, ask[int](t, admin, templates))
}

func TestOnlyADatabaseURLCanNameAnotherDatabase(t *testing.T) {
	dsn, err := withDatabase("postgres://me:secret@db:5433/app?sslmode=disable", "other")
	require.NoError(t, err)
	require.Equal(t, "postgres://me:secret@db:5433/other?sslmode=disable", dsn)
	for _, bad := range []string{"host=db dbname=app", "mysql://db/app", "postgres://db:port/"} {
		_, err := withDatabase(bad, "other")
		require.ErrorContains(t, err, "TURND_TEST_DATABASE_URL must be of the form")
	}
}

func TestAUsedDatabaseIsEmptyForTheNextTest(t *testing.T) {
	var first string
	t.Run("a test that leaves rows and its connection", func(t *testing.T) {
		first = Reused(t, migrate)
		conn, err := pgx.Connect(t.Context(), first)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), `INSERT INTO seed VALUES (1)`)
		require.NoError(t, err)
	})
	t.Run("the next", func(t *testing.T) {
		again := Reused(t, migrate)
		require.Equal(t, first, again)
		conn := connect(t, again)
		require.Zero(t, ask[int](t, conn, `SELECT count(*) FROM seed`))
		require.Equal(t, 1, ask[int](t, conn, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`))
	})
}

func TestALentDatabaseIsClearedAndItsSessionsStay(t *testing.T) {
	var dsn string
	var conn *pgx.Conn
	t.Run("one", func(t *testing.T) {
		dsn = Lasting(t, migrate)
		var err error
		conn, err = pgx.Connect(t.Context(), dsn)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), `INSERT INTO seed VALUES (1)`)
		require.NoError(t, err)
		require.NoError(t, Clear(t.Context(), connect(t, dsn)))
	})
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	require.Zero(t, ask[int](t, conn, `SELECT count(*) FROM seed`))
	require.NoError(t, Clear(t.Context(), conn))
	require.NotEqual(t, dsn, Reused(t, migrate))
	require.NotEqual(t, dsn, Lasting(t, migrate))
}

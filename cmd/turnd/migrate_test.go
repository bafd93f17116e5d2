package main

import (
	"database/sql"
	"net/url"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/internal/pgtest"
	"github.com/turnd/turnd/migrations"
)

// emptyDatabases are the URLs of databases without a schema, by engine.
var emptyDatabases = map[string]func(*testing.T) string{
	enginePostgres: func(t *testing.T) string { return pgtest.Database(t) },
	engineSQLite: func(t *testing.T) string {
		return (&url.URL{Scheme: "sqlite", Path: filepath.Join(t.TempDir(), "made", "turnd.db")}).String()
	},
}

// onEachEngine runs a test on an empty database of each engine.
func onEachEngine(t *testing.T, test func(t *testing.T, database string)) {
	for engine, empty := range emptyDatabases {
		t.Run(engine, func(t *testing.T) { test(t, empty(t)) })
	}
}

// execute runs a statement on a database that nobody else has open.
func execute(t *testing.T, database, statement string) {
	t.Helper()
	pastTurnd(t, database, func(db *sql.DB) {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	})
}

// pastTurnd lends a connection to a database.
func pastTurnd(t *testing.T, database string, do func(*sql.DB)) {
	t.Helper()
	at, err := Database{DatabaseURL: database}.place()
	require.NoError(t, err)
	driver, dsn := "pgx", at.url
	if at.engine == engineSQLite {
		driver, dsn = "sqlite", "file:"+at.file
	}
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	do(db)
}

func TestMigrateUpMakesADatabaseThatCanBeServedAndSaysWhatItDid(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		latest := latestName(t)
		require.Contains(t, fails(t, 1, nil, "serve", "--demo", "--listen", ":0", "--database-url", database, "--migrate", "off"), "turnd migrate up")
		out := prints(t, "migrate", "up", "--database-url", database)
		require.Regexp(t, `VERSION +NAME +APPLIED\n`, out)
		require.Regexp(t, regexp.QuoteMeta(latest)+` +\d{4}-\d\d-\d\dT[\d:]+Z\n`, out)
		require.Regexp(t, `applied [1-9]\d*\n`, out)
		require.Contains(t, prints(t, "migrate", "up", "--database-url", database), "applied 0\n")
		require.Equal(t, prints(t, "migrate", "status", "--database-url", database)+"applied 0\n", prints(t, "migrate", "up", "--database-url", database))
		serve(t, database, "--migrate", "off")
	})
}

func latestName(t *testing.T) string {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "any.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	set, err := migrations.SQLite(db)
	require.NoError(t, err)
	list, err := set.Status(t.Context())
	require.NoError(t, err)
	return list[len(list)-1].Name
}

func TestPostgresIsMigratedAtStartOnlyWhenAskedTo(t *testing.T) {
	database := pgtest.Database(t)
	require.Contains(t, fails(t, 1, nil, "serve", "--demo", "--listen", ":0", "--database-url", database), "run `turnd migrate up`")
	serve(t, database, "--migrate", "on")
}

func TestADatabaseWithoutAnIndexThatDecidesClaimsIsNotServed(t *testing.T) {
	for _, index := range []string{"one_live_reply_per_user_turn", "one_running_reply_per_conversation"} {
		t.Run(index, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, database string) {
				prints(t, "migrate", "up", "--database-url", database)
				execute(t, database, "DROP INDEX "+index)
				text := fails(t, 1, nil, "serve", "--demo", "--listen", ":0", "--database-url", database, "--migrate", "on")
				require.Contains(t, text, "refusing to serve: the unique index "+index+" is missing")
			})
		})
	}
}

func TestMigrateStatusMakesNoDatabase(t *testing.T) {
	dir := t.TempDir()
	text := fails(t, 1, nil, "migrate", "status", "--data-dir", dir)
	require.Contains(t, text, "no database to look at")
	require.NoFileExists(t, filepath.Join(dir, "turnd.db"))
}

func TestMigrateNamesABadURLAsABadFlag(t *testing.T) {
	for _, verb := range []string{"up", "status"} {
		require.Contains(t, fails(t, 2, nil, "migrate", verb, "--database-url", "mysql://h/d"), "--database-url: must begin with")
	}
}

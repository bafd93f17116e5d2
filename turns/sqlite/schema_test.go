package sqlite_test

import (
	"database/sql"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/migrations"
	"github.com/turnd/turnd/turns/sqlite"
)

// suggested is the statements that an error tells to run.
var suggested = regexp.MustCompile("run `([^`]*)`")

// statement runs past the store on its file.
func statement(t *testing.T, path string, texts ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", sqlite.DSN(path, true))
	require.NoError(t, err)
	for _, text := range texts {
		_, err := db.ExecContext(t.Context(), text)
		require.NoError(t, err, text)
	}
	require.NoError(t, db.Close())
}

func TestAMigratedFileKeepsItsPromises(t *testing.T) {
	require.NoError(t, mustOpen(t, sqlite.Config{Path: file(t), Migrate: up}).CheckSchema(t.Context()))
}

func TestTheSchemasVersionIsThatOfTheNewestMigration(t *testing.T) {
	path := file(t)
	store := mustOpen(t, sqlite.Config{Path: path, Migrate: up})
	version, err := store.SchemaVersion(t.Context())
	require.NoError(t, err)
	require.Equal(t, migrations.Latest(), version)
	statement(t, path, `DELETE FROM goose_db_version WHERE version_id > 0`)
	version, err = store.SchemaVersion(t.Context())
	require.NoError(t, err)
	require.Zero(t, version)
}

func TestAnIndexThatDoesNotHoldItsPromiseIsNamedWithWhatToRun(t *testing.T) {
	for name, c := range map[string]struct {
		index string
		run   []string
		why   string
	}{
		"a missing slot": {"one_live_reply_per_user_turn", []string{`DROP INDEX one_live_reply_per_user_turn`}, "is missing"},
		"a missing run":  {"one_running_reply_per_conversation", []string{`DROP INDEX one_running_reply_per_conversation`}, "is missing"},
		"not unique": {"one_live_reply_per_user_turn", []string{`DROP INDEX one_live_reply_per_user_turn`,
			`CREATE INDEX one_live_reply_per_user_turn ON turns (conversation_key, responds_to) WHERE role = 'assistant' AND status <> 'abandoned'`},
			"is not unique"},
		"another predicate": {"one_live_reply_per_user_turn", []string{`DROP INDEX one_live_reply_per_user_turn`,
			`CREATE UNIQUE INDEX one_live_reply_per_user_turn ON turns (conversation_key, responds_to) WHERE role = 'assistant' AND status = 'complete'`},
			"has another definition"},
		"no predicate": {"one_running_reply_per_conversation", []string{`DROP INDEX one_running_reply_per_conversation`,
			`CREATE UNIQUE INDEX one_running_reply_per_conversation ON turns (conversation_key)`}, "has another definition"},
		"an expression": {"one_live_reply_per_user_turn", []string{`DROP INDEX one_live_reply_per_user_turn`,
			`CREATE UNIQUE INDEX one_live_reply_per_user_turn ON turns (conversation_key, abs(attempt)) WHERE role = 'assistant' AND status <> 'abandoned'`},
			"has another definition"},
		"a table made anew without its constraints": {"workers_dead", []string{`DROP TABLE workers`,
			`CREATE TABLE workers (worker_id BLOB NOT NULL PRIMARY KEY, name TEXT, lease_until INTEGER, beat INTEGER,
				dead INTEGER, draining INTEGER, start_time INTEGER) STRICT`}, "is missing"},
		"a table made anew without its key": {"workers_key", []string{`DROP TABLE workers`,
			`CREATE TABLE workers (worker_id BLOB NOT NULL, name TEXT, lease_until INTEGER, beat INTEGER,
				dead INTEGER, draining INTEGER, start_time INTEGER, UNIQUE (worker_id, dead)) STRICT`}, "is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			require.NoError(t, mustOpen(t, sqlite.Config{Path: path, Migrate: up}).Close())
			statement(t, path, c.run...)
			store := mustOpen(t, sqlite.Config{Path: path})
			err := store.CheckSchema(t.Context())
			require.ErrorIs(t, err, sqlite.ErrSchema)
			require.ErrorContains(t, err, "the unique index "+c.index+" "+c.why)
			mends := suggested.FindAllStringSubmatch(err.Error(), -1)
			require.Len(t, mends, 1, "the others are whole")
			statement(t, path, strings.Split(mends[0][1], "; ")...)
			require.NoError(t, store.CheckSchema(t.Context()))
		})
	}
}

func TestAnIndexSpelledInAnotherWayKeepsItsPromise(t *testing.T) {
	path := file(t)
	store := mustOpen(t, sqlite.Config{Path: path, Migrate: up})
	statement(t, path, `DROP INDEX one_live_reply_per_user_turn`, "CREATE UNIQUE INDEX IF NOT EXISTS one_live_reply_per_user_turn ON turns "+
		"(conversation_key,\n\tresponds_to)\n\tWHERE role = 'assistant'\n\t\tAND status <> 'abandoned'")
	require.NoError(t, store.CheckSchema(t.Context()))
}

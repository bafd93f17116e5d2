package postgres

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/internal/pgtest"
	"github.com/turnd/turnd/migrations"
)

func TestAMigratedDatabaseKeepsItsPromises(t *testing.T) {
	d := openOwn(t)
	require.NoError(t, d.store.CheckSchema(t.Context()))
}

func TestTheSchemasVersionIsThatOfTheNewestMigration(t *testing.T) {
	d := openOwn(t)
	version, err := d.store.SchemaVersion(t.Context())
	require.NoError(t, err)
	require.Equal(t, migrations.Latest(), version)
	require.NoError(t, d.exec(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`))
	version, err = d.store.SchemaVersion(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(99999), version)
	require.NoError(t, d.exec(t.Context(), `DROP TABLE goose_db_version`))
	_, err = d.store.SchemaVersion(t.Context())
	require.Error(t, err)
}

func TestASchemaOutsideThePublicOneIsLookedAtWhereItIs(t *testing.T) {
	dsn := pgtest.Database(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(), `CREATE SCHEMA "Its Own"`)
	require.NoError(t, err)
	dsn += "&search_path=" + url.PathEscape(`"Its Own"`)
	require.NoError(t, pgtest.Migrate(dsn))
	store, err := Open(t.Context(), Config{URL: dsn})
	require.NoError(t, err)
	defer store.Close()
	require.NoError(t, store.CheckSchema(t.Context()))

	// Whole tables in the public schema are none of its business.
	require.NoError(t, pgtest.Migrate(strings.Split(dsn, "&search_path")[0]))
	_, err = conn.Exec(t.Context(), `DROP INDEX "Its Own".one_live_reply_per_user_turn`)
	require.NoError(t, err)
	require.ErrorIs(t, store.CheckSchema(t.Context()), ErrSchema)
}

// suggested is the statements that an error tells to run.
var suggested = regexp.MustCompile("run `([^`]*)`")

func TestAPromiseWithoutItsIndexIsNamedWithWhatToRun(t *testing.T) {
	for _, p := range promises {
		d := openOwn(t)
		removal := "DROP INDEX " + p.index
		if strings.HasPrefix(p.create, "ALTER") {
			removal = "ALTER TABLE " + p.table + " DROP CONSTRAINT " + p.index + " CASCADE"
		}
		require.NoError(t, d.exec(t.Context(), removal), p.index)
		d.refused(t, p, "is missing")
	}
}

// refused asserts that one promise is broken, and that what the error says to run mends it.
func (d database) refused(t *testing.T, p promise, why string) {
	t.Helper()
	err := d.store.CheckSchema(t.Context())
	require.ErrorIs(t, err, ErrSchema)
	require.ErrorContains(t, err, "the unique index "+p.index+" "+why)
	require.ErrorContains(t, err, p.without)
	require.Len(t, suggested.FindAllString(err.Error(), -1), 1, "the others are whole")
	for _, statement := range strings.Split(suggested.FindStringSubmatch(err.Error())[1], "; ") {
		require.NoError(t, d.exec(t.Context(), statement), statement)
	}
	require.NoError(t, d.store.CheckSchema(t.Context()))
}

func TestAnIndexThatDoesNotHoldItsPromiseIsNamedWithWhatToRun(t *testing.T) {
	live, seq, dead := promises[0], promises[2], promises[4]
	for name, c := range map[string]struct {
		promise promise
		replace string // makes an index of the promise's name
		why     string
	}{
		"not unique": {live, `CREATE INDEX one_live_reply_per_user_turn ON turns (conversation_key, responds_to)
			WHERE role = 'assistant' AND status <> 'abandoned'`, "is not unique"},
		"another predicate": {live, `CREATE UNIQUE INDEX one_live_reply_per_user_turn ON turns (conversation_key, responds_to)
			WHERE role = 'assistant' AND status = 'complete'`, "has another definition"},
		"no predicate":    {live, `CREATE UNIQUE INDEX one_live_reply_per_user_turn ON turns (conversation_key, responds_to)`, "has another definition"},
		"another column":  {live, `CREATE UNIQUE INDEX one_live_reply_per_user_turn ON turns (conversation_key, id) WHERE role = 'assistant' AND status <> 'abandoned'`, "has another definition"},
		"an expression":   {live, `CREATE UNIQUE INDEX one_live_reply_per_user_turn ON turns (conversation_key, abs(attempt)) WHERE role = 'assistant' AND status <> 'abandoned'`, "has another definition"},
		"deferred":        {dead, `ALTER TABLE workers ADD CONSTRAINT workers_dead UNIQUE (worker_id, dead) DEFERRABLE`, "is deferred"},
		"an index alone":  {seq, `CREATE INDEX turns_seq ON turns (conversation_key, seq)`, "is not unique"},
		"a part of it":    {seq, `CREATE UNIQUE INDEX turns_seq ON turns (conversation_key, seq) WHERE seq > 1`, "has another definition"},
		"of another kind": {dead, `CREATE UNIQUE INDEX workers_dead ON workers (worker_id)`, "has another definition"},
	} {
		t.Run(name, func(t *testing.T) {
			d := openOwn(t)
			drop := "DROP INDEX " + c.promise.index
			if c.promise.index == dead.index {
				drop = "ALTER TABLE " + c.promise.table + " DROP CONSTRAINT " + c.promise.index
			}
			require.NoError(t, d.exec(t.Context(), drop))
			require.NoError(t, d.exec(t.Context(), c.replace))
			d.refused(t, c.promise, c.why)
		})
	}
}

func TestWhatABuildThatFailedLeavesKeepsNoPromise(t *testing.T) {
	d := openOwn(t)
	c := d.complete(t, d.win(t, newClaim(d.worker(t))))
	require.NoError(t, d.exec(t.Context(), `DROP INDEX one_live_reply_per_user_turn`))
	require.NoError(t, d.exec(t.Context(), `DROP INDEX turns_attempt`))
	require.NoError(t, d.exec(t.Context(), `INSERT INTO turns SELECT (jsonb_populate_record(t, jsonb_build_object(
		'id', gen_random_uuid(), 'seq', 100))).* FROM turns t WHERE id = `+literal(c.Reply.ID.UUID)))
	require.Error(t, d.exec(t.Context(), strings.Replace(promises[0].create, "INDEX", "INDEX CONCURRENTLY", 1)))
	require.NoError(t, d.exec(t.Context(), `DELETE FROM turns WHERE seq = 100`))
	require.NoError(t, d.exec(t.Context(), promises[3].create))
	d.refused(t, promises[0], "is not valid")
}

func TestAnIndexWithOtherStorageKeepsItsPromise(t *testing.T) {
	d := openOwn(t)
	require.NoError(t, d.exec(t.Context(), `ALTER INDEX one_live_reply_per_user_turn SET (fillfactor = 70)`))
	require.NoError(t, d.exec(t.Context(), `REINDEX TABLE CONCURRENTLY turns`))
	require.NoError(t, d.store.CheckSchema(t.Context()))
}

func TestADatabaseWithoutTablesIsRefused(t *testing.T) {
	store, err := Open(t.Context(), Config{URL: pgtest.Database(t)})
	require.NoError(t, err)
	defer store.Close()
	err = store.CheckSchema(t.Context())
	require.ErrorIs(t, err, ErrSchema)
	require.Len(t, suggested.FindAllString(err.Error(), -1), len(promises))
}

// Every unique index of the migrations is a promise, so that a later migration can't add one that nobody looks for.
func TestEveryUniqueIndexOfTheMigrationsIsAPromise(t *testing.T) {
	d := openOwn(t)
	rows, err := d.query(t.Context(), `SELECT indexrelid::regclass::text FROM pg_index
		WHERE indisunique AND indrelid::regclass::text <> 'goose_db_version' AND indrelid::regclass::text !~ '^pg_'`)
	require.NoError(t, err)
	var found, known []string
	for _, row := range rows {
		found = append(found, row[0].(string))
	}
	for _, p := range promises {
		known = append(known, p.index)
	}
	require.ElementsMatch(t, known, found)
}

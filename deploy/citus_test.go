package deploy_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const distributeFile = "citus/distribute.sql"

// standIns note what Citus would be asked for.
const standIns = `
CREATE SCHEMA asked;
CREATE TABLE asked.calls (what text, relation regclass, key text, colocated text);
CREATE FUNCTION create_distributed_table(relation regclass, key text, colocate_with text DEFAULT 'default') RETURNS void
	LANGUAGE sql AS $$ INSERT INTO asked.calls VALUES ('distributed', relation, key, colocate_with) $$;
CREATE FUNCTION create_reference_table(relation regclass) RETURNS void
	LANGUAGE sql AS $$ INSERT INTO asked.calls VALUES ('reference', relation, NULL, NULL) $$;`

// distributed is a migrated database on which the file was run against the stand-ins.
func distributed(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pgtest.Migrated(t, pgtest.Migrate))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	file, err := os.ReadFile(distributeFile)
	require.NoError(t, err)
	for _, text := range []string{standIns, string(file)} {
		_, err = conn.Exec(t.Context(), text)
		require.NoError(t, err)
	}
	return conn
}

// names are the answers of a query of one column.
func names(t *testing.T, conn *pgx.Conn, query string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), query)
	require.NoError(t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return list
}

func TestEachTableOfTheSchemaIsSpreadOnceAndByItsConversation(t *testing.T) {
	conn := distributed(t)
	tables := names(t, conn, `SELECT relname::text FROM pg_class
		WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'goose_db_version' ORDER BY 1`)
	require.NotEmpty(t, tables)
	require.Equal(t, tables, names(t, conn, `SELECT relation::text FROM asked.calls ORDER BY 1`))
	require.Equal(t, []string{"api_keys", "quotas", "suspensions", "tenant_spending", "workers"}, names(t, conn, `SELECT relation::text FROM asked.calls WHERE what = 'reference' ORDER BY 1`))
	require.Empty(t, names(t, conn, `SELECT relation::text FROM asked.calls WHERE what = 'distributed' AND key <> 'conversation_key'`))
	require.Equal(t, []string{"conversations"}, names(t, conn, `SELECT DISTINCT colocated FROM asked.calls
		WHERE what = 'distributed' AND relation <> 'conversations'::regclass`), "a conversation lies in one place")
}

func TestEachUniqueKeyOfASpreadTableHoldsTheConversation(t *testing.T) {
	conn := distributed(t)
	const unique = ` FROM pg_index i JOIN asked.calls a ON a.relation = i.indrelid AND a.what = 'distributed' WHERE i.indisunique`
	require.Contains(t, names(t, conn, `SELECT i.indexrelid::regclass::text`+unique), "one_live_reply_per_user_turn")
	require.Empty(t, names(t, conn, `SELECT i.indexrelid::regclass::text`+unique+` AND NOT EXISTS (
		SELECT 1 FROM pg_attribute k WHERE k.attrelid = i.indrelid AND k.attname = a.key AND k.attnum = ANY (i.indkey))`))
}

func TestEachForeignKeyOfASpreadTableStaysWithinTheConversation(t *testing.T) {
	conn := distributed(t)
	const keys = ` FROM pg_constraint f JOIN asked.calls a ON a.relation = f.conrelid AND a.what = 'distributed' WHERE f.contype = 'f'`
	require.ElementsMatch(t, []string{"turns_parent"}, names(t, conn, `SELECT f.conname::text`+keys))
	require.Empty(t, names(t, conn, `SELECT f.conname::text`+keys+` AND NOT EXISTS (
		SELECT 1 FROM asked.calls b
		JOIN pg_attribute here ON here.attrelid = f.conrelid AND here.attname = a.key
		JOIN pg_attribute there ON there.attrelid = f.confrelid AND there.attname = b.key
		WHERE b.relation = f.confrelid AND here.attnum = f.conkey[1] AND there.attnum = f.confkey[1])`))
	require.Empty(t, names(t, conn, `SELECT g.tgname::text FROM pg_trigger g
		JOIN asked.calls a ON a.relation = g.tgrelid WHERE NOT g.tgisinternal`), "a spread table can have no trigger")
}

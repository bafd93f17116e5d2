package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// database is a migrated database, a store on it, and a way past the store to its rows.
type database struct {
	dsn   string
	store *Store
	rows  *pgxpool.Pool
	// sent counts the statements of the store.
	sent *atomic.Int64
}

// open is for tests that change rows alone.
func open(t testing.TB) database { return opened(t, pgtest.Reused(t, pgtest.Migrate)) }

// openOwn is for tests that change the schema, or that look at plans and statistics.
func openOwn(t testing.TB) database { return opened(t, pgtest.Migrated(t, pgtest.Migrate)) }

// databaseOn migrates a database that a test has made itself.
func databaseOn(t testing.TB, dsn string) database {
	t.Helper()
	require.NoError(t, pgtest.Migrate(dsn))
	return opened(t, dsn)
}

func opened(t testing.TB, dsn string) database {
	t.Helper()
	d := database{dsn: dsn, sent: new(atomic.Int64)}
	var err error
	d.store, err = Open(t.Context(), Config{URL: d.dsn, MaxConns: 8, Trace: func(context.Context, string) { d.sent.Add(1) }})
	require.NoError(t, err)
	t.Cleanup(d.store.Close)
	d.rows, err = pgxpool.New(t.Context(), d.dsn)
	require.NoError(t, err)
	t.Cleanup(d.rows.Close)
	return d
}

func (d database) exec(ctx context.Context, sql string) error {
	_, err := d.rows.Exec(ctx, sql)
	return err
}

func (d database) query(ctx context.Context, sql string) ([][]any, error) {
	rows, err := d.rows.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
}

// literal writes an id into SQL.
func literal(id [16]byte) string { return fmt.Sprintf("'%s'::uuid", uuid.UUID(id)) }

package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turnd/turnd/migrations"
	"github.com/turnd/turnd/turns/sqlite"
	"github.com/turnd/turnd/turns/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// up brings a database to the schema of this build.
func up(ctx context.Context, db *sql.DB) error {
	set, err := migrations.SQLite(db)
	if err != nil {
		return err
	}
	_, err = set.Up(ctx)
	return err
}

// empty is a migrated database file. Copying it is quicker than migrating anew for each of some two hundred stores.
var empty = sync.OnceValues(func() (content []byte, err error) {
	folder, err := os.MkdirTemp("", "turnd")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "turnd.db")
	store, err := sqlite.Open(context.Background(), sqlite.Config{Path: path, Migrate: up, Unsynced: true})
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// open makes a fresh store in a directory of its own.
func open(t testing.TB) storetest.Engine {
	t.Helper()
	path := filepath.Join(t.TempDir(), "turnd.db")
	content, err := empty()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, content, 0o600))
	var commits atomic.Int64
	count := func(_ context.Context, statement string) {
		if statement == "BEGIN IMMEDIATE" {
			commits.Add(1)
		}
	}
	store, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Unsynced: true, Trace: count})
	require.NoError(t, err)
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=foreign_keys(1)&_pragma=busy_timeout(5000)&_txlock=immediate")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, db.Close())
		require.NoError(t, store.Close())
	})
	return storetest.Engine{
		Store: store,
		Exec: func(ctx context.Context, text string) error {
			_, err := db.ExecContext(ctx, text)
			return err
		},
		Query: func(ctx context.Context, text string) ([][]any, error) { return query(ctx, db, text) },
		ID:    func(id [16]byte) string { return fmt.Sprintf("x'%x'", id[:]) },
		Close: store.Close,
		Hold: func(t testing.TB) func() {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			return func() { require.NoError(t, tx.Rollback()) }
		},
		Pending: store.Pending,
		Commits: commits.Load,
	}
}

func query(ctx context.Context, db *sql.DB, text string, args ...any) (all [][]any, err error) {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		values, dest := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			return nil, err
		}
		all = append(all, values)
	}
	return all, rows.Err()
}

func TestTheStoreKeepsTheContract(t *testing.T) { storetest.Run(t, open) }

func TestTheStoreDoesWhatTheModelDoes(t *testing.T) { storetest.RunModel(t, open) }

func TestTheInvariantsHoldUnderACrowd(t *testing.T) { storetest.RunConcurrent(t, open) }

package pgtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// maxIdle bounds the databases that wait for their next test.
const maxIdle = 16

// idle are databases that tests of this binary have used and that are empty again. They go with the server, or are dropped
// when Main ends if it is somebody else's.
type idle struct {
	most  int // how many there may be; 0: any number
	mu    sync.Mutex
	names []string
}

func (i *idle) take() (name string, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.names) == 0 {
		return "", false
	}
	last := len(i.names) - 1
	name, i.names = i.names[last], i.names[:last]
	return name, true
}

func (i *idle) put(name string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.most > 0 && len(i.names) >= i.most {
		return false
	}
	i.names = append(i.names, name)
	return true
}

// Reused returns the DSN of a database with a schema in it, as Migrated does, which an earlier test may have used: its rows
// are gone, and nobody is connected to it. That is much quicker than a database of its own. It is for tests that change
// rows alone: what a test does to the schema, and what the planner has learnt, would be there for the next.
func Reused(t testing.TB, migrate func(dsn string) error) string {
	t.Helper()
	shared.need(t)
	name, ok := shared.idle.take()
	if !ok {
		name = shared.make(t, shared.migrated(t, migrate))
	}
	dsn, err := withDatabase(shared.admin, name)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := empty(dsn, name); err != nil {
			t.Errorf("pgtest: empty a used database: %v", err)
		} else if shared.idle.put(name) {
			return
		}
		if err := shared.drop(name); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return dsn
}

// Lasting returns the DSN of a database with a schema in it, as Migrated does, which lasts until Main ends. It is for whoever
// lends it to one test after another, with sessions that go on.
func Lasting(t testing.TB, migrate func(dsn string) error) string {
	t.Helper()
	shared.need(t)
	name := shared.make(t, shared.migrated(t, migrate))
	shared.lasting.put(name)
	dsn, err := withDatabase(shared.admin, name)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return dsn
}

// empty sends away whoever is connected to a database and removes all rows but the records of migrations. A table in which
// nothing was ever written is left alone: to truncate it would make its files anew, and those of its indexes.
func empty(dsn, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	const others = `SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()`
	if _, err := conn.Exec(ctx, others, name); err != nil {
		return fmt.Errorf("send connections away: %w", err)
	}
	names, err := written(ctx, conn)
	if err != nil || len(names) == 0 {
		return err
	}
	if _, err := conn.Exec(ctx, "TRUNCATE "+strings.Join(names, ", ")); err != nil {
		return fmt.Errorf("remove rows: %w", err)
	}
	return nil
}

// Clear removes all rows of a database of Reused, for a test that goes on with it. Unlike what comes after the test it leaves
// sessions alone, and what they have planned.
func Clear(ctx context.Context, conn *pgx.Conn) error {
	names, err := written(ctx, conn)
	if err != nil || len(names) == 0 {
		return err
	}
	all := "DELETE FROM " + strings.Join(names, "; DELETE FROM ")
	if _, err := conn.Exec(ctx, all, pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("remove rows: %w", err)
	}
	return nil
}

// written are the tables in which something was written since they were made or truncated, but for the records of migrations.
func written(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	const tables = `SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND c.relname NOT LIKE 'goose%'
		AND pg_relation_size(c.oid) > 0`
	rows, err := conn.Query(ctx, tables)
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	return names, nil
}

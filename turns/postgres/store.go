package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/turnd/turnd/turns"
)

const (
	// vitalConns is how many connections are kept for checkpoints and endings alone, and leaseConns for the worker's own
	// lease: however slow those are, they must not cost it.
	vitalConns = 2
	leaseConns = 1
	// defaultMaxConns is Config.MaxConns where it is not set.
	defaultMaxConns = 16
	// maxTries bounds how often a statement runs that the database itself asked to run again.
	maxTries = 4
)

// Config says how to reach the database.
type Config struct {
	// URL is a postgres:// URL or a keyword=value string.
	URL string
	// MaxConns bounds the connections of this process, 16 if 0. One of them serves the worker's lease only, and two
	// checkpoints and endings; with less than 4 one is left for all else.
	MaxConns int
}

// Store is a turns.Store. It is safe for concurrent use; Close ends it.
type Store struct {
	pool  *pgxpool.Pool
	vital *pgxpool.Pool
	lease *pgxpool.Pool
}

var (
	_ turns.Store   = (*Store)(nil)
	_ turns.Stops   = (*Store)(nil)
	_ turns.Returns = (*Store)(nil)
)

// Open connects. It fails with CodeStoreUnavailable if the database can't be reached; it does not look at the schema.
func Open(ctx context.Context, config Config) (*Store, error) {
	if config.MaxConns <= 0 {
		config.MaxConns = defaultMaxConns
	}
	s := &Store{}
	for _, p := range []struct {
		pool  **pgxpool.Pool
		conns int
	}{{&s.pool, max(1, config.MaxConns-vitalConns-leaseConns)}, {&s.vital, vitalConns}, {&s.lease, leaseConns}} {
		pool, err := connect(ctx, config.URL, p.conns)
		if err != nil {
			s.Close()
			return nil, err
		}
		*p.pool = pool
	}
	if err := s.pool.Ping(ctx); err != nil {
		s.Close()
		return nil, mapRead("reach the database", notSent{err})
	}
	return s, nil
}

// Close waits for running statements and releases the connections. Closing again does nothing.
func (s *Store) Close() {
	for _, pool := range []*pgxpool.Pool{s.pool, s.vital, s.lease} {
		if pool != nil {
			pool.Close()
		}
	}
}

func connect(ctx context.Context, url string, conns int) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read the database's address: %w", err)
	}
	config.MaxConns = int32(conns)
	config.MinConns = 0
	config.AfterConnect = readCommitted
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("make a pool of connections: %w", err)
	}
	return pool, nil
}

// readCommitted sets what every guard relies on: a statement that waited for a row sees the row as it is then. A server
// or role with a stricter default would answer such a wait with an error.
func readCommitted(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SET default_transaction_isolation = 'read committed'`)
	return err
}

// collect runs a statement and gathers its rows. Its error is raw, for mapRead and mapWrite, and notSent if the
// statement can't have reached the server.
func collect[T any](ctx context.Context, pool *pgxpool.Pool, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) ([]T, error) {
	for try := 1; ; try++ {
		rows, err := collectOnce(ctx, pool, sql, args, scan)
		if err == nil || try == maxTries || !wantsRetry(err) {
			return rows, err
		}
	}
}

func collectOnce[T any](ctx context.Context, pool *pgxpool.Pool, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) ([]T, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, notSent{err}
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// exec runs a statement and counts the rows it changed. Its error is raw, as that of collect.
func exec(ctx context.Context, pool *pgxpool.Pool, sql string, args pgx.NamedArgs) (int64, error) {
	for try := 1; ; try++ {
		n, err := execOnce(ctx, pool, sql, args)
		if err == nil || try == maxTries || !wantsRetry(err) {
			return n, err
		}
	}
}

func execOnce(ctx context.Context, pool *pgxpool.Pool, sql string, args pgx.NamedArgs) (int64, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return 0, notSent{err}
	}
	defer conn.Release()
	tag, err := conn.Exec(ctx, sql, args)
	return tag.RowsAffected(), err
}

// one is the row of a statement that gives at most one.
func one[T any](ctx context.Context, pool *pgxpool.Pool, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) (row T, found bool, err error) {
	rows, err := collect(ctx, pool, sql, args, scan)
	if err != nil || len(rows) == 0 {
		return row, false, err
	}
	return rows[0], true, nil
}

// each runs a batch of writes, and again one by one if what an item of it holds made the statement fail: one bad item must
// not undo the others. An item's own failure for which lost is true is answered with a zero result; the others are
// joined, beside the results of those that went well.
func each[I, R any](op string, items []I, lost func(error) bool, run func([]I) ([]R, error)) ([]R, error) {
	results, err := run(items)
	switch {
	case err == nil:
		return results, nil
	case len(items) == 1 && lost(err):
		return make([]R, 1), nil
	case len(items) == 1 || !isOfItem(err):
		return nil, mapWrite(op, err)
	}
	results = make([]R, len(items))
	var failed []error
	for i := range items {
		alone, err := run(items[i : i+1])
		switch {
		case err == nil:
			results[i] = alone[0]
		case !lost(err):
			failed = append(failed, mapWrite(op, err))
		}
		if err != nil && !isOfItem(err) {
			break // the others would meet the same
		}
	}
	return results, errors.Join(failed...)
}

// never is for writes of which no failure is an answer.
func never(error) bool { return false }

// column is one field of all items, as an array for unnest.
func column[I, T any](items []I, field func(*I) T) []T {
	values := make([]T, len(items))
	for i := range items {
		values[i] = field(&items[i])
	}
	return values
}

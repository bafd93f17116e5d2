package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

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
	// maxTries bounds how often a statement runs that is known to have done nothing.
	maxTries = 4
)

// Config says how to reach the database.
type Config struct {
	// URL is a postgres:// URL or a keyword=value string.
	URL string
	// MaxConns bounds the connections of this process, 16 if 0. One of them serves the worker's lease only, and two
	// checkpoints and endings; with less than 4 one is left for all else.
	MaxConns int
	// Pooled says that the URL leads to a pooler that gives out its sessions for one transaction at a time. Statements are
	// then not prepared, unless the URL has a default_query_exec_mode.
	Pooled bool
	// StatementTime is the longest that one statement may take, 10 s if 0. A write that takes longer has an unknown
	// outcome; the server itself ends it after twice that time, except behind a pooler.
	StatementTime time.Duration
	// Trace, if set, is told the text of each statement before it is sent, with the context of who asked for it. It holds
	// parameters and never what they stand for. For tests.
	Trace func(ctx context.Context, statement string)
	// Tracer, if set, is told of each statement, its parameters and its end. With Trace it is not.
	Tracer pgx.QueryTracer
}

// Store is a turns.Store. It is safe for concurrent use; Close ends it.
type Store struct {
	pool  *pool
	vital *pool
	lease *pool
	lanes lanes
	// groups write to the pools.
	groups groups
}

var (
	_ turns.Store   = (*Store)(nil)
	_ turns.Stops   = (*Store)(nil)
	_ turns.Returns = (*Store)(nil)
)

// Open connects. It fails with CodeStoreUnavailable if the database can't be reached, and wraps ErrReadOnly if it takes no
// writes; it does not look at the schema. The URL may name several hosts: the first that takes writes is used.
func Open(ctx context.Context, config Config) (*Store, error) {
	if config.MaxConns <= 0 {
		config.MaxConns = defaultMaxConns
	}
	conns := max(1, config.MaxConns-vitalConns-leaseConns)
	s := &Store{lanes: newLanes(conns)}
	for _, p := range []struct {
		pool  **pool
		conns int
	}{{&s.pool, conns}, {&s.vital, vitalConns}, {&s.lease, leaseConns}} {
		pool, err := newPool(ctx, config, p.conns)
		if err != nil {
			s.Close()
			return nil, err
		}
		*p.pool = pool
	}
	s.groups.open(s)
	if err := s.pool.use(ctx, func(context.Context, *pgxpool.Conn) error { return nil }); err != nil {
		s.Close()
		return nil, mapRead("reach the database", err)
	}
	return s, nil
}

// Pools shows the pools of connections by their names, for what measures them.
func (s *Store) Pools(show func(name string, pool *pgxpool.Pool) error) error {
	return errors.Join(show("statements", s.pool.Pool), show("endings", s.vital.Pool), show("lease", s.lease.Pool))
}

// Close waits for running statements and releases the connections. Closing again does nothing.
func (s *Store) Close() {
	s.groups.close()
	var all sync.WaitGroup
	for _, pool := range []*pool{s.pool, s.vital, s.lease} {
		if pool != nil {
			all.Go(pool.Close)
		}
	}
	all.Wait()
}

// collect runs a statement and gathers its rows. Its error is raw, for mapRead and mapWrite, and notSent if the
// statement can't have reached the server.
func collect[T any](ctx context.Context, p *pool, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) (list []T, err error) {
	err = p.repeat(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, sql, named(args))
		if err == nil {
			list, err = pgx.CollectRows(rows, scan)
		}
		return err
	})
	return list, err
}

// exec runs a statement and counts the rows it changed. Its error is raw, as that of collect.
func exec(ctx context.Context, p *pool, sql string, args pgx.NamedArgs) (changed int64, err error) {
	err = p.repeat(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		tag, err := conn.Exec(ctx, sql, named(args))
		changed = tag.RowsAffected()
		return err
	})
	return changed, err
}

// repeat uses a connection, and again if the statement is known to have done nothing and another try can go better.
func (p *pool) repeat(ctx context.Context, do func(context.Context, *pgxpool.Conn) error) error {
	for try := 1; ; try++ {
		err := p.use(ctx, do)
		if err == nil || try == maxTries || ctx.Err() != nil || !wantsRetry(err) {
			return err
		}
	}
}

// one is the row of a statement that gives at most one.
func one[T any](ctx context.Context, p *pool, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) (row T, found bool, err error) {
	rows, err := collect(ctx, p, sql, args, scan)
	if err != nil || len(rows) == 0 {
		return row, false, err
	}
	return rows[0], true, nil
}

// column is one field of all items, as an array for unnest.
func column[I, T any](items []I, field func(*I) T) []T {
	values := make([]T, len(items))
	for i := range items {
		values[i] = field(&items[i])
	}
	return values
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"
)

// statements keeps what was prepared, by text. The texts are the constants of this package, so it is bounded.
type statements struct {
	prepare func(ctx context.Context, text string) (*sql.Stmt, error)
	mu      sync.Mutex
	byText  map[string]*sql.Stmt
}

func (s *statements) get(ctx context.Context, text string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stmt := s.byText[text]; stmt != nil {
		return stmt, nil
	}
	stmt, err := s.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	if s.byText == nil {
		s.byText = make(map[string]*sql.Stmt)
	}
	s.byText[text] = stmt
	return stmt, nil
}

func (s *statements) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stmt := range s.byText {
		_ = stmt.Close()
	}
	s.byText = nil
}

// writer owns the one connection that writes. Its turn is taken by a channel and not by SQLite's own waiting, which
// backs off unfairly and would let some writers wait for seconds.
type writer struct {
	turn  chan struct{}
	db    *sql.DB
	conn  *sql.Conn
	cache statements
}

func newWriter(ctx context.Context, dsn string) (*writer, error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &writer{turn: make(chan struct{}, 1), db: db, conn: conn, cache: statements{prepare: conn.PrepareContext}}, nil
}

func (w *writer) close() error {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	w.cache.close()
	return errors.Join(w.conn.Close(), w.db.Close())
}

// tx is a transaction. Its time is the one time of all that it writes.
type tx struct {
	ctx  context.Context
	now  int64
	stmt func(ctx context.Context, text string) (*sql.Stmt, error)
}

// writeTx runs act in an immediate transaction once this caller's turn has come.
func (s *Store) writeTx(ctx context.Context, doing string, act func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return s.mapError(ctx, doing, err)
	}
	select {
	case s.write.turn <- struct{}{}:
		defer func() { <-s.write.turn }()
	case <-ctx.Done():
		return s.mapError(ctx, doing, ctx.Err())
	}
	t := &tx{ctx: context.WithoutCancel(ctx), stmt: s.write.cache.get}
	return s.mapError(t.ctx, doing, t.run(act))
}

func (t *tx) run(act func(*tx) error) error {
	if _, err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	t.now = time.Now().UnixMicro()
	if err := act(t); err != nil {
		return errors.Join(err, t.rollback())
	}
	if _, err := t.exec("COMMIT"); err != nil {
		// A COMMIT that failed on a broken reference leaves its transaction open. One that SQLite itself rolled back
		// makes this ROLLBACK fail, which says nothing new.
		_ = t.rollback()
		return commitError(err)
	}
	return nil
}

func (t *tx) rollback() error {
	_, err := t.exec("ROLLBACK")
	return err
}

// readTx runs act on one snapshot of the last commit.
func (s *Store) readTx(ctx context.Context, doing string, act func(*tx) error) error {
	if s.closed.Load() {
		return s.mapError(ctx, doing, errClosed)
	}
	dbtx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return s.mapError(ctx, doing, err)
	}
	t := &tx{ctx: ctx, now: time.Now().UnixMicro(), stmt: func(ctx context.Context, text string) (*sql.Stmt, error) {
		stmt, err := s.cache.get(ctx, text)
		if err != nil {
			return nil, err
		}
		return dbtx.StmtContext(ctx, stmt), nil
	}}
	err = act(t)
	if rollbackErr := dbtx.Rollback(); err == nil && !errors.Is(rollbackErr, sql.ErrTxDone) {
		err = rollbackErr
	}
	return s.mapError(ctx, doing, err)
}

// exec runs a statement and says how many rows it changed.
func (t *tx) exec(text string, args ...any) (int64, error) {
	stmt, err := t.stmt(t.ctx, text)
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// won runs a guarded statement and says whether its guard held.
func (t *tx) won(text string, args ...any) (bool, error) {
	n, err := t.exec(text, args...)
	return n > 0, err
}

// query runs a statement and scans each row; scan gets the rows' own Scan.
func (t *tx) query(scan func(scan func(dest ...any) error) error, text string, args ...any) error {
	stmt, err := t.stmt(t.ctx, text)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(t.ctx, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := scan(rows.Scan); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// found scans the one row that a statement gives, and says whether there was one.
func (t *tx) found(text string, args []any, dest ...any) (found bool, err error) {
	err = t.query(func(scan func(...any) error) error {
		found = true
		return scan(dest...)
	}, text, args...)
	return found, err
}

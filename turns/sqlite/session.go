package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// session is one connection and what was prepared on it. One transaction has it at a time, so it needs no lock.
type session struct {
	conn *sql.Conn
	// byText is bounded: the texts are the constants of this package.
	byText map[string]*sql.Stmt
	trace  func(ctx context.Context, statement string)
}

// prepared is the statement of a text, prepared when it is first asked for. It is prepared on the session's own
// connection: one that asked the pool for another could wait for ever on those who ask the same.
func (s *session) prepared(ctx context.Context, text string) (*sql.Stmt, error) {
	if s.trace != nil {
		s.trace(ctx, text)
	}
	if stmt := s.byText[text]; stmt != nil {
		return stmt, nil
	}
	stmt, err := s.conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	s.byText[text] = stmt
	return stmt, nil
}

func (s *session) close() error {
	var errs []error
	for _, stmt := range s.byText {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(append(errs, s.conn.Close())...)
}

// pool is a fixed number of sessions. A turn with one is taken by a channel and not by SQLite's own waiting, which backs
// off unfairly and would let some writers wait for seconds.
type pool struct {
	db   *sql.DB
	size int
	free chan *session
}

func newPool(ctx context.Context, dsn string, size int, trace func(context.Context, string)) (*pool, error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	p := &pool{db: db, size: size, free: make(chan *session, size)}
	for range size {
		conn, err := db.Conn(ctx)
		if err != nil {
			p.size = len(p.free)
			return nil, errors.Join(err, p.close())
		}
		p.free <- &session{conn: conn, byText: make(map[string]*sql.Stmt), trace: trace}
	}
	return p, nil
}

// take waits for a session; give brings it back.
func (p *pool) take(ctx context.Context) (*session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case s, ok := <-p.free:
		if !ok {
			return nil, errClosed
		}
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pool) give(s *session) { p.free <- s }

// close waits for every session to come back and closes it. Whoever still wants one gets errClosed.
func (p *pool) close() error {
	var errs []error
	for range p.size {
		errs = append(errs, (<-p.free).close())
	}
	close(p.free)
	return errors.Join(append(errs, p.db.Close())...)
}

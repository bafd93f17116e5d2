package sqlite

import (
	"context"
	"errors"
	"time"
)

// tx is a transaction. Its time is the one time of all that it writes.
type tx struct {
	ctx     context.Context
	session *session
	now     int64
}

func (t *tx) commit(act func(*tx) error) error {
	if _, err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	t.now = time.Now().UnixMicro()
	if err := act(t); err != nil {
		return errors.Join(err, t.rollback())
	}
	return t.finish()
}

// finish commits.
func (t *tx) finish() error {
	if _, err := t.exec("COMMIT"); err != nil {
		// A COMMIT that failed on a broken reference leaves its transaction open. One that SQLite itself rolled back
		// makes this ROLLBACK fail, which says nothing new.
		_ = t.rollback()
		return commitError(err)
	}
	return nil
}

// winTx runs act in an immediate transaction of its own, of which all is written if act is won and nothing if not. A slot
// that an index finds taken is not won.
func (s *Store) winTx(ctx context.Context, doing string, act func(*tx) (bool, error)) (won bool, err error) {
	err = s.writeTx(ctx, doing, func(t *tx) error {
		won, err = t.whole(func() (bool, error) {
			won, err := act(t)
			if isTaken(err) {
				return false, nil
			}
			return won, err
		})
		return err
	})
	return won && err == nil, err
}

// whole undoes what act has written of its part of the transaction if act is not won.
func (t *tx) whole(act func() (bool, error)) (won bool, err error) {
	if _, err := t.exec("SAVEPOINT part"); err != nil {
		return false, err
	}
	won, err = act()
	if err != nil {
		return false, err // undoes the whole transaction
	}
	if !won {
		if _, err := t.exec("ROLLBACK TO part"); err != nil {
			return false, err
		}
	}
	_, err = t.exec("RELEASE part")
	return won, err
}

// readTx runs act on one snapshot of the last commit.
func (s *Store) readTx(ctx context.Context, doing string, act func(*tx) error) error {
	session, err := s.read.take(ctx)
	if err != nil {
		return s.mapError(ctx, doing, err)
	}
	defer s.read.give(session)
	t := &tx{ctx: ctx, session: session}
	return s.mapError(ctx, doing, t.snapshot(act))
}

func (t *tx) snapshot(act func(*tx) error) error {
	if _, err := t.exec("BEGIN"); err != nil {
		return errors.Join(err, t.rollback())
	}
	t.now = time.Now().UnixMicro()
	return errors.Join(act(t), t.rollback())
}

// rollback ends the transaction whatever became of the caller's context, for the next one needs the session. A
// transaction that the engine has ended by itself is no error.
func (t *tx) rollback() error {
	ctx := context.WithoutCancel(t.ctx)
	stmt, err := t.session.prepared(ctx, "ROLLBACK")
	if err != nil {
		return err
	}
	if _, err := stmt.ExecContext(ctx); err != nil && !isNoTransaction(err) {
		return err
	}
	return nil
}

// exec runs a statement and says how many rows it changed.
func (t *tx) exec(text string, args ...any) (int64, error) {
	stmt, err := t.session.prepared(t.ctx, text)
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
	stmt, err := t.session.prepared(t.ctx, text)
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

package sqlite

import (
	"context"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/turnd/turnd/turns"
)

var errClosed = errors.New("the store is closed")

// mapError gives an error of the engine the meaning it has in the port. What the port has already given one stays.
func (s *Store) mapError(ctx context.Context, doing string, err error) error {
	var known *turns.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known), errors.Is(err, turns.ErrUnknownOutcome), errors.Is(err, turns.ErrBuried):
		return err
	case s.closed.Load():
		return turns.Unavailable(fmt.Errorf("%s: %w", doing, errClosed))
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	case isForeignKey(err):
		return turns.NotFound("turn", "input.parent_id")
	case isEngineFailure(err):
		return turns.Unavailable(fmt.Errorf("%s: %w", doing, err))
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// codeOf is SQLite's extended result code, 0 for an error that is not SQLite's.
func codeOf(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// isForeignKey reports whether a row names another that is not there. The references of turns are checked at commit.
func isForeignKey(err error) bool { return codeOf(err) == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY }

// isTaken reports whether a unique index found its place taken.
func isTaken(err error) bool { return codeOf(err) == sqlite3.SQLITE_CONSTRAINT_UNIQUE }

// isConstraint reports whether a rule of the tables refuses what a row holds.
func isConstraint(err error) bool { return codeOf(err)&0xff == sqlite3.SQLITE_CONSTRAINT }

// isNoTransaction reports whether a ROLLBACK found nothing to roll back: the only thing it can fail with plainly.
func isNoTransaction(err error) bool { return codeOf(err) == sqlite3.SQLITE_ERROR }

// isEngineFailure reports whether the engine couldn't work, where the statement itself was in order. The low byte of an
// extended code is its class.
func isEngineFailure(err error) bool {
	switch codeOf(err) & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN,
		sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_PROTOCOL:
		return true
	}
	return false
}

// commitError is what a failed COMMIT means. A broken reference or a full disk is a known no; a failure to write or sync
// leaves open whether the frames are on the disk.
func commitError(err error) error {
	switch codeOf(err) & 0xff {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL:
		return err
	}
	return fmt.Errorf("%w: %w", turns.ErrUnknownOutcome, turns.Unavailable(err))
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/turnd/turnd/turns"
)

// The SQLSTATEs that are acted on; the others are told apart by their class.
const (
	stateForeignKey    = "23503"
	stateUnique        = "23505"
	stateSerialization = "40001"
	stateDeadlock      = "40P01"
	stateReadOnly      = "25006"
	stateLockTimeout   = "55P03"
	// What a pooler gives out that hands the sessions of prepared statements to others.
	stateNoStatement    = "26000"
	stateStatementTwice = "42P05"
)

// notSent marks an error that came before the statement could have left for the server.
type notSent struct{ error }

func (e notSent) Unwrap() error { return e.error }

// unfit marks an item that could not be made into a statement's arguments, and so was not sent.
type unfit struct{ error }

func (e unfit) Unwrap() error { return notSent{e.error} }

// mapRead says what the failure of a read means.
func mapRead(op string, err error) error { return mapError(op, err, false) }

// mapWrite says what the failure of a write means: once it may have been sent, a lost answer is an unknown outcome.
func mapWrite(op string, err error) error { return mapError(op, err, true) }

// mapError is the one place where the driver's errors become the domain's. The server's text is dropped, since it can
// quote values; the SQLSTATE is kept.
func mapError(op string, err error, write bool) error {
	if err == nil {
		return nil
	}
	unsent := errors.As(err, new(notSent)) || pgconn.SafeToRetry(err)
	if state, ok := sqlState(err); ok && !unsent {
		return mapState(op, state, write)
	}
	if write && !unsent {
		return fmt.Errorf("%s: %w", op, turns.Unavailable(fmt.Errorf("%w: %w", turns.ErrUnknownOutcome, err)))
	}
	if isCallers(err) {
		return fmt.Errorf("%s: %w", op, err)
	}
	return fmt.Errorf("%s: %w", op, turns.Unavailable(err))
}

// isCallers reports an error of the caller's context. A connection that was not made in time has one within it that is not.
func isCallers(err error) bool {
	return !errors.As(err, new(*pgconn.ConnectError)) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// mapState is mapError for an answer of the server to a statement.
func mapState(op, state string, write bool) error {
	cause := fmt.Errorf("the database answered SQLSTATE %s", state)
	switch {
	case strings.HasPrefix(state, "08"), strings.HasPrefix(state, "57P"):
		// The session or a part of the database went away. Whether it had committed before that nobody said.
		if write {
			cause = fmt.Errorf("%w: %w", turns.ErrUnknownOutcome, cause)
		}
		return fmt.Errorf("%s: %w", op, turns.Unavailable(cause))
	case strings.HasPrefix(state, "53"), strings.HasPrefix(state, "57"), strings.HasPrefix(state, "58"),
		state == stateLockTimeout, wantsRetryState(state):
		// Resources, a cancelled statement, the disk, a lock: the statement was rolled back.
		return fmt.Errorf("%s: %w", op, turns.Unavailable(cause))
	case state == stateNoStatement, state == stateStatementTwice:
		cause = fmt.Errorf("%w: a pooler that keeps no prepared statements needs default_query_exec_mode=cache_describe in its URL", cause)
	case state == stateForeignKey:
		return fmt.Errorf("%s: %w", op, turns.NotFound("turn", "input.parent_id"))
	}
	return fmt.Errorf("%s: %w", op, cause)
}

func sqlState(err error) (string, bool) {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return "", false
	}
	return answer.Code, true
}

func isUniqueViolation(err error) bool {
	state, ok := sqlState(err)
	return ok && state == stateUnique
}

// isOfItem reports whether a statement failed over what one item of it holds: data that can't be stored (class 22), or that
// a constraint refuses (class 23).
func isOfItem(err error) bool {
	if errors.As(err, new(unfit)) {
		return true
	}
	state, ok := sqlState(err)
	return ok && (strings.HasPrefix(state, "22") || strings.HasPrefix(state, "23"))
}

// wantsRetry reports whether a statement is known to have done nothing, and can go better at once: the database rolled it
// back because of another that ran beside it, its server had become read-only, or its connection turned out to be closed.
func wantsRetry(err error) bool {
	if errors.As(err, new(notSent)) {
		return false
	}
	if state, ok := sqlState(err); ok {
		return wantsRetryState(state)
	}
	return pgconn.SafeToRetry(err)
}

func wantsRetryState(state string) bool {
	return state == stateSerialization || state == stateDeadlock || state == stateReadOnly
}

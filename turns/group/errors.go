package group

import (
	"context"
	"errors"
	"fmt"
)

// NotTaken is the error of a caller whose item was in no statement: nothing was done for it. It wraps ErrClosed, ErrFull,
// ErrLate or the error of the caller's context.
type NotTaken struct{ error }

// Unwrap gives the reason.
func (e NotTaken) Unwrap() error { return e.error }

var (
	// ErrClosed says that the group was closed.
	ErrClosed = errors.New("the group is closed")
	// ErrFull says that as many wait as may.
	ErrFull = errors.New("too many wait to be written")
	// ErrLate says that no writer was free in time.
	ErrLate = errors.New("no writer was free in time")
	// ErrUnanswered says that the caller gave up while its item was being written: what becomes of it is not known. The
	// error of the caller's context goes with it.
	ErrUnanswered = errors.New("given up while it was being written")

	errForgotten = errors.New("the writer gave no answer")
)

// inTime tells a caller whose time has run out that this is why its statement was cancelled.
func inTime(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

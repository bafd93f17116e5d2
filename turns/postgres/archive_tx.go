package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// archiveTx is a transaction as long as the copy of one conversation. Each of its statements has the time of a statement.
type archiveTx struct {
	pgx.Tx
	limits limits
}

// theirs marks an error that is not the driver's, and has its meaning already.
type theirs struct{ error }

func (e theirs) Unwrap() error { return e.error }

func asTheirs(err error) error {
	if err == nil {
		return nil
	}
	return theirs{err}
}

// archiveTx runs do in a transaction. It is not tried again: what do hands on, it has handed on.
func (s *Store) archiveTx(ctx context.Context, op string, options pgx.TxOptions, do func(archiveTx) error) error {
	conn, err := s.pool.take(ctx)
	if err != nil {
		return mapRead(op, notSent{err})
	}
	err = pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error { return do(archiveTx{tx, s.pool.limits}) })
	s.pool.give(conn, err)
	var own theirs
	if errors.As(err, &own) {
		return own.error
	}
	return mapError(op, err, options.AccessMode != pgx.ReadOnly)
}

package sqlite

import (
	"context"
	"errors"

	"github.com/turnd/turnd/turns"
)

// Restore implements turns.Returns.
func (s *Store) Restore(context.Context, turns.LostReply) (bool, error) {
	return false, errors.ErrUnsupported
}

package sqlite

import (
	"context"
	"errors"

	"github.com/turnd/turnd/turns"
)

// TakeOver implements turns.Returns.
func (s *Store) TakeOver(context.Context, turns.Takeover) (turns.TakeoverResult, error) {
	return turns.TakeoverResult{}, errors.ErrUnsupported
}

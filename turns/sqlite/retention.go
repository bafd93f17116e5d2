package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/turnd/turnd/turns"
)

var _ turns.Retention = (*Store)(nil)

// Any claim moves update_time, so nothing can have begun since the last use.
const deleteUnused = markDeleted + ` AND deleted_at IS NULL AND update_time < @now - @unused
		AND NOT EXISTS (SELECT 1 FROM turns live INDEXED BY one_live_reply_per_user_turn WHERE live.conversation_key = @key
			AND live.role = 'assistant' AND live.status <> 'abandoned' AND live.status IN ('in_flight', 'held'))
		AND NOT EXISTS (SELECT 1 FROM turns line INDEXED BY turns_in_line WHERE line.conversation_key = @key AND line.role = 'user'
			AND line.waiting <> '')`

// DeleteUnused implements turns.Retention.
func (s *Store) DeleteUnused(ctx context.Context, key turns.ConversationKey, unusedFor time.Duration, dry bool) (deleted bool, err error) {
	err = s.writeTx(ctx, "delete an unused conversation", func(t *tx) error {
		deleted, err = t.won(deleteUnused, arg("key", key[:]), arg("unused", unusedFor.Microseconds()), arg("now", t.now))
		if err == nil && dry {
			return errDry
		}
		return err
	})
	if errors.Is(err, errDry) {
		return deleted, nil
	}
	return deleted && err == nil, err
}

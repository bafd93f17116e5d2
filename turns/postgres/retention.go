package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

var _ turns.Retention = (*Store)(nil)

// Any claim moves update_time of the row that is locked here, so nothing can have begun since the last use.
const deleteUnused = leaveMark + ` AND c.deleted_at IS NULL AND c.update_time < clock_timestamp() - @unused * interval '1 microsecond'
	AND NOT EXISTS (SELECT 1 FROM turns r WHERE r.conversation_key = @key AND r.role = 'assistant' AND r.status <> 'abandoned'
		AND r.status IN ('in_flight', 'held'))
	AND NOT EXISTS (SELECT 1 FROM turns u WHERE u.conversation_key = @key AND u.role = 'user' AND u.waiting <> '')`

// DeleteUnused implements turns.Retention.
func (s *Store) DeleteUnused(ctx context.Context, key turns.ConversationKey, unusedFor time.Duration, dry bool) (deleted bool, err error) {
	err = s.archiveTx(ctx, "delete an unused conversation", pgx.TxOptions{}, func(t archiveTx) error {
		ctx, cancel := context.WithTimeout(ctx, t.limits.statement)
		defer cancel()
		tag, err := t.Exec(ctx, deleteUnused, pgx.NamedArgs{"key": zeronull.UUID(key), "unused": unusedFor.Microseconds()})
		deleted = tag.RowsAffected() > 0
		if err == nil && dry {
			return theirs{errDry}
		}
		return err
	})
	if errors.Is(err, errDry) {
		return deleted, nil
	}
	return deleted && err == nil, err
}

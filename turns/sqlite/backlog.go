package sqlite

import (
	"context"
	"database/sql"

	"github.com/turnd/turnd/turns"
)

// A time before all makes a walk of the index of what is held.
const readBacklog = `SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM turns INDEXED BY turns_held_by_age
			WHERE status = 'held' AND create_time > -9223372036854775808 LIMIT @most)),
		(SELECT MIN(create_time) FROM turns INDEXED BY turns_running_by_owner WHERE status = 'in_flight')`

// Backlog implements turns.Gauge.
func (s *Store) Backlog(ctx context.Context, most int) (b turns.Backlog, err error) {
	err = s.readTx(ctx, "read the backlog", func(t *tx) error {
		var oldest sql.NullInt64
		if _, err := t.found(readBacklog, []any{arg("most", most)}, &b.Held, &oldest); err != nil {
			return err
		}
		if oldest.Valid {
			b.OldestClaim = micros(max(t.now-oldest.Int64, 0))
		}
		return nil
	})
	if err != nil {
		return turns.Backlog{}, err
	}
	return b, nil
}

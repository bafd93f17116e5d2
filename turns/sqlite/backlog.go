package sqlite

import (
	"context"
	"database/sql"

	"github.com/turnd/turnd/turns"
)

// A time before all makes a walk of the index of what is held. Live replies are counted beside those that run alone, by the
// index of a turn's attempts: the one that keeps a second from being live may be what is missing.
const readBacklog = `SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM turns INDEXED BY turns_held_by_age
			WHERE status = 'held' AND create_time > -9223372036854775808 LIMIT @most)),
		(SELECT COUNT(*) FROM (SELECT 1 FROM turns INDEXED BY turns_in_line WHERE role = 'user' AND waiting <> '' LIMIT @most)),
		(SELECT MIN(create_time) FROM turns INDEXED BY turns_running_by_owner WHERE status = 'in_flight'),
		(SELECT COUNT(*) FROM (SELECT DISTINCT r.conversation_key, r.responds_to FROM turns r INDEXED BY turns_running_by_owner
			WHERE r.status = 'in_flight' AND EXISTS (SELECT 1 FROM turns o WHERE o.conversation_key = r.conversation_key
				AND o.responds_to = r.responds_to AND o.attempt > 0 AND o.id <> r.id AND o.status <> 'abandoned') LIMIT @most))`

// Backlog implements turns.Gauge.
func (s *Store) Backlog(ctx context.Context, most int) (b turns.Backlog, err error) {
	err = s.readTx(ctx, "read the backlog", func(t *tx) error {
		broken, err := t.brokenGuards()
		if err != nil {
			return err
		}
		b.GuardsBroken, b.Now = len(broken), timeOf(t.now)
		var oldest sql.NullInt64
		if _, err := t.found(readBacklog, []any{arg("most", most)}, &b.Held, &b.InLine, &oldest, &b.Doubled); err != nil {
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

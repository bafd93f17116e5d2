package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

const markFollowed = `
WITH item AS (
	SELECT * FROM unnest(@key::uuid[], @reply::uuid[], @for_us::bigint[]) AS i (conversation_key, reply_id, for_us)
), locked AS (
	SELECT t.conversation_key, t.id, clock_timestamp() + i.for_us * interval '1 microsecond' AS upto
	FROM item i JOIN turns t ON t.conversation_key = i.conversation_key AND t.id = i.reply_id
	WHERE t.status = 'in_flight' ORDER BY t.conversation_key, t.id FOR NO KEY UPDATE OF t
)
UPDATE turns t SET followed_until = GREATEST(t.followed_until, l.upto) FROM locked l
WHERE t.conversation_key = l.conversation_key AND t.id = l.id`

// MarkFollowed implements turns.Replies.
func (s *Store) MarkFollowed(ctx context.Context, marks []turns.FollowMark) error {
	if len(marks) == 0 {
		return nil
	}
	_, err := exec(ctx, s.pool, markFollowed, pgx.NamedArgs{
		"key":    column(marks, func(m *turns.FollowMark) zeronull.UUID { return zeronull.UUID(m.Key) }),
		"reply":  column(marks, func(m *turns.FollowMark) zeronull.UUID { return zeronull.UUID(m.Reply.UUID) }),
		"for_us": column(marks, func(m *turns.FollowMark) int64 { return m.For.Microseconds() }),
	})
	return mapWrite("mark replies as followed", err)
}

package sqlite

import (
	"context"

	"github.com/turnd/turnd/turns"
)

const markFollowed = `UPDATE turns SET followed_until = MAX(COALESCE(followed_until, 0), @now + @for)
	WHERE conversation_key = @key AND id = @reply AND status = 'in_flight'`

// MarkFollowed implements turns.Replies.
func (s *Store) MarkFollowed(ctx context.Context, marks []turns.FollowMark) error {
	return s.writeTx(ctx, "mark replies as followed", func(t *tx) error {
		for _, i := range inKeyOrder(marks, func(m turns.FollowMark) turns.ConversationKey { return m.Key }) {
			m := &marks[i]
			if _, err := t.exec(markFollowed, arg("key", m.Key[:]), blob("reply", m.Reply.UUID), arg("for", m.For.Microseconds()), arg("now", t.now)); err != nil {
				return err
			}
		}
		return nil
	})
}

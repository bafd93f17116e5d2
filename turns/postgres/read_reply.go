package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

const readReplies = `
SELECT i.n,` + rowColumns + allContent + `
FROM unnest(@n::int[], @key::uuid[], @reply::uuid[]) AS i (n, conversation_key, reply_id)
CROSS JOIN LATERAL (
	SELECT * FROM turns r
	WHERE r.conversation_key = i.conversation_key AND r.id = i.reply_id AND r.role = 'assistant'
	LIMIT 1) t
CROSS JOIN LATERAL (
	SELECT * FROM conversations c WHERE c.conversation_key = i.conversation_key AND c.deleted_at IS NULL
	LIMIT 1) c
LEFT JOIN` + ownerOf

// replyName names a reply that is to be read.
type replyName struct {
	key turns.ConversationKey
	id  turns.ReplyID
}

type replyRow struct {
	N int
	turnRow
}

// readOf is the row of a reply that was read among others, nil where there is none. Whoever asked for it decodes it.
type readOf struct{ row *replyRow }

// ReadReply implements turns.Reader.
func (s *Store) ReadReply(ctx context.Context, key turns.ConversationKey, id turns.ReplyID) (turns.Reply, error) {
	read, err := s.groups.replies.one(ctx, replyName{key, id})
	if err != nil {
		return turns.Reply{}, err
	}
	if read.row == nil {
		return turns.Reply{}, s.whyMissing(ctx, key, id.Row(), "reply")
	}
	p, err := read.row.pathRow()
	switch {
	case err != nil:
		return turns.Reply{}, fmt.Errorf("read reply: %w", err)
	case p.Unreadable:
		return *p.Reply, fmt.Errorf("read reply: %w", turns.ErrUnreadable)
	}
	return *p.Reply, nil
}

func (s *Store) replies() kind[replyName, readOf] {
	return kind[replyName, readOf]{op: "read reply", reads: true, run: s.readReplies}
}

// readReplies reads replies by one statement, in their order, of which several may be the same. Its error is raw.
func (s *Store) readReplies(ctx context.Context, names []replyName) ([]readOf, error) {
	rows, err := collect(ctx, s.pool, readReplies, pgx.NamedArgs{
		"n":     places(names),
		"key":   column(names, func(n *replyName) zeronull.UUID { return zeronull.UUID(n.key) }),
		"reply": column(names, func(n *replyName) zeronull.UUID { return zeronull.UUID(n.id.UUID) }),
	}, byName[replyRow](readReplies))
	if err != nil {
		return nil, err
	}
	read := make([]readOf, len(names))
	for i := range rows {
		read[rows[i].N].row = &rows[i]
	}
	return read, nil
}

package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

const findTurn = `
SELECT` + rowColumns + allContent + `
FROM turns named
CROSS JOIN LATERAL (
	SELECT * FROM turns u
	WHERE u.conversation_key = named.conversation_key AND u.id = COALESCE(named.responds_to, named.id) AND u.role = 'user'
	LIMIT 1) t
JOIN conversations c ON c.conversation_key = t.conversation_key
LEFT JOIN` + ownerOf + `
WHERE named.conversation_key = @key AND named.id = @id AND NOT t.erased AND c.deleted_at IS NULL`

// FindTurn implements turns.Reader.
func (s *Store) FindTurn(ctx context.Context, key turns.ConversationKey, id turns.RowID) (turns.UserTurn, error) {
	row, found, err := one(ctx, s.pool, findTurn, pgx.NamedArgs{
		"key": zeronull.UUID(key), "id": zeronull.UUID(id.UUID)}, pgx.RowToStructByName[turnRow])
	if err != nil {
		return turns.UserTurn{}, mapRead("find turn", err)
	}
	if !found {
		return turns.UserTurn{}, s.whyMissing(ctx, key, id, "turn")
	}
	p, err := row.pathRow()
	switch {
	case err != nil:
		return turns.UserTurn{}, fmt.Errorf("find turn: %w", err)
	case p.Unreadable:
		return *p.User, fmt.Errorf("find turn: %w", turns.ErrUnreadable)
	}
	return *p.User, nil
}

const repliesTo = `
SELECT` + rowColumns + ownContent + `
FROM` + rowSource + `
WHERE t.conversation_key = @key AND t.responds_to = @turn AND t.role = 'assistant' AND c.deleted_at IS NULL
ORDER BY t.attempt DESC LIMIT @limit`

// RepliesTo implements turns.Reader.
func (s *Store) RepliesTo(ctx context.Context, key turns.ConversationKey, turn turns.TurnID, limit int) ([]turns.Reply, error) {
	rows, err := collect(ctx, s.pool, repliesTo, pgx.NamedArgs{
		"key": zeronull.UUID(key), "turn": zeronull.UUID(turn.UUID), "limit": limit}, pgx.RowToStructByName[turnRow])
	if err != nil {
		return nil, mapRead("read replies", err)
	}
	replies := make([]turns.Reply, 0, len(rows))
	for i := range rows {
		p, err := rows[i].pathRow()
		if err != nil {
			return nil, fmt.Errorf("read replies: %w", err)
		}
		replies = append(replies, *p.Reply)
	}
	slices.Reverse(replies)
	return replies, nil
}

// Siblings below a parent and siblings without one are two lookups in the same index, of which one finds nothing. The
// newest are found first, so that a turn with very many others beside it can still be shown; the turn itself is added.
const entries = `
SELECT u.id AS turn_id,
	(SELECT count(*) FROM turns a WHERE a.conversation_key = @key AND a.responds_to = u.id) AS reply_count,
	ARRAY(
		SELECT b.id FROM (
			SELECT u.id, u.seq
			UNION ALL
			(SELECT s.id, s.seq FROM turns s
			WHERE s.conversation_key = @key AND s.parent_id = u.parent_id AND s.role = 'user' AND NOT s.erased
				AND s.waiting = '' AND s.id <> u.id ORDER BY s.seq DESC LIMIT @most)
			UNION ALL
			(SELECT s.id, s.seq FROM turns s
			WHERE u.parent_id IS NULL AND s.conversation_key = @key AND s.parent_id IS NULL AND s.role = 'user' AND NOT s.erased
				AND s.waiting = '' AND s.id <> u.id ORDER BY s.seq DESC LIMIT @most)
		) b ORDER BY b.seq) AS siblings,` + rowColumns + ownContent + `
FROM unnest(@turns::uuid[]) AS asked (id)
CROSS JOIN LATERAL (SELECT * FROM turns r WHERE r.conversation_key = @key AND r.id = asked.id AND r.role = 'user' AND NOT r.erased LIMIT 1) u
CROSS JOIN LATERAL (SELECT * FROM conversations c WHERE c.conversation_key = @key AND c.deleted_at IS NULL LIMIT 1) c
LEFT JOIN LATERAL (
	SELECT r.* FROM turns r WHERE r.conversation_key = @key AND r.responds_to = u.id
	ORDER BY (r.status <> 'abandoned') DESC, r.attempt DESC LIMIT 1
) t ON true
LEFT JOIN` + ownerOf

type entryRow struct {
	TurnID     [16]byte
	ReplyCount int
	Siblings   [][16]byte
	turnRow
}

// Entries implements turns.Reader.
func (s *Store) Entries(ctx context.Context, key turns.ConversationKey, ids []turns.TurnID) (map[turns.TurnID]turns.Entry, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := collect(ctx, s.pool, entries, pgx.NamedArgs{
		"key":   zeronull.UUID(key),
		"most":  turns.MaxSiblings - 1,
		"turns": column(ids, func(id *turns.TurnID) zeronull.UUID { return zeronull.UUID(id.UUID) }),
	}, pgx.RowToStructByName[entryRow])
	if err != nil {
		return nil, mapRead("read entries", err)
	}
	shown := make(map[turns.TurnID]turns.Entry, len(rows))
	for i := range rows {
		entry, err := rows[i].entry()
		if err != nil {
			return nil, fmt.Errorf("read entries: %w", err)
		}
		shown[turns.TurnID{UUID: rows[i].TurnID}] = entry
	}
	return shown, nil
}

func (r *entryRow) entry() (e turns.Entry, err error) {
	e.ReplyCount = r.ReplyCount
	e.Siblings = column(r.Siblings, func(id *[16]byte) turns.TurnID { return turns.TurnID{UUID: uuid.UUID(*id)} })
	if r.ReplyCount > 0 {
		var p turns.PathRow
		p, err = r.pathRow()
		e.Reply = p.Reply
	}
	return e, err
}

package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// Each step is one look in an index, and the last one, which finds nothing, ends the way with NULL.
const newestLeaf = `
WITH RECURSIVE down AS (
	SELECT r.id, 1 AS depth FROM turns r JOIN conversations c ON c.conversation_key = r.conversation_key
	WHERE r.conversation_key = @key AND r.id = @from AND NOT r.erased AND c.deleted_at IS NULL
	UNION ALL
	SELECT COALESCE(
		(SELECT r.id FROM turns r WHERE r.conversation_key = @key AND r.responds_to = down.id AND r.role = 'assistant'
			AND r.status <> 'abandoned'),
		(SELECT b.id FROM turns b WHERE b.conversation_key = @key AND b.parent_id = down.id AND NOT b.erased AND b.waiting = ''
			ORDER BY b.seq DESC LIMIT 1)), down.depth + 1
	FROM down WHERE down.id IS NOT NULL AND down.depth < @limit
)
SELECT id FROM down WHERE id IS NOT NULL ORDER BY depth DESC LIMIT 1`

// NewestLeaf implements turns.Reader.
func (s *Store) NewestLeaf(ctx context.Context, key turns.ConversationKey, from turns.RowID, limit int) (turns.RowID, error) {
	id, found, err := one(ctx, s.pool, newestLeaf, pgx.NamedArgs{
		"key": zeronull.UUID(key), "from": zeronull.UUID(from.UUID), "limit": limit}, pgx.RowTo[[16]byte])
	if err != nil {
		return turns.RowID{}, mapRead("find a leaf", err)
	}
	if !found {
		return turns.RowID{}, s.whyMissing(ctx, key, from, "turn")
	}
	return turns.RowID{UUID: uuid.UUID(id)}, nil
}

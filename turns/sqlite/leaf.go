package sqlite

import (
	"context"

	"github.com/turnd/turnd/turns"
)

// Each step is one look in an index, and the last one, which finds nothing, ends the way with NULL.
const newestLeaf = `WITH RECURSIVE down (id, depth) AS (
		SELECT r.id, 1 FROM turns r JOIN conversations c ON c.conversation_key = r.conversation_key
			WHERE r.conversation_key = @key AND r.id = @from AND NOT r.erased AND c.deleted_at IS NULL
		UNION ALL
		SELECT COALESCE(
			(SELECT r.id FROM turns r WHERE r.conversation_key = @key AND r.responds_to = down.id AND r.role = 'assistant'
				AND r.status <> 'abandoned'),
			(SELECT b.id FROM turns b WHERE b.conversation_key = @key AND b.parent_id = down.id AND NOT b.erased AND b.waiting = ''
				ORDER BY b.seq DESC LIMIT 1)), down.depth + 1
		FROM down WHERE down.id IS NOT NULL AND down.depth < @limit)
	SELECT id FROM down WHERE id IS NOT NULL ORDER BY depth DESC LIMIT 1`

// NewestLeaf implements turns.Reader.
func (s *Store) NewestLeaf(ctx context.Context, key turns.ConversationKey, from turns.RowID, limit int) (leaf turns.RowID, err error) {
	err = s.readTx(ctx, "find a leaf", func(t *tx) error {
		found, err := t.found(newestLeaf, []any{arg("key", key[:]), blob("from", from.UUID), arg("limit", limit)}, &leaf.UUID)
		if err == nil && !found {
			err = t.whyMissing(key, from, "turn")
		}
		return err
	})
	return leaf, err
}

package sqlite

import (
	"context"

	"github.com/turnd/turnd/turns"
)

const moveLeaf = `UPDATE conversations SET version = version + 1, leaf_id = @leaf, update_time = @now
	WHERE conversation_key = @key AND version = @version AND deleted_at IS NULL`

const selectReply = `UPDATE turns SET status = 'complete', reason = '', replaced_by = NULL
	WHERE conversation_key = @key AND id = @reply AND responds_to = @turn AND status = 'abandoned' AND reason = 'superseded'`

const isLive = `SELECT 1 FROM turns
	WHERE conversation_key = @key AND id = @reply AND responds_to = @turn AND status = 'complete'`

const moveSlot = `UPDATE turns SET slot_version = slot_version + 1 WHERE conversation_key = @key AND id = @turn`

// Select implements turns.Stops. What is superseded first could be selected right after, so a reply that is to take its own
// place is refused.
func (s *Store) Select(ctx context.Context, sel turns.Selection) (won bool, err error) {
	if sel.Select == sel.Supersede || sel.Live && !sel.Supersede.IsZero() {
		return false, nil
	}
	leaf := sel.Leaf
	if leaf.IsZero() {
		leaf = sel.Select.Row()
	}
	key := arg("key", sel.Key[:])
	reply, turn := blob("reply", sel.Select.UUID), blob("turn", sel.Turn.UUID)
	return s.winTx(ctx, "select reply", func(t *tx) (bool, error) {
		won, err := t.won(moveLeaf, key, blob("leaf", leaf.UUID), arg("version", sel.ExpectVersion), arg("now", t.now))
		if err != nil || !won {
			return false, err
		}
		if sel.Live {
			var one int
			return t.found(isLive, []any{key, reply, turn}, &one)
		}
		if sel.Supersede != (turns.ReplyID{}) {
			if won, err := t.supersede(sel.Key, sel.Turn, sel.Supersede, sel.Select); err != nil || !won {
				return false, err
			}
		}
		if won, err := t.won(selectReply, key, reply, turn); err != nil || !won {
			return false, err
		}
		return t.won(moveSlot, key, turn)
	})
}

// A superseded reply keeps all that it was, and its end.
const supersedeReply = `UPDATE turns SET status = 'abandoned', reason = 'superseded', replaced_by = @by
	WHERE conversation_key = @key AND id = @reply AND responds_to = @turn AND status = 'complete'`

// supersede frees a turn's slot of a complete reply, for another one.
func (t *tx) supersede(key turns.ConversationKey, turn turns.TurnID, old, by turns.ReplyID) (won bool, err error) {
	return t.won(supersedeReply, arg("key", key[:]), blob("turn", turn.UUID), blob("reply", old.UUID), blob("by", by.UUID))
}

package sqlite

import (
	"context"

	"github.com/turnd/turnd/turns"
)

// Lookup implements turns.Claims. Its statements see one snapshot.
func (s *Store) Lookup(ctx context.Context, q turns.LookupQuery) (st turns.Standing, err error) {
	err = s.readTx(ctx, "look up", func(t *tx) error {
		found, err := t.lookupConversation(q, &st)
		if err != nil || !found || st.Deleted {
			return err
		}
		if err := t.lookupTurn(q, &st); err != nil {
			return err
		}
		if err := t.lookupReplies(q, &st); err != nil {
			return err
		}
		return t.lookupBeside(q, &st)
	})
	if err != nil {
		return turns.Standing{}, err
	}
	return st, nil
}

const lookupConversation = `SELECT version, next_seq, leaf_id, last_turn_id, defaults, defaults_version, deleted_at IS NOT NULL,
		EXISTS (SELECT 1 FROM turns WHERE conversation_key = @key AND id = @parent AND waiting = '' AND NOT erased)
	FROM conversations WHERE conversation_key = @key`

func (t *tx) lookupConversation(q turns.LookupQuery, st *turns.Standing) (found bool, err error) {
	var defaults []byte
	found, err = t.found(lookupConversation, []any{arg("key", q.Key[:]), blob("parent", q.Parent.UUID)},
		&st.Version, &st.NextSeq, &st.Leaf.UUID, &st.LastTurn.UUID, &defaults, &st.DefaultsVersion, &st.Deleted, &st.ParentFound)
	if err != nil || !found {
		return false, err
	}
	st.Exists = true
	if st.Defaults, err = turns.DecodeOptions(defaults); err != nil {
		return true, err
	}
	st.Line, err = t.line(q.Key)
	return true, err
}

const lookupTurn = `SELECT ` + rowColumns + `r.content, r.input_hash, r.cancelled_generation` + rowTables + `
	WHERE r.conversation_key = @key AND r.id = @turn AND r.role = 'user'`

func (t *tx) lookupTurn(q turns.LookupQuery, st *turns.Standing) error {
	return t.query(func(scan func(...any) error) error {
		r, err := scanRow(scan, t.now, &st.InputHash, &st.CancelledGeneration)
		if err != nil {
			return err
		}
		st.Turn, err = r.userTurn()
		return err
	}, lookupTurn, arg("key", q.Key[:]), blob("turn", q.Turn.UUID))
}

// Indexes are named where a planner with little to go by would rather walk through the whole conversation.
const lookupReplies = `SELECT ` + rowColumns + `CASE WHEN r.responds_to = @turn AND r.status = 'complete' AND r.log_len <= @content_up_to
		THEN r.content ELSE '' END` + rowTables + `
	WHERE r.conversation_key = @key AND r.role = 'assistant' AND r.id IN (
		SELECT id FROM turns INDEXED BY one_running_reply_per_conversation
			WHERE conversation_key = @key AND role = 'assistant' AND status = 'in_flight'
		UNION ALL
		SELECT id FROM turns WHERE conversation_key = @key AND responds_to = @turn AND role = 'assistant' AND status <> 'abandoned'
		UNION ALL
		SELECT id FROM (SELECT id FROM turns WHERE conversation_key = @key AND responds_to = @turn ORDER BY attempt DESC LIMIT 1)
		UNION ALL
		SELECT @cursor)`

func (t *tx) lookupReplies(q turns.LookupQuery, st *turns.Standing) error {
	return t.query(func(scan func(...any) error) error {
		r, err := scanRow(scan, t.now)
		if err != nil {
			return err
		}
		if r.reply.Content, err = turns.DecodePieces(r.content); err != nil {
			r.reply.Content = nil // whoever follows the reply is told
		}
		place(q, r.reply, st)
		return nil
	}, lookupReplies, arg("key", q.Key[:]), blob("turn", q.Turn.UUID), blob("cursor", q.Cursor.UUID), arg("content_up_to", int64(q.ContentUpTo)))
}

// place puts one reply wherever it belongs in a standing.
func place(q turns.LookupQuery, r turns.Reply, st *turns.Standing) {
	here := func() *turns.Reply { reply := r; return &reply }
	if r.Status == turns.StatusInFlight {
		st.Running = here()
	}
	if r.Turn != q.Turn {
		return
	}
	if r.Status.Live() {
		st.Live = here()
	}
	if st.Newest == nil || st.Newest.Attempt < r.Attempt {
		st.Newest = here()
	}
	if r.ID == q.Cursor {
		st.Cursor = here()
	}
}

package sqlite

import (
	"context"
	"database/sql"

	"github.com/google/uuid"

	"github.com/turnd/turnd/turns"
)

const lockConversation = `SELECT deleted_at IS NOT NULL FROM conversations WHERE conversation_key = @key`

// openConversation reports whether a conversation is not deleted; a missing one is CodeNotFound.
func (t *tx) openConversation(key turns.ConversationKey) (open bool, err error) {
	var deleted bool
	found, err := t.found(lockConversation, []any{arg("key", key[:])}, &deleted)
	if err == nil && !found {
		err = turns.NotFound("conversation", "conversation_id")
	}
	return !deleted, err
}

const markDeleted = `UPDATE conversations SET deleted_at = @now, update_time = @now, version = version + 1, subject = '', title = '',
		defaults = '', labels = '{}', create_hash = NULL, leaf_id = NULL, last_turn_id = NULL
	WHERE conversation_key = @key`

const dropLine = `UPDATE turns INDEXED BY turns_in_line SET waiting = ''
	WHERE conversation_key = @key AND role = 'user' AND waiting <> ''`

// DeleteConversation implements turns.Deletions.
func (s *Store) DeleteConversation(ctx context.Context, key turns.ConversationKey) (d turns.Deletion, err error) {
	err = s.writeTx(ctx, "delete a conversation", func(t *tx) error {
		open, err := t.openConversation(key)
		if err != nil || !open {
			return err
		}
		if d.Ended, err = t.running(key, turns.TurnID{}); err != nil {
			return err
		}
		if err := t.endDeleted(key, d.Ended); err != nil {
			return err
		}
		if _, err := t.exec(dropLine, arg("key", key[:])); err != nil {
			return err
		}
		_, err = t.exec(markDeleted, arg("key", key[:]), arg("now", t.now))
		return err
	})
	if err != nil {
		return turns.Deletion{}, err
	}
	return d, nil
}

// Live replies are read by their index, whole conversations of them: who deletes one touches all of it anyway.
const runningReplies = `SELECT ` + rowColumns + `''
	FROM turns r INDEXED BY one_live_reply_per_user_turn
		JOIN conversations c ON c.conversation_key = r.conversation_key
		LEFT JOIN workers w ON w.worker_id = r.owner
	WHERE r.conversation_key = @key AND r.role = 'assistant' AND r.status <> 'abandoned' AND r.status IN ('in_flight', 'held')
		AND (@turn IS NULL OR r.responds_to = @turn)`

// running reads the replies of a conversation, or of one turn, that are in flight or held, with their open calls.
func (t *tx) running(key turns.ConversationKey, turn turns.TurnID) (running []turns.EndedReply, err error) {
	err = t.query(func(scan func(...any) error) error {
		r, err := scanRow(scan, t.now)
		if err != nil && !isUnreadable(err) {
			return err
		}
		running = append(running, turns.EndedReply{Reply: r.reply})
		return nil
	}, runningReplies, arg("key", key[:]), blob("turn", turn.UUID))
	if err != nil {
		return nil, err
	}
	for i := range running {
		if running[i].OpenCalls, err = t.ledgerOf(key, &running[i].Reply); err != nil {
			return nil, err
		}
	}
	return running, nil
}

// It is settled: whoever made it has nothing more to say but what its calls took.
const endDeleted = `UPDATE turns SET status = 'abandoned', reason = 'deleted', content = '', log_len = 0, next_lookup_at = NULL,
		end_time = @now, settled_at = @now
	WHERE conversation_key = @key AND id = @reply AND status IN ('in_flight', 'held')`

// What was stored of the log is taken as the output of the newest call.
const closeDeletedCalls = `UPDATE provider_calls SET
		class = CASE WHEN submitted_at IS NULL THEN 'not_sent' ELSE 'ambiguous' END,
		phase = CASE WHEN submitted_at IS NULL THEN 'none' ELSE 'written' END,
		token_source = CASE WHEN submitted_at IS NULL THEN '' ELSE 'estimated' END,
		input_tokens = CASE WHEN submitted_at IS NULL THEN 0 ELSE (request_bytes * 10 + 34) / 35 END,
		output_tokens = CASE WHEN submitted_at IS NULL OR number < @newest THEN 0 ELSE (@length * 10 + 34) / 35 END,
		wasted_tokens = CASE WHEN submitted_at IS NULL THEN 0
			ELSE (request_bytes * 10 + 34) / 35 + CASE WHEN number < @newest THEN 0 ELSE (@length * 10 + 34) / 35 END END,
		waste_cause = 'deleted', request_body = NULL, end_time = @now
	WHERE conversation_key = @key AND reply_id = @reply AND end_time IS NULL`

// endDeleted ends replies whose content goes, with their calls.
func (t *tx) endDeleted(key turns.ConversationKey, running []turns.EndedReply) error {
	for _, e := range running {
		newest := 0
		for _, c := range e.OpenCalls {
			newest = max(newest, c.Number)
		}
		args := []any{arg("key", key[:]), blob("reply", e.Reply.ID.UUID), arg("now", t.now)}
		if _, err := t.exec(endDeleted, args...); err != nil {
			return err
		}
		if _, err := t.exec(closeDeletedCalls, append(args, arg("newest", newest), arg("length", e.Reply.Length))...); err != nil {
			return err
		}
	}
	return nil
}

const findMark = `SELECT erased, parent_id FROM turns WHERE conversation_key = @key AND id = @turn AND role = 'user'`

// DeleteTurn implements turns.Deletions.
func (s *Store) DeleteTurn(ctx context.Context, key turns.ConversationKey, turn turns.TurnID, limit int) (d turns.Deletion, err error) {
	err = s.writeTx(ctx, "delete a turn", func(t *tx) error {
		open, err := t.openConversation(key)
		if err == nil && !open {
			err = turns.ConversationDeleted()
		}
		if err != nil {
			return err
		}
		var erased bool
		var parent uuid.UUID
		found, err := t.found(findMark, []any{arg("key", key[:]), blob("turn", turn.UUID)}, &erased, &parent)
		if err == nil && !found {
			err = turns.NotFound("turn", "turn_id")
		}
		if err != nil || erased {
			return err
		}
		tree, err := t.tree(key, turn, limit)
		if err != nil {
			return err
		}
		if d, err = t.eraseTree(key, tree); err != nil {
			return err
		}
		return t.moveOut(key, tree, parent)
	})
	if err != nil {
		return turns.Deletion{}, err
	}
	return d, nil
}

// treeRow is a row of what is deleted with a turn.
type treeRow struct {
	id                    uuid.UUID
	user, erased, running bool
	turn                  uuid.UUID
}

const readTree = `WITH RECURSIVE tree (id) AS (
		SELECT id FROM turns WHERE conversation_key = @key AND id = @turn
		UNION ALL
		SELECT b.id FROM tree CROSS JOIN turns b INDEXED BY turns_below ON b.conversation_key = @key AND b.parent_id = tree.id
		LIMIT @limit)
	SELECT r.id, r.role = 'user', r.erased, COALESCE(r.status IN ('in_flight', 'held'), 0), r.responds_to
	FROM tree CROSS JOIN turns r ON r.conversation_key = @key AND r.id = tree.id`

// tree reads a turn and all below it, marks of turns that were erased before among them.
func (t *tx) tree(key turns.ConversationKey, turn turns.TurnID, limit int) (tree []treeRow, err error) {
	err = t.query(func(scan func(...any) error) error {
		var r treeRow
		err := scan(&r.id, &r.user, &r.erased, &r.running, &r.turn)
		tree = append(tree, r)
		return err
	}, readTree, arg("key", key[:]), blob("turn", turn.UUID), arg("limit", limit+1))
	if err == nil && len(tree) > limit {
		err = turns.TooMuchBelow(limit)
	}
	return tree, err
}

// A mark hangs below the mark of the turn whose reply it was below, since that reply goes.
const eraseTurn = `UPDATE turns SET erased = 1, content = '', options = '', waiting = '', parent_id = CASE WHEN id = @root THEN parent_id
		ELSE COALESCE((SELECT r.responds_to FROM turns r WHERE r.conversation_key = @key AND r.id = turns.parent_id
			AND r.role = 'assistant'), parent_id) END
	WHERE conversation_key = @key AND id = @turn`

const eraseReply = `DELETE FROM turns WHERE conversation_key = @key AND id = @reply AND role = 'assistant'`

const untellTakeovers = `DELETE FROM reply_takeovers WHERE conversation_key = @key AND reply_id = @reply`

// endTree ends what runs of what tree has read.
func (t *tx) endTree(key turns.ConversationKey, tree []treeRow) (ended []turns.EndedReply, err error) {
	for _, r := range tree {
		if !r.running {
			continue
		}
		running, err := t.running(key, turns.TurnID{UUID: r.turn})
		if err == nil {
			err = t.endDeleted(key, running)
		}
		if err != nil {
			return nil, err
		}
		ended = append(ended, running...)
	}
	return ended, nil
}

// eraseTree erases what tree has read, whose first row is the root.
func (t *tx) eraseTree(key turns.ConversationKey, tree []treeRow) (d turns.Deletion, err error) {
	if d.Ended, err = t.endTree(key, tree); err != nil {
		return d, err
	}
	if err := t.settleDeleted(key, tree); err != nil {
		return d, err
	}
	for _, r := range tree {
		if !r.user {
			continue
		}
		if !r.erased {
			d.Turns++
		}
		if _, err := t.exec(eraseTurn, arg("key", key[:]), blob("turn", r.id), blob("root", tree[0].id)); err != nil {
			return d, err
		}
	}
	for _, r := range tree {
		if r.user {
			continue
		}
		args := []any{arg("key", key[:]), blob("reply", r.id)}
		for _, text := range []string{deleteChunks, untellTakeovers, eraseReply} {
			if _, err := t.exec(text, args...); err != nil {
				return d, err
			}
		}
	}
	return d, nil
}

const readEnds = `SELECT leaf_id, last_turn_id FROM conversations WHERE conversation_key = @key`

const newestTurn = `SELECT id FROM turns WHERE conversation_key = @key AND role = 'user' AND NOT erased AND waiting = ''
	ORDER BY seq DESC LIMIT 1`

const moveEnds = `UPDATE conversations SET version = version + 1, leaf_id = @leaf, last_turn_id = @last, update_time = @now
	WHERE conversation_key = @key`

// moveOut moves the conversation's leaf and last turn out of what was erased.
func (t *tx) moveOut(key turns.ConversationKey, tree []treeRow, parent uuid.UUID) error {
	var leaf, last uuid.UUID
	if _, err := t.found(readEnds, []any{arg("key", key[:])}, &leaf, &last); err != nil {
		return err
	}
	for _, r := range tree {
		if r.id == leaf {
			leaf = parent
			break
		}
	}
	for _, r := range tree {
		if r.id == last {
			last = uuid.Nil
			if _, err := t.found(newestTurn, []any{arg("key", key[:])}, &last); err != nil {
				return err
			}
			break
		}
	}
	_, err := t.exec(moveEnds, arg("key", key[:]), blob("leaf", leaf), blob("last", last), arg("now", t.now))
	return err
}

// A reply that went with its turn is known by its calls, which stay.
const findErased = `SELECT c.deleted_at IS NOT NULL, EXISTS (
		SELECT 1 FROM turns u WHERE u.conversation_key = @key AND u.erased AND u.id = COALESCE(
			(SELECT n.id FROM turns n WHERE n.conversation_key = @key AND n.id = @id),
			(SELECT p.turn_id FROM provider_calls p INDEXED BY provider_calls_of_reply
				WHERE p.conversation_key = @key AND p.reply_id = @id LIMIT 1)))
	FROM conversations c WHERE c.conversation_key = @key`

// whyMissing says why a row can't be read: it was deleted, or is not there.
func (t *tx) whyMissing(key turns.ConversationKey, id turns.RowID, kind string) error {
	var deleted, erased sql.NullBool
	_, err := t.found(findErased, []any{arg("key", key[:]), blob("id", id.UUID)}, &deleted, &erased)
	switch {
	case err != nil:
		return err
	case deleted.Bool:
		return turns.ConversationDeleted()
	case erased.Bool:
		return turns.TurnDeleted()
	}
	return turns.NotFound(kind, "")
}

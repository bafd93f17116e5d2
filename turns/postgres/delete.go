package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/turnd/turnd/turns"
)

// A deletion is a transaction of several statements. The first locks the conversation, as each claim does, so those that
// follow see all that was ever claimed in it; replies are locked next, which the endings of their owners wait for.
const lockConversation = `
SELECT c.deleted_at IS NOT NULL FROM conversations c WHERE c.conversation_key = @key FOR NO KEY UPDATE`

// deleting runs act in a transaction that holds the conversation's lock; open says that it is not deleted yet.
func (s *Store) deleting(ctx context.Context, op string, key turns.ConversationKey, act func(tx pgx.Tx, open bool) error) error {
	err := s.pool.repeat(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			deleted, err := all(ctx, tx, lockConversation, pgx.NamedArgs{"key": zeronull.UUID(key)}, pgx.RowTo[bool])
			if err == nil && len(deleted) == 0 {
				err = turns.NotFound("conversation", "conversation_id")
			}
			if err != nil {
				return err
			}
			return act(tx, !deleted[0])
		})
	})
	if turns.CodeOf(err) != turns.CodeInternal {
		return err // one of ours undid it
	}
	return mapWrite(op, err)
}

// all gathers the rows of a statement within a transaction.
func all[T any](ctx context.Context, tx pgx.Tx, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) ([]T, error) {
	rows, err := tx.Query(ctx, sql, named(args))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// The two differ in what they end: all of a conversation, by its index of live replies, or replies of a list.
const (
	runningColumns = `
SELECT` + rowColumns + ownContent + `, t.conversation_key, false AS deadline_passed,
` + ledgerOfReply + `
FROM` + rowSource + `
WHERE t.conversation_key = @key AND t.role = 'assistant' AND t.status IN ('in_flight', 'held')`

	runningReplies = runningColumns + ` AND t.status <> 'abandoned' ORDER BY t.id FOR NO KEY UPDATE OF t`

	runningOf = runningColumns + ` AND t.id = ANY (@replies::uuid[]) ORDER BY t.id FOR NO KEY UPDATE OF t`
)

// What was stored of the log is taken as the output of the newest call. The rows are settled: whoever made them has nothing
// more to say but what its calls took.
const endDeleted = `
WITH ended AS (
	SELECT * FROM unnest(@replies::uuid[], @newest::int[], @lengths::bigint[]) AS e (reply_id, newest, length)
), closed AS (
	UPDATE provider_calls p SET
		class = CASE WHEN p.submitted_at IS NULL THEN 'not_sent' ELSE 'ambiguous' END,
		phase = CASE WHEN p.submitted_at IS NULL THEN 'none' ELSE 'written' END,
		token_source = CASE WHEN p.submitted_at IS NULL THEN '' ELSE 'estimated' END,
		input_tokens = CASE WHEN p.submitted_at IS NULL THEN 0 ELSE (p.request_bytes * 10 + 34) / 35 END,
		output_tokens = CASE WHEN p.submitted_at IS NULL OR p.number < e.newest THEN 0 ELSE (e.length * 10 + 34) / 35 END,
		wasted_tokens = CASE WHEN p.submitted_at IS NULL THEN 0
			ELSE (p.request_bytes * 10 + 34) / 35 + CASE WHEN p.number < e.newest THEN 0 ELSE (e.length * 10 + 34) / 35 END END,
		waste_cause = 'deleted', request_body = NULL, end_time = clock_timestamp()
	FROM ended e WHERE p.conversation_key = @key AND p.reply_id = e.reply_id AND p.class = ''
)
UPDATE turns t SET status = 'abandoned', reason = 'deleted', content = '', log_len = 0, next_lookup_at = NULL,
	end_time = clock_timestamp(), settled_at = clock_timestamp()
FROM ended e WHERE t.conversation_key = @key AND t.id = e.reply_id AND t.status IN ('in_flight', 'held')`

// endRunning ends the replies that a statement finds in flight or held, with their calls.
func endRunning(ctx context.Context, tx pgx.Tx, sql string, args pgx.NamedArgs) ([]turns.EndedReply, error) {
	rows, err := all(ctx, tx, sql, args, pgx.RowToStructByName[staleRow])
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	ended := make([]turns.EndedReply, len(rows))
	newest := make([]int, len(rows))
	for i := range rows {
		r, err := rows[i].staleReply()
		if err != nil {
			return nil, err
		}
		ended[i] = turns.EndedReply{Reply: r.Reply, OpenCalls: r.OpenCalls}
		for _, c := range r.OpenCalls {
			newest[i] = max(newest[i], c.Number)
		}
	}
	_, err = tx.Exec(ctx, endDeleted, pgx.NamedArgs{
		"key": args["key"], "newest": newest,
		"replies": column(ended, func(e *turns.EndedReply) zeronull.UUID { return zeronull.UUID(e.Reply.ID.UUID) }),
		"lengths": column(ended, func(e *turns.EndedReply) int64 { return int64(e.Reply.Length) }),
	})
	return ended, err
}

// leaveMark leaves of a conversation the mark that it was deleted.
const leaveMark = `
UPDATE conversations c SET deleted_at = clock_timestamp(), update_time = clock_timestamp(), version = c.version + 1, subject = '',
	title = '', defaults = '', labels = '{}', create_hash = NULL, leaf_id = NULL, last_turn_id = NULL
WHERE c.conversation_key = @key`

const markDeleted = `
WITH unlined AS (
	UPDATE turns u SET waiting = '' WHERE u.conversation_key = @key AND u.role = 'user' AND u.waiting <> ''
)` + leaveMark

// DeleteConversation implements turns.Deletions.
func (s *Store) DeleteConversation(ctx context.Context, key turns.ConversationKey) (turns.Deletion, error) {
	var d turns.Deletion
	args := pgx.NamedArgs{"key": zeronull.UUID(key)}
	err := s.deleting(ctx, "delete a conversation", key, func(tx pgx.Tx, open bool) (err error) {
		if d = (turns.Deletion{}); !open {
			return nil
		}
		if d.Ended, err = endRunning(ctx, tx, runningReplies, args); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, markDeleted, named(args))
		return err
	})
	if err != nil {
		return turns.Deletion{}, err
	}
	return d, nil
}

const findMark = `
SELECT u.erased, u.parent_id FROM turns u WHERE u.conversation_key = @key AND u.id = @turn AND u.role = 'user' FOR NO KEY UPDATE`

type markRow struct {
	Erased   bool
	ParentID zeronull.UUID
}

// The limit ends the way down: a recursive query makes no more rows than are asked for.
const readTree = `
WITH RECURSIVE tree AS (
	SELECT t.id, t.role, t.erased FROM turns t WHERE t.conversation_key = @key AND t.id = @turn
	UNION ALL
	SELECT b.id, b.role, b.erased FROM tree JOIN turns b ON b.conversation_key = @key AND b.parent_id = tree.id
)
SELECT id, role = 'user' AS is_user, erased FROM tree LIMIT @limit`

type treeRow struct {
	ID     [16]byte
	IsUser bool
	Erased bool
}

// A mark hangs below the mark of the turn whose reply it was below, since that reply goes.
const eraseTree = `
WITH marked AS (
	UPDATE turns u SET erased = true, content = '', options = '', waiting = '', parent_id = CASE WHEN u.id = @turn THEN u.parent_id
		ELSE COALESCE((SELECT r.responds_to FROM turns r WHERE r.conversation_key = @key AND r.id = u.parent_id
			AND r.role = 'assistant'), u.parent_id) END
	WHERE u.conversation_key = @key AND u.id = ANY (@turns::uuid[])
), dropped AS (
	DELETE FROM reply_chunks k WHERE k.conversation_key = @key AND k.reply_id = ANY (@replies::uuid[])
), untold AS (
	DELETE FROM reply_takeovers o WHERE o.conversation_key = @key AND o.reply_id = ANY (@replies::uuid[])
)
DELETE FROM turns r WHERE r.conversation_key = @key AND r.id = ANY (@replies::uuid[]) AND r.role = 'assistant'`

const moveOut = `
UPDATE conversations c SET version = c.version + 1, update_time = clock_timestamp(),
	leaf_id = CASE WHEN c.leaf_id = ANY (@turns::uuid[]) OR c.leaf_id = ANY (@replies::uuid[]) THEN @parent::uuid ELSE c.leaf_id END,
	last_turn_id = CASE WHEN c.last_turn_id = ANY (@turns::uuid[]) THEN (
		SELECT u.id FROM turns u WHERE u.conversation_key = @key AND u.role = 'user' AND NOT u.erased AND u.waiting = ''
			AND u.seq > 0 ORDER BY u.seq DESC LIMIT 1) ELSE c.last_turn_id END
WHERE c.conversation_key = @key`

// DeleteTurn implements turns.Deletions.
func (s *Store) DeleteTurn(ctx context.Context, key turns.ConversationKey, turn turns.TurnID, limit int) (turns.Deletion, error) {
	var d turns.Deletion
	err := s.deleting(ctx, "delete a turn", key, func(tx pgx.Tx, open bool) (err error) {
		if !open {
			return turns.ConversationDeleted()
		}
		d, err = deleteTurn(ctx, tx, key, turn, limit)
		return err
	})
	if err != nil {
		return turns.Deletion{}, err
	}
	return d, nil
}

func deleteTurn(ctx context.Context, tx pgx.Tx, key turns.ConversationKey, turn turns.TurnID, limit int) (d turns.Deletion, err error) {
	args := pgx.NamedArgs{"key": zeronull.UUID(key), "turn": zeronull.UUID(turn.UUID), "limit": limit + 1}
	marks, err := all(ctx, tx, findMark, args, pgx.RowToStructByName[markRow])
	if err == nil && len(marks) == 0 {
		err = turns.NotFound("turn", "turn_id")
	}
	if err != nil || marks[0].Erased {
		return d, err
	}
	tree, err := all(ctx, tx, readTree, args, pgx.RowToStructByName[treeRow])
	if err == nil && len(tree) > limit {
		err = turns.TooMuchBelow(limit)
	}
	if err != nil {
		return d, err
	}
	var users, replies []uuid.UUID
	for _, r := range tree {
		if !r.IsUser {
			replies = append(replies, r.ID)
			continue
		}
		if users = append(users, r.ID); !r.Erased {
			d.Turns++
		}
	}
	args["turns"], args["replies"], args["parent"] = users, replies, marks[0].ParentID
	if d.Ended, err = endRunning(ctx, tx, runningOf, args); err != nil {
		return d, err
	}
	if err := settleDeleted(ctx, tx, args); err != nil {
		return d, err
	}
	if _, err := tx.Exec(ctx, eraseTree, named(args)); err != nil {
		return d, err
	}
	_, err = tx.Exec(ctx, moveOut, named(args))
	return d, err
}

// A reply that went with its turn is known by its calls, which stay.
const findErased = `
SELECT c.deleted_at IS NOT NULL AS deleted, EXISTS (
	SELECT 1 FROM turns u WHERE u.conversation_key = @key AND u.erased AND u.id = COALESCE(
		(SELECT n.id FROM turns n WHERE n.conversation_key = @key AND n.id = @id),
		(SELECT p.turn_id FROM provider_calls p WHERE p.conversation_key = @key AND p.reply_id = @id LIMIT 1))) AS erased
FROM conversations c WHERE c.conversation_key = @key`

type erasedRow struct{ Deleted, Erased bool }

// whyMissing says why a row can't be read: it was deleted, or is not there.
func (s *Store) whyMissing(ctx context.Context, key turns.ConversationKey, id turns.RowID, kind string) error {
	row, _, err := one(ctx, s.pool, findErased, pgx.NamedArgs{"key": zeronull.UUID(key), "id": zeronull.UUID(id.UUID)},
		pgx.RowToStructByName[erasedRow])
	switch {
	case err != nil:
		return mapRead("look for a deleted row", err)
	case row.Deleted:
		return turns.ConversationDeleted()
	case row.Erased:
		return turns.TurnDeleted()
	}
	return turns.NotFound(kind, "")
}

// isMissing reports what whyMissing says.
func isMissing(err error) bool {
	code := turns.CodeOf(err)
	return code == turns.CodeNotFound || code == turns.CodeDeleted || code == turns.CodeTurnDeleted
}

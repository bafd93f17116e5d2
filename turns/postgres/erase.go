package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/turnd/turnd/turns"
)

const toErase = `
SELECT conversation_key FROM conversations WHERE deleted_at IS NOT NULL AND erased_at IS NULL ORDER BY deleted_at LIMIT @limit`

// ConversationsToErase implements turns.Deletions.
func (s *Store) ConversationsToErase(ctx context.Context, limit int) ([]turns.ConversationKey, error) {
	keys, err := collect(ctx, s.pool, toErase, pgx.NamedArgs{"limit": limit}, pgx.RowTo[[16]byte])
	if err != nil {
		return nil, mapRead("read what is to be erased", err)
	}
	return column(keys, func(k *[16]byte) turns.ConversationKey { return *k }), nil
}

const lockToErase = `
SELECT c.conversation_key FROM conversations c
WHERE c.conversation_key = @key AND c.deleted_at IS NOT NULL AND c.erased_at IS NULL FOR NO KEY UPDATE`

const eraseChunks = `
DELETE FROM reply_chunks k USING (
	SELECT reply_id, start_offset FROM reply_chunks WHERE conversation_key = @key LIMIT @limit) d
WHERE k.conversation_key = @key AND k.reply_id = d.reply_id AND k.start_offset = d.start_offset`

// The newest rows go first: what hangs below a row, and a reply to a turn, has a later place. Only a turn that stood in line
// may have an earlier one than the reply that it was put below, so what is still below a row that goes is cut off.
const eraseRows = `
WITH newest AS (
	SELECT id FROM turns WHERE conversation_key = @key AND seq > 0 ORDER BY seq DESC LIMIT @limit
), cut AS (
	UPDATE turns u SET parent_id = NULL FROM newest n
	WHERE u.conversation_key = @key AND u.parent_id = n.id AND u.role = 'user' AND u.id NOT IN (SELECT id FROM newest)
)
DELETE FROM turns t USING newest n WHERE t.conversation_key = @key AND t.id = n.id`

const eraseDefaults = `
DELETE FROM conversation_defaults d USING (
	SELECT version FROM conversation_defaults WHERE conversation_key = @key LIMIT @limit) o
WHERE d.conversation_key = @key AND d.version = o.version`

const eraseTakeovers = `
DELETE FROM reply_takeovers o USING (
	SELECT reply_id, epoch FROM reply_takeovers WHERE conversation_key = @key LIMIT @limit) d
WHERE o.conversation_key = @key AND o.reply_id = d.reply_id AND o.epoch = d.epoch`

// What is open is settled while its turn's rows are there.
const openSharesOfDeleted = `
SELECT r.conversation_key, r.turn_id, r.generation FROM conversations c JOIN quota_reservations r ON r.conversation_key = c.conversation_key
WHERE c.conversation_key = @key AND c.deleted_at IS NOT NULL AND c.erased_at IS NULL AND r.open LIMIT @limit`

const eraseShares = `
DELETE FROM quota_reservations r USING (
	SELECT turn_id, generation FROM quota_reservations WHERE conversation_key = @key LIMIT @limit) o
WHERE r.conversation_key = @key AND r.turn_id = o.turn_id AND r.generation = o.generation`

// A call that nothing has closed until now never will be.
const noteErased = `
WITH closed AS (
	UPDATE provider_calls p SET class = 'ambiguous', phase = 'written', token_source = 'estimated',
		input_tokens = (p.request_bytes * 10 + 34) / 35, wasted_tokens = (p.request_bytes * 10 + 34) / 35,
		waste_cause = 'deleted', request_body = NULL, end_time = clock_timestamp()
	WHERE p.conversation_key = @key AND p.class = ''
)
UPDATE conversations SET erased_at = clock_timestamp() WHERE conversation_key = @key`

// EraseConversation implements turns.Deletions. The conversation's lock keeps two who erase it from each other.
func (s *Store) EraseConversation(ctx context.Context, key turns.ConversationKey, limit int) (left bool, err error) {
	const op = "erase a conversation"
	args := pgx.NamedArgs{"key": zeronull.UUID(key), "limit": limit}
	open, err := collect(ctx, s.pool, openSharesOfDeleted, args, pgx.RowToStructByName[keyRow])
	if err != nil {
		return false, mapRead(op, err)
	}
	if _, err := s.settle(ctx, column(open, (*keyRow).key)); err != nil || len(open) == limit {
		return true, mapWrite(op, err)
	}
	err = s.pool.repeat(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) (err error) {
			left, err = eraseIn(ctx, tx, args, int64(limit))
			return err
		})
	})
	if err != nil {
		return false, mapWrite(op, err)
	}
	return left, nil
}

func eraseIn(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs, limit int64) (left bool, err error) {
	found, err := all(ctx, tx, lockToErase, args, pgx.RowTo[[16]byte])
	if err != nil || len(found) == 0 {
		return false, err
	}
	for _, sql := range []string{eraseChunks, eraseTakeovers, eraseRows, eraseDefaults, eraseShares} {
		tag, err := tx.Exec(ctx, sql, named(args))
		if err != nil || tag.RowsAffected() == limit {
			return true, err
		}
	}
	_, err = tx.Exec(ctx, noteErased, named(args))
	return false, err
}

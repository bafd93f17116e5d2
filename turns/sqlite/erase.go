package sqlite

import (
	"context"

	"github.com/google/uuid"

	"github.com/turnd/turnd/turns"
)

const toErase = `SELECT conversation_key FROM conversations WHERE deleted_at IS NOT NULL AND erased_at IS NULL
	ORDER BY deleted_at LIMIT @limit`

// ConversationsToErase implements turns.Deletions.
func (s *Store) ConversationsToErase(ctx context.Context, limit int) ([]turns.ConversationKey, error) {
	return s.keys(ctx, "read what is to be erased", toErase, arg("limit", limit))
}

const isToErase = `SELECT 1 FROM conversations WHERE conversation_key = @key AND deleted_at IS NOT NULL AND erased_at IS NULL`

const eraseChunks = `DELETE FROM reply_chunks WHERE rowid IN (
	SELECT rowid FROM reply_chunks WHERE conversation_key = @key LIMIT @limit)`

const eraseTakeovers = `DELETE FROM reply_takeovers WHERE rowid IN (
	SELECT rowid FROM reply_takeovers WHERE conversation_key = @key LIMIT @limit)`

const eraseDefaults = `DELETE FROM conversation_defaults WHERE rowid IN (
	SELECT rowid FROM conversation_defaults WHERE conversation_key = @key LIMIT @limit)`

const openSharesOfConversation = openShares + ` WHERE q.conversation_key = @key AND q.open LIMIT @limit`

const eraseShares = `DELETE FROM quota_reservations WHERE rowid IN (
	SELECT rowid FROM quota_reservations WHERE conversation_key = @key LIMIT @limit)`

// A call that nothing has closed until now never will be.
const closeLeftCalls = `UPDATE provider_calls SET class = 'ambiguous', phase = 'written', token_source = 'estimated',
		input_tokens = (request_bytes * 10 + 34) / 35, wasted_tokens = (request_bytes * 10 + 34) / 35,
		waste_cause = 'deleted', request_body = NULL, end_time = @now
	WHERE conversation_key = @key AND end_time IS NULL`

const noteErased = `UPDATE conversations SET erased_at = @now WHERE conversation_key = @key`

// EraseConversation implements turns.Deletions.
func (s *Store) EraseConversation(ctx context.Context, key turns.ConversationKey, limit int) (left bool, err error) {
	err = s.writeTx(ctx, "erase a conversation", func(t *tx) error {
		var one int
		found, err := t.found(isToErase, []any{arg("key", key[:])}, &one)
		if err != nil || !found {
			return err
		}
		for _, erase := range []func(turns.ConversationKey, int) (bool, error){t.settleLeft, t.eraseChunks, t.eraseTakeovers, t.eraseRows, t.eraseDefaults, t.eraseShares} {
			if left, err = erase(key, limit); err != nil || left {
				return err
			}
		}
		if _, err := t.exec(closeLeftCalls, arg("key", key[:]), arg("now", t.now)); err != nil {
			return err
		}
		_, err = t.exec(noteErased, arg("key", key[:]), arg("now", t.now))
		return err
	})
	return left && err == nil, err
}

func (t *tx) eraseChunks(key turns.ConversationKey, limit int) (more bool, err error) {
	n, err := t.exec(eraseChunks, arg("key", key[:]), arg("limit", limit))
	return n == int64(limit), err
}

func (t *tx) eraseTakeovers(key turns.ConversationKey, limit int) (more bool, err error) {
	n, err := t.exec(eraseTakeovers, arg("key", key[:]), arg("limit", limit))
	return n == int64(limit), err
}

// settleLeft settles what is open while its turn's rows are there.
func (t *tx) settleLeft(key turns.ConversationKey, limit int) (more bool, err error) {
	keys, err := t.shareKeys(openSharesOfConversation, arg("key", key[:]), arg("limit", limit))
	if err == nil {
		_, err = t.settleShares(keys, true)
	}
	return len(keys) == limit, err
}

func (t *tx) eraseShares(key turns.ConversationKey, limit int) (more bool, err error) {
	n, err := t.exec(eraseShares, arg("key", key[:]), arg("limit", limit))
	return n == int64(limit), err
}

func (t *tx) eraseDefaults(key turns.ConversationKey, limit int) (more bool, err error) {
	n, err := t.exec(eraseDefaults, arg("key", key[:]), arg("limit", limit))
	return n == int64(limit), err
}

const newestRows = `SELECT id FROM turns WHERE conversation_key = @key ORDER BY seq DESC LIMIT @limit`

// Nothing may point at a row that goes. What hangs below one goes before it, as a rule; a turn that stood in line has an
// earlier place than the reply that it was put below.
const cutBelow = `UPDATE turns SET parent_id = NULL WHERE conversation_key = @key AND parent_id = @id AND role = 'user'`

const eraseRow = `DELETE FROM turns WHERE conversation_key = @key AND id = @id`

// eraseRows removes the newest rows. A reply has a later place than the turn that it answers, so it goes first.
func (t *tx) eraseRows(key turns.ConversationKey, limit int) (more bool, err error) {
	var ids []uuid.UUID
	err = t.query(func(scan func(...any) error) error {
		var id uuid.UUID
		err := scan(&id)
		ids = append(ids, id)
		return err
	}, newestRows, arg("key", key[:]), arg("limit", limit))
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		for _, text := range []string{cutBelow, eraseRow} {
			if _, err := t.exec(text, arg("key", key[:]), blob("id", id)); err != nil {
				return false, err
			}
		}
	}
	return len(ids) == limit, nil
}

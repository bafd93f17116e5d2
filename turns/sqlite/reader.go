package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/turnd/turnd/turns"
)

const readReply = `SELECT ` + rowColumns + `r.content` + rowTables + `
	WHERE r.conversation_key = @key AND r.id = @reply AND r.role = 'assistant' AND c.deleted_at IS NULL`

// ReadReply implements turns.Reader.
func (s *Store) ReadReply(ctx context.Context, key turns.ConversationKey, id turns.ReplyID) (reply turns.Reply, err error) {
	p, err := s.readRow(ctx, "read reply", "reply", readReply, key, id.Row(), arg("key", key[:]), blob("reply", id.UUID))
	if p.Reply == nil {
		return turns.Reply{}, err
	}
	return *p.Reply, err
}

// readRow reads the one row that a statement is about, with what ErrUnreadable leaves of it.
func (s *Store) readRow(ctx context.Context, doing, kind, text string, key turns.ConversationKey, id turns.RowID, args ...any) (p turns.PathRow, err error) {
	err = s.readTx(ctx, doing, func(t *tx) error {
		rows, err := t.anyRows(text, args...)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return t.whyMissing(key, id, kind)
		}
		p, err = t.pathRow(key, rows[0])
		return err
	})
	switch {
	case err != nil:
		return turns.PathRow{}, err
	case p.Unreadable:
		return p, fmt.Errorf("%s: %w", doing, turns.ErrUnreadable)
	}
	return p, nil
}

func (t *tx) reply(key turns.ConversationKey, id turns.ReplyID) (r row, found bool, err error) {
	rows, err := t.rows(readReply, arg("key", key[:]), blob("reply", id.UUID))
	if err != nil || len(rows) == 0 {
		return row{}, false, err
	}
	return rows[0], true, nil
}

const findTurn = `SELECT ` + rowColumns + `r.content` + rowTables + `
	WHERE r.conversation_key = @key AND r.role = 'user' AND NOT r.erased AND c.deleted_at IS NULL AND r.id = (
		SELECT COALESCE(responds_to, id) FROM turns WHERE conversation_key = @key AND id = @id)`

// FindTurn implements turns.Reader.
func (s *Store) FindTurn(ctx context.Context, key turns.ConversationKey, id turns.RowID) (turn turns.UserTurn, err error) {
	p, err := s.readRow(ctx, "find turn", "turn", findTurn, key, id, arg("key", key[:]), blob("id", id.UUID))
	if p.User == nil {
		return turns.UserTurn{}, err
	}
	return *p.User, err
}

const repliesTo = `SELECT ` + rowColumns + `''` + rowTables + `
	WHERE r.conversation_key = @key AND r.responds_to = @turn AND c.deleted_at IS NULL ORDER BY r.attempt DESC LIMIT @limit`

// RepliesTo implements turns.Reader.
func (s *Store) RepliesTo(ctx context.Context, key turns.ConversationKey, turn turns.TurnID, limit int) (replies []turns.Reply, err error) {
	err = s.readTx(ctx, "read replies", func(t *tx) error {
		rows, err := t.anyRows(repliesTo, arg("key", key[:]), blob("turn", turn.UUID), arg("limit", limit))
		if err != nil {
			return err
		}
		for i := range rows {
			replies = append(replies, rows[i].reply)
		}
		slices.Reverse(replies)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return replies, nil
}

// Entries implements turns.Reader.
func (s *Store) Entries(ctx context.Context, key turns.ConversationKey, ids []turns.TurnID) (map[turns.TurnID]turns.Entry, error) {
	entries := make(map[turns.TurnID]turns.Entry, len(ids))
	err := s.readTx(ctx, "read entries", func(t *tx) error {
		for _, id := range ids {
			e, found, err := t.entry(key, id)
			if err != nil {
				return err
			}
			if found {
				entries[id] = e
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// An entry's turn is among its own siblings, so no sibling at all means that there is no such turn.
func (t *tx) entry(key turns.ConversationKey, id turns.TurnID) (e turns.Entry, found bool, err error) {
	if e.Siblings, err = t.siblings(key, id); err != nil || len(e.Siblings) == 0 {
		return e, false, err
	}
	e.Reply, e.ReplyCount, err = t.shown(key, id)
	return e, true, err
}

// The turn itself comes first, then the newest of the others.
const readSiblings = `WITH self AS MATERIALIZED (
		SELECT t.id, t.seq, t.parent_id FROM turns t JOIN conversations c ON c.conversation_key = t.conversation_key
		WHERE t.conversation_key = @key AND t.id = @turn AND t.role = 'user' AND NOT t.erased AND c.deleted_at IS NULL)
	SELECT id FROM (
		SELECT id, seq FROM self
		UNION ALL
		SELECT id, seq FROM (
			SELECT s.id, s.seq FROM self CROSS JOIN turns s INDEXED BY turns_below ON s.conversation_key = @key
				AND s.parent_id IS self.parent_id
			WHERE s.role = 'user' AND NOT s.erased AND s.waiting = '' AND s.id <> self.id ORDER BY s.seq DESC LIMIT @most))
	ORDER BY seq`

func (t *tx) siblings(key turns.ConversationKey, id turns.TurnID) (ids []turns.TurnID, err error) {
	err = t.query(func(scan func(...any) error) error {
		var sibling turns.TurnID
		err := scan(&sibling.UUID)
		ids = append(ids, sibling)
		return err
	}, readSiblings, arg("key", key[:]), blob("turn", id.UUID), arg("most", turns.MaxSiblings-1))
	return ids, err
}

// The live reply comes first, then the newest.
const readShown = `SELECT ` + rowColumns + `'',
		(SELECT COUNT(*) FROM turns WHERE conversation_key = @key AND responds_to = @turn)` + rowTables + `
	WHERE r.conversation_key = @key AND r.responds_to = @turn AND c.deleted_at IS NULL
	ORDER BY r.status <> 'abandoned' DESC, r.attempt DESC LIMIT 1`

func (t *tx) shown(key turns.ConversationKey, id turns.TurnID) (reply *turns.Reply, count int, err error) {
	var r anyRow
	err = t.query(func(scan func(...any) error) error {
		r, err = scanAnyRow(scan, t.now, &count)
		return err
	}, readShown, arg("key", key[:]), blob("turn", id.UUID))
	if err != nil || count == 0 {
		return nil, 0, err
	}
	return &r.reply, count, nil
}

package sqlite

import (
	"context"

	"github.com/turnd/turnd/turns"
)

// CROSS JOIN keeps the order of the joins: SQLite would else read the whole conversation to look for the path in it.
//
// A path knows where to end from the start, or from the row on where it meets a reply whose window started somewhere.
const readPath = `WITH RECURSIVE up (id, parent_id, depth, bytes, tokens, until) AS (
		SELECT r.id, r.parent_id, 1, octet_length(r.content), 1 + min(octet_length(r.content), @row_bytes) / @token_bytes,
			COALESCE(@until, CASE WHEN ` + carriesStart + `END)
		FROM turns r WHERE r.conversation_key = @key AND r.id = @from AND NOT r.erased AND r.waiting = ''
		UNION ALL
		SELECT r.id, r.parent_id, up.depth + 1, up.bytes + octet_length(r.content),
			up.tokens + 1 + min(octet_length(r.content), @row_bytes) / @token_bytes,
			COALESCE(up.until, CASE WHEN ` + carriesStart + `END)
		FROM up CROSS JOIN turns r ON r.conversation_key = @key AND r.id = up.parent_id
		WHERE up.depth < @rows AND up.bytes < @bytes AND up.id IS NOT up.until
			AND (up.until IS NOT NULL OR @tokens = 0 OR up.tokens < @tokens))
	SELECT ` + rowColumns + `r.content
	FROM up CROSS JOIN turns r ON r.conversation_key = @key AND r.id = up.id
		JOIN conversations c ON c.conversation_key = r.conversation_key
		LEFT JOIN workers w ON w.worker_id = r.owner
	WHERE c.deleted_at IS NULL ORDER BY up.depth LIMIT @rows`

const carriesStart = `@model <> '' AND r.model = @model AND r.role = 'assistant'
				AND (r.status = 'complete' OR r.reason = 'superseded') THEN r.window_start `

// ReadPath implements turns.Claims.
func (s *Store) ReadPath(ctx context.Context, key turns.ConversationKey, from turns.RowID, limit turns.PathLimit) (path []turns.PathRow, err error) {
	err = s.readTx(ctx, "read path", func(t *tx) error {
		rows, err := t.anyRows(readPath, arg("key", key[:]), blob("from", from.UUID), arg("rows", limit.Rows), arg("bytes", limit.Bytes),
			blob("until", limit.Until.UUID), arg("model", limit.Model), arg("tokens", limit.Tokens),
			arg("token_bytes", turns.LeastBytesPerToken), arg("row_bytes", turns.LeastBytesOfRow))
		if err != nil {
			return err
		}
		for i := range rows {
			p, err := t.pathRow(key, rows[i])
			if err != nil {
				return err
			}
			path = append(path, p)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return path, nil
}

// anyRow is a row that may hold nonsense; bad says that its options do not decode.
type anyRow struct {
	row
	bad bool
}

// anyRows is rows that goes on at one of which the options do not decode, and leaves those out.
func (t *tx) anyRows(text string, args ...any) (rows []anyRow, err error) {
	err = t.query(func(scan func(...any) error) error {
		r, err := scanAnyRow(scan, t.now)
		rows = append(rows, r)
		return err
	}, text, args...)
	return rows, err
}

func scanAnyRow(scan func(...any) error, now int64, more ...any) (anyRow, error) {
	r, err := scanRow(scan, now, more...)
	if isUnreadable(err) {
		r.reply.Options = turns.Options{}
		return anyRow{r, true}, nil
	}
	return anyRow{r, false}, err
}

// pathRow is a row as one of a path. A row that does not decode must not end the conversation, so it goes on without what it
// says.
func (t *tx) pathRow(key turns.ConversationKey, r anyRow) (p turns.PathRow, err error) {
	p = turns.PathRow{ID: r.id, Parent: r.parent, Unreadable: r.bad}
	if r.user {
		if p.User, err = r.userTurn(); err != nil {
			p.Unreadable, r.content, r.options = true, []byte("[]"), nil
			p.User, err = r.userTurn()
		}
		return p, err
	}
	p.Reply = &r.reply
	if err = t.fill(key, &r.row); isUnreadable(err) {
		p.Unreadable, err = true, nil
	}
	if p.Unreadable {
		r.reply.Content, r.reply.Options = nil, turns.Options{}
	}
	return p, err
}

// rows reads all rows of a statement that selects rowColumns and a content.
func (t *tx) rows(text string, args ...any) (rows []row, err error) {
	err = t.query(func(scan func(...any) error) error {
		r, err := scanRow(scan, t.now)
		rows = append(rows, r)
		return err
	}, text, args...)
	return rows, err
}

package sqlite

import (
	"context"

	"github.com/turnd/turnd/turns"
)

// CROSS JOIN keeps the order of the joins: SQLite would else read the whole conversation to look for the path in it.
const readPath = `WITH RECURSIVE up (id, parent_id, depth, bytes) AS (
		SELECT id, parent_id, 1, octet_length(content) FROM turns WHERE conversation_key = @key AND id = @from
		UNION ALL
		SELECT t.id, t.parent_id, up.depth + 1, up.bytes + octet_length(t.content)
		FROM up CROSS JOIN turns t ON t.conversation_key = @key AND t.id = up.parent_id
		WHERE up.depth < @rows AND up.bytes < @bytes)
	SELECT ` + rowColumns + `r.content
	FROM up CROSS JOIN turns r ON r.conversation_key = @key AND r.id = up.id
		JOIN conversations c ON c.conversation_key = r.conversation_key
		LEFT JOIN workers w ON w.worker_id = r.owner
	ORDER BY up.depth LIMIT @rows`

// ReadPath implements turns.Claims.
func (s *Store) ReadPath(ctx context.Context, key turns.ConversationKey, from turns.RowID, limit turns.PathLimit) (path []turns.PathRow, err error) {
	err = s.readTx(ctx, "read path", func(t *tx) error {
		rows, err := t.rows(readPath, arg("key", key[:]), blob("from", from.UUID), arg("rows", limit.Rows), arg("bytes", limit.Bytes))
		if err != nil {
			return err
		}
		for i := range rows {
			p, err := t.pathRow(key, &rows[i])
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

func (t *tx) pathRow(key turns.ConversationKey, r *row) (p turns.PathRow, err error) {
	p = turns.PathRow{ID: r.id, Parent: r.parent}
	if r.user {
		p.User, err = r.userTurn()
		return p, err
	}
	err = t.fill(key, r)
	p.Reply = &r.reply
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

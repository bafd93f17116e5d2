package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// The way up is found by ids alone; content is fetched for the rows that are on it. LIMIT 1 keeps that a look-up by key
// for each row: the planner takes conversations to be short, and would rather read all of one.
const readPath = `
WITH RECURSIVE path AS (
	SELECT r.id, r.parent_id, 1 AS depth, octet_length(r.content)::bigint AS bytes
	FROM turns r WHERE r.conversation_key = @key AND r.id = @from AND @rows::int > 0
	UNION ALL
	SELECT p.id, p.parent_id, path.depth + 1, path.bytes + octet_length(p.content)
	FROM path JOIN turns p ON p.conversation_key = @key AND p.id = path.parent_id
	WHERE path.depth < @rows::int AND path.bytes < @bytes::bigint
)
SELECT` + rowColumns + allContent + `
FROM path
CROSS JOIN LATERAL (SELECT * FROM turns r WHERE r.conversation_key = @key AND r.id = path.id LIMIT 1) t
JOIN conversations c ON c.conversation_key = t.conversation_key
LEFT JOIN workers w ON w.worker_id = t.owner AND t.status = 'in_flight'
ORDER BY path.depth`

// ReadPath implements turns.Claims.
func (s *Store) ReadPath(ctx context.Context, key turns.ConversationKey, from turns.RowID, limit turns.PathLimit) ([]turns.PathRow, error) {
	rows, err := collect(ctx, s.pool, readPath, pgx.NamedArgs{
		"key": zeronull.UUID(key), "from": zeronull.UUID(from.UUID), "rows": limit.Rows, "bytes": limit.Bytes,
	}, pgx.RowToStructByName[turnRow])
	if err != nil {
		return nil, mapRead("read a path", err)
	}
	path := make([]turns.PathRow, 0, len(rows))
	for i := range rows {
		row, err := rows[i].pathRow()
		if err != nil {
			return nil, fmt.Errorf("read a path: %w", err)
		}
		path = append(path, row)
	}
	return path, nil
}

func (r *turnRow) pathRow() (p turns.PathRow, err error) {
	p.ID = turns.RowID{UUID: uuid.UUID(r.ID)}
	p.Parent = turns.RowID{UUID: uuid.UUID(r.ParentID)}
	if r.isUser() {
		p.User, err = r.userTurn()
	} else {
		p.Reply, err = r.reply()
	}
	return p, err
}

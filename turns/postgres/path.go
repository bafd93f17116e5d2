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
//
// A path knows where to end from the start, or from the row on where it meets a reply whose window started somewhere.
const (
	readPath = `
WITH RECURSIVE path AS (
	SELECT r.id, r.parent_id, 1 AS depth, octet_length(r.content)::bigint AS bytes, 1 + least(octet_length(r.content),
		@row_bytes::int)::bigint / @token_bytes::int AS tokens, COALESCE(@until::uuid, CASE WHEN` + carriesStart + `END) AS until
	FROM turns r WHERE r.conversation_key = @key AND r.id = @from AND NOT r.erased AND r.waiting = '' AND @rows::int > 0
	UNION ALL
	SELECT r.id, r.parent_id, path.depth + 1, path.bytes + octet_length(r.content), path.tokens + 1 + least(octet_length(r.content),
		@row_bytes::int) / @token_bytes::int, COALESCE(path.until, CASE WHEN` + carriesStart + `END)
	FROM path CROSS JOIN LATERAL (SELECT * FROM turns r WHERE r.conversation_key = @key AND r.id = path.parent_id LIMIT 1) r
	WHERE path.depth < @rows::int AND path.bytes < @bytes::bigint AND path.id IS DISTINCT FROM path.until
		AND (path.until IS NOT NULL OR @tokens::bigint = 0 OR path.tokens < @tokens::bigint)
)
SELECT` + rowColumns + allContent + `
FROM path
CROSS JOIN LATERAL (SELECT * FROM turns r WHERE r.conversation_key = @key AND r.id = path.id LIMIT 1) t
CROSS JOIN LATERAL (SELECT * FROM conversations c WHERE c.conversation_key = @key AND c.deleted_at IS NULL LIMIT 1) c
LEFT JOIN` + ownerOf + `
ORDER BY path.depth`

	carriesStart = ` @model::text <> '' AND r.model = @model::text AND r.role = 'assistant'
		AND (r.status = 'complete' OR r.reason = 'superseded') THEN r.window_start `
)

// PathStatement is the statement that reads a path, with its arguments, for whoever wants to know what it costs.
func PathStatement(key turns.ConversationKey, from turns.RowID, limit turns.PathLimit) (sql string, args pgx.NamedArgs) {
	return readPath, pgx.NamedArgs{
		"key": zeronull.UUID(key), "from": zeronull.UUID(from.UUID), "rows": limit.Rows, "bytes": limit.Bytes,
		"until": zeronull.UUID(limit.Until.UUID), "model": limit.Model, "tokens": limit.Tokens,
		"token_bytes": turns.LeastBytesPerToken, "row_bytes": turns.LeastBytesOfRow,
	}
}

// ReadPath implements turns.Claims.
func (s *Store) ReadPath(ctx context.Context, key turns.ConversationKey, from turns.RowID, limit turns.PathLimit) ([]turns.PathRow, error) {
	sql, args := PathStatement(key, from, limit)
	rows, err := collect(ctx, s.pool, sql, args, pgx.RowToStructByName[turnRow])
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

// pathRow is the row as one of a path. A row that does not decode must not end the conversation, so it goes on without what it
// says.
func (r *turnRow) pathRow() (p turns.PathRow, err error) {
	p.ID = turns.RowID{UUID: uuid.UUID(r.ID)}
	p.Parent = turns.RowID{UUID: uuid.UUID(r.ParentID)}
	read := func() error {
		if r.isUser() {
			p.User, err = r.userTurn()
		} else {
			p.Reply, err = r.reply()
		}
		return err
	}
	if read() == nil {
		return p, nil
	}
	p.Unreadable, r.Content, r.Chunks, r.Options = true, "", nil, ""
	if r.isUser() {
		r.Content = "[]"
	}
	return p, read()
}

package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// Each row says what it is there for. The conversation's own row is always there and has nothing of turns in it; the
// defaults travel with it alone, as they may be long.
const lookup = `
SELECT t.what, c.version, c.next_seq, c.leaf_id, c.last_turn_id, c.deleted_at IS NOT NULL AS deleted,
	CASE WHEN t.what = 'conversation' THEN c.defaults END AS defaults, c.defaults_version AS current_defaults,
	t.what = 'conversation' AND EXISTS (SELECT 1 FROM turns p
		WHERE p.conversation_key = c.conversation_key AND p.id = @parent AND p.waiting = '' AND NOT p.erased) AS parent_found,
	CASE WHEN t.what = 'conversation' AND l.waits THEN ARRAY(SELECT q.id FROM turns q
		WHERE q.conversation_key = c.conversation_key AND q.role = 'user' AND q.waiting <> '' ORDER BY q.seq) END AS line,
	CASE WHEN t.what = 'conversation' AND l.waits THEN ARRAY(SELECT q.waiting FROM turns q
		WHERE q.conversation_key = c.conversation_key AND q.role = 'user' AND q.waiting <> '' ORDER BY q.seq) END AS line_waiting,
	CASE WHEN t.what = 'leaf_turn' AND NOT EXISTS (SELECT 1 FROM turns x
		WHERE x.conversation_key = c.conversation_key AND x.id = t.stopped_for) THEN t.stopped_for END AS awaited,` +
	rowColumns + `, CASE WHEN t.what = 'turn' THEN t.content END AS content, NULL::text[] AS chunks
FROM conversations c
CROSS JOIN LATERAL (SELECT EXISTS (SELECT 1 FROM turns q
	WHERE q.conversation_key = c.conversation_key AND q.role = 'user' AND q.waiting <> '') AS waits) l
CROSS JOIN LATERAL (
	SELECT 'conversation' AS what, (NULL::turns).*
	UNION ALL
	SELECT 'turn', u.* FROM turns u
	WHERE u.conversation_key = c.conversation_key AND u.id = @turn AND u.role = 'user'
	UNION ALL
	SELECT 'running', r.* FROM turns r
	WHERE r.conversation_key = c.conversation_key AND r.role = 'assistant' AND r.status = 'in_flight'
	UNION ALL
	SELECT 'live', r.* FROM turns r
	WHERE r.conversation_key = c.conversation_key AND r.responds_to = @turn AND r.role = 'assistant' AND r.status <> 'abandoned'
	UNION ALL
	(SELECT 'newest', r.* FROM turns r
	WHERE r.conversation_key = c.conversation_key AND r.responds_to = @turn ORDER BY r.attempt DESC LIMIT 1)
	UNION ALL
	SELECT 'cursor', r.* FROM turns r
	WHERE r.conversation_key = c.conversation_key AND r.id = @cursor AND r.responds_to = @turn
	UNION ALL
	SELECT 'leaf', r.* FROM turns r
	WHERE (l.waits OR @beside::bool) AND r.conversation_key = c.conversation_key AND r.id = c.leaf_id AND r.role = 'assistant'
	UNION ALL
	SELECT 'leaf_turn', u.* FROM turns u
	WHERE (l.waits OR @beside::bool) AND u.conversation_key = c.conversation_key AND u.id = (
		SELECT r.responds_to FROM turns r WHERE r.conversation_key = c.conversation_key AND r.id = c.leaf_id)
	UNION ALL
	SELECT 'busy', u.* FROM turns u
	WHERE @beside::bool AND u.conversation_key = c.conversation_key AND u.id = (
		SELECT r.responds_to FROM turns r
		WHERE r.conversation_key = c.conversation_key AND r.role = 'assistant' AND r.status = 'in_flight')
	UNION ALL
	(SELECT 'stopped', u.* FROM turns u
	WHERE @beside::bool AND u.conversation_key = c.conversation_key AND u.stopped_for = @turn ORDER BY u.seq DESC LIMIT 1)
) t
LEFT JOIN workers w ON w.worker_id = t.owner AND t.status = 'in_flight'
WHERE c.conversation_key = @key`

type lookupRow struct {
	What            string
	Version         int64
	NextSeq         int64
	LeafID          zeronull.UUID
	LastTurnID      zeronull.UUID
	Deleted         bool
	Defaults        zeronull.Text
	CurrentDefaults int32
	ParentFound     bool
	Line            [][16]byte
	LineWaiting     []string
	Awaited         zeronull.UUID
	turnRow
}

// Lookup implements turns.Claims.
func (s *Store) Lookup(ctx context.Context, q turns.LookupQuery) (turns.Standing, error) {
	rows, err := collect(ctx, s.pool, lookup, pgx.NamedArgs{
		"key": zeronull.UUID(q.Key), "turn": zeronull.UUID(q.Turn.UUID), "parent": zeronull.UUID(q.Parent.UUID),
		"cursor": zeronull.UUID(q.Cursor.UUID), "beside": q.Beside,
	}, pgx.RowToStructByName[lookupRow])
	if err != nil {
		return turns.Standing{}, mapRead("look up a turn", err)
	}
	var standing turns.Standing
	for i := range rows {
		if rows[i].Deleted && rows[i].What != "conversation" {
			continue
		}
		if err := rows[i].addTo(&standing); err != nil {
			return turns.Standing{}, fmt.Errorf("look up a turn: %w", err)
		}
	}
	return standing, nil
}

func (r *lookupRow) addTo(st *turns.Standing) (err error) {
	switch r.What {
	case "conversation":
		st.Exists, st.Deleted, st.ParentFound = true, r.Deleted, r.ParentFound
		st.Version, st.NextSeq = r.Version, r.NextSeq
		st.Leaf = turns.RowID{UUID: uuid.UUID(r.LeafID)}
		st.LastTurn = turns.TurnID{UUID: uuid.UUID(r.LastTurnID)}
		st.DefaultsVersion = r.CurrentDefaults
		if st.Line, err = r.line(); err == nil {
			st.Defaults, err = turns.DecodeOptions([]byte(r.Defaults))
		}
	case "turn":
		st.InputHash, st.CancelledGeneration = r.InputHash, int32(r.CancelledGeneration)
		st.Turn, err = r.userTurn()
	case "running":
		st.Running, err = r.reply()
	case "live":
		st.Live, err = r.reply()
	case "newest":
		st.Newest, err = r.reply()
	case "cursor":
		st.Cursor, err = r.reply()
	case "leaf":
		st.LeafReply, err = r.reply()
	case "leaf_turn":
		st.Awaited = turns.TurnID{UUID: uuid.UUID(r.Awaited)}
		st.LeafTurn, err = r.userTurnHead()
	case "busy":
		st.Busy, err = r.userTurnHead()
	case "stopped":
		st.Stopped, err = r.userTurnHead()
	}
	return err
}

// line are the turns in line, in their order.
func (r *lookupRow) line() ([]turns.InLine, error) {
	var line []turns.InLine
	for i, id := range r.Line {
		waiting, err := turns.DecodeWaiting([]byte(r.LineWaiting[i]))
		if err != nil {
			return nil, err
		}
		line = append(line, turns.InLine{Turn: turns.TurnID{UUID: id}, Waiting: waiting})
	}
	return line, nil
}

package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// Each row that has a part in an answer is read once, by its key, and says which parts those are. What they are is found
// first, by ids alone: of the replies to a turn that which has the highest attempt is its live one too, unless it is
// abandoned. The conversation itself is a row that has nothing of turns in it; the defaults travel with it alone, as they may
// be long. Whether a row is there is asked as a value: what EXISTS asks for each row may be planned as one walk over all.
const lookup = `
SELECT i.n, t.id IS NULL AS head, c.version, c.next_seq, c.leaf_id AS leaf, c.last_turn_id, c.deleted_at IS NOT NULL AS deleted,
	CASE WHEN t.id IS NULL THEN c.defaults END AS defaults, c.defaults_version AS current_defaults,
	CASE WHEN t.id IS NULL THEN (SELECT true FROM turns p
		WHERE p.conversation_key = i.conversation_key AND p.id = i.parent AND p.waiting = '' AND NOT p.erased) IS NOT NULL
		ELSE false END AS parent_found,
	CASE WHEN t.id IS NULL THEN h.line END AS line,
	CASE WHEN t.id IS NULL AND h.line <> '{}' THEN ARRAY(SELECT q.waiting FROM turns q
		WHERE q.conversation_key = i.conversation_key AND q.role = 'user' AND q.waiting <> '' ORDER BY q.seq) END AS line_waiting,
	CASE WHEN t.id = b.leaf_turn AND (SELECT true FROM turns x
		WHERE x.conversation_key = i.conversation_key AND x.id = t.stopped_for) IS NULL THEN t.stopped_for END AS awaited,
	COALESCE(t.id = i.turn, false) AS is_turn, COALESCE(t.id = h.running, false) AS is_running,
	COALESCE(t.id = b.live, false) AS is_live, COALESCE(t.id = n.id, false) AS is_newest,
	COALESCE(t.id = i.cursor AND t.responds_to = i.turn, false) AS is_cursor,
	COALESCE(t.id = b.leaf, false) AS is_leaf, COALESCE(t.id = b.leaf_turn, false) AS is_leaf_turn,
	COALESCE(t.id = b.busy, false) AS is_busy, COALESCE(t.id = b.stopped, false) AS is_stopped,` +
	rowColumns + `, CASE WHEN t.id = i.turn OR t.id = b.live AND t.status = 'complete' AND t.log_len <= i.content_up_to
		THEN t.content END AS content, NULL::text[] AS chunks
FROM unnest(@n::int[], @key::uuid[], @turn::uuid[], @parent::uuid[], @cursor::uuid[], @beside::bool[],
	@content_up_to::bigint[]) AS i (n, conversation_key, turn, parent, cursor, beside, content_up_to)
JOIN conversations c ON c.conversation_key = i.conversation_key
CROSS JOIN LATERAL (
	SELECT (SELECT r.id FROM turns r
			WHERE r.conversation_key = i.conversation_key AND r.role = 'assistant' AND r.status = 'in_flight') AS running,
		ARRAY(SELECT q.id FROM turns q
			WHERE q.conversation_key = i.conversation_key AND q.role = 'user' AND q.waiting <> '' ORDER BY q.seq) AS line
	OFFSET 0) h
LEFT JOIN LATERAL (
	SELECT r.id, r.status FROM turns r
	WHERE r.conversation_key = i.conversation_key AND r.responds_to = i.turn AND r.role = 'assistant'
	ORDER BY r.attempt DESC LIMIT 1) n ON true
CROSS JOIN LATERAL (
	SELECT CASE WHEN n.status = 'abandoned' THEN (SELECT r.id FROM turns r
			WHERE r.conversation_key = i.conversation_key AND r.responds_to = i.turn AND r.role = 'assistant'
				AND r.status <> 'abandoned') ELSE n.id END AS live,
		CASE WHEN i.beside OR h.line <> '{}' THEN c.leaf_id END AS leaf,
		CASE WHEN i.beside OR h.line <> '{}' THEN (SELECT r.responds_to FROM turns r
			WHERE r.conversation_key = i.conversation_key AND r.id = c.leaf_id) END AS leaf_turn,
		CASE WHEN i.beside THEN (SELECT r.responds_to FROM turns r
			WHERE r.conversation_key = i.conversation_key AND r.id = h.running) END AS busy,
		CASE WHEN i.beside THEN (SELECT u.id FROM turns u
			WHERE u.conversation_key = i.conversation_key AND u.stopped_for = i.turn ORDER BY u.seq DESC LIMIT 1) END AS stopped
	OFFSET 0) b
CROSS JOIN LATERAL (
	SELECT (NULL::turns).*
	UNION ALL
	SELECT r.* FROM (SELECT DISTINCT a.id
		FROM unnest(ARRAY[i.turn, h.running, b.live, n.id, i.cursor, b.leaf, b.leaf_turn, b.busy, b.stopped]) AS a (id)) d
	CROSS JOIN LATERAL (SELECT * FROM turns r WHERE r.conversation_key = i.conversation_key AND r.id = d.id LIMIT 1) r
) t
LEFT JOIN` + ownerOf

type lookupRow struct {
	N               int
	Head            bool
	Version         int64
	NextSeq         int64
	Leaf            zeronull.UUID
	LastTurnID      zeronull.UUID
	Deleted         bool
	Defaults        zeronull.Text
	CurrentDefaults int32
	ParentFound     bool
	Line            [][16]byte
	LineWaiting     []string
	Awaited         zeronull.UUID
	IsTurn          bool
	IsRunning       bool
	IsLive          bool
	IsNewest        bool
	IsCursor        bool
	IsLeaf          bool
	IsLeafTurn      bool
	IsBusy          bool
	IsStopped       bool
	turnRow
}

// Lookup implements turns.Claims.
func (s *Store) Lookup(ctx context.Context, q turns.LookupQuery) (turns.Standing, error) {
	standing, err := s.groups.lookups.one(ctx, q)
	if err != nil {
		return turns.Standing{}, err
	}
	return standing.Standing, standing.err
}

func (s *Store) lookups() kind[turns.LookupQuery, looked] {
	return kind[turns.LookupQuery, looked]{op: "look up a turn", reads: true, run: s.lookupMany}
}

// looked is the answer to one of many queries: what is stored may not decode.
type looked struct {
	turns.Standing
	err error
}

// lookupMany answers queries by one statement, in their order. Queries may name the same conversation and the same turn. Its
// error is raw.
func (s *Store) lookupMany(ctx context.Context, queries []turns.LookupQuery) ([]looked, error) {
	rows, err := collect(ctx, s.pool, lookup, pgx.NamedArgs{
		"n":      places(queries),
		"key":    column(queries, func(q *turns.LookupQuery) zeronull.UUID { return zeronull.UUID(q.Key) }),
		"turn":   column(queries, func(q *turns.LookupQuery) zeronull.UUID { return zeronull.UUID(q.Turn.UUID) }),
		"parent": column(queries, func(q *turns.LookupQuery) zeronull.UUID { return zeronull.UUID(q.Parent.UUID) }),
		"cursor": column(queries, func(q *turns.LookupQuery) zeronull.UUID { return zeronull.UUID(q.Cursor.UUID) }),
		"beside": column(queries, func(q *turns.LookupQuery) bool { return q.Beside }),

		"content_up_to": column(queries, func(q *turns.LookupQuery) int64 { return int64(q.ContentUpTo) }),
	}, byName[lookupRow](lookup))
	if err != nil {
		return nil, err
	}
	standings := make([]looked, len(queries))
	for i := range rows {
		r := &rows[i]
		st := &standings[r.N]
		if st.err != nil || r.Deleted && !r.Head {
			continue
		}
		if err := r.addTo(&st.Standing); err != nil {
			*st = looked{err: fmt.Errorf("look up a turn: %w", err)}
		}
	}
	return standings, nil
}

func (r *lookupRow) addTo(st *turns.Standing) error {
	switch {
	case r.Head:
		return r.addHead(st)
	case r.isUser():
		return r.addUser(st)
	default:
		return r.addReply(st)
	}
}

func (r *lookupRow) addHead(st *turns.Standing) (err error) {
	st.Exists, st.Deleted, st.ParentFound = true, r.Deleted, r.ParentFound
	st.Version, st.NextSeq = r.Version, r.NextSeq
	st.Leaf = turns.RowID{UUID: uuid.UUID(r.Leaf)}
	st.LastTurn = turns.TurnID{UUID: uuid.UUID(r.LastTurnID)}
	st.DefaultsVersion = r.CurrentDefaults
	if st.Line, err = r.line(); err == nil {
		st.Defaults, err = turns.DecodeOptions([]byte(r.Defaults))
	}
	return err
}

// addUser adds a user turn in each part that it has. Only as the turn asked for it has its content.
func (r *lookupRow) addUser(st *turns.Standing) error {
	if r.IsTurn {
		turn, err := r.userTurn()
		if err != nil {
			return err
		}
		st.Turn, st.InputHash, st.CancelledGeneration = turn, r.InputHash, int32(r.CancelledGeneration)
	}
	if r.IsLeafTurn {
		st.Awaited = turns.TurnID{UUID: uuid.UUID(r.Awaited)}
	}
	for _, part := range []struct {
		is bool
		to **turns.UserTurn
	}{{r.IsLeafTurn, &st.LeafTurn}, {r.IsBusy, &st.Busy}, {r.IsStopped, &st.Stopped}} {
		if !part.is {
			continue
		}
		turn, err := r.userTurnHead()
		if err != nil {
			return err
		}
		*part.to = turn
	}
	return nil
}

// addReply adds a reply in each part that it has. It is decoded once.
func (r *lookupRow) addReply(st *turns.Standing) error {
	var reply *turns.Reply
	for _, part := range []struct {
		is bool
		to **turns.Reply
	}{{r.IsRunning, &st.Running}, {r.IsLive, &st.Live}, {r.IsNewest, &st.Newest}, {r.IsCursor, &st.Cursor}, {r.IsLeaf, &st.LeafReply}} {
		switch {
		case !part.is:
			continue
		case reply == nil:
			var err error
			if reply, err = r.reply(); err != nil {
				r.Content = "" // whoever follows the reply is told
				reply, err = r.reply()
			}
			if err != nil {
				return err
			}
			*part.to = reply
		default:
			own := *reply
			*part.to = &own
		}
	}
	return nil
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

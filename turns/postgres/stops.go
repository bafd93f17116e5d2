package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/turnd/turnd/turns"
)

// stopTries bounds how often a stop is sent again because the conversation moved while it waited.
const stopTries = 16

// A reply that was claimed while this waited for its conversation is not in its snapshot, and must not be missed. Every
// claim moves the conversation, so a version that is another under the lock than in the snapshot says so: then nothing is
// written, and the statement is sent again. The reply is chosen by the snapshot and judged as it is under its lock. One that
// was abandoned before is marked too: who reads it learns that its generation goes no further.
const requestStop = `
WITH seen AS MATERIALIZED (
	SELECT c.version FROM conversations c WHERE c.conversation_key = @key AND c.deleted_at IS NULL
), locked AS (
	SELECT c.conversation_key, c.version FROM conversations c
	WHERE c.conversation_key = @key AND c.deleted_at IS NULL FOR NO KEY UPDATE
), asked AS (
	SELECT u.id, u.generation, u.cancelled_generation
	FROM locked l JOIN seen s ON s.version = l.version
	JOIN turns u ON u.conversation_key = @key AND u.id = @turn
	WHERE u.role = 'user' FOR NO KEY UPDATE OF u
), found AS (
	SELECT r.* FROM asked a JOIN turns r ON r.conversation_key = @key AND r.responds_to = a.id
	WHERE r.role = 'assistant' ORDER BY (r.status <> 'abandoned') DESC, r.attempt DESC LIMIT 1 FOR NO KEY UPDATE OF r
), stopping AS (
	SELECT f.id AS reply_id FROM asked a JOIN found f ON f.responds_to = a.id
	WHERE f.status <> 'complete' AND (@generation::int = 0 OR a.generation = @generation::int) AND (a.cancelled_generation < a.generation OR f.status = 'held'
		OR (f.status = 'in_flight' AND NOT f.cancel_requested))
), moved AS (
	UPDATE conversations c SET version = c.version + 1 FROM stopping s WHERE c.conversation_key = @key
), noted AS (
	UPDATE turns u SET cancelled_generation = u.generation,
		stopped_for = CASE WHEN u.cancelled_generation < u.generation THEN @by::uuid ELSE u.stopped_for END
	FROM stopping s
	WHERE u.conversation_key = @key AND u.id = @turn AND u.role = 'user'
), open AS (
	SELECT p.call_id, (p.request_bytes * 10 + 34) / 35 AS tokens FROM found f JOIN stopping s ON s.reply_id = f.id
	JOIN provider_calls p ON p.conversation_key = @key AND p.reply_id = f.id
	WHERE f.status = 'held' AND p.class = '' ORDER BY p.call_id FOR NO KEY UPDATE OF p
), guessed AS (` + guess + `
	FROM open o WHERE p.conversation_key = @key AND p.call_id = o.call_id
), lost AS (
	SELECT count(*)::int AS calls, COALESCE(sum(tokens), 0)::bigint AS tokens FROM open
), stopped AS (
	UPDATE turns t SET cancel_requested = true, next_lookup_at = NULL,
		input_tokens = t.input_tokens + l.tokens, wasted_tokens = t.wasted_tokens + l.tokens,
		provider_calls = t.provider_calls + l.calls,
		token_source = CASE WHEN l.calls > 0 THEN 'estimated' ELSE t.token_source END,
		status = CASE WHEN t.status = 'held' THEN 'abandoned' ELSE t.status END,
		reason = CASE WHEN t.status = 'held' THEN 'cancelled' ELSE t.reason END,
		end_time = CASE WHEN t.status = 'held' THEN clock_timestamp() ELSE t.end_time END
	FROM stopping s CROSS JOIN lost l
	WHERE t.conversation_key = @key AND t.id = s.reply_id AND t.status IN ('in_flight', 'held', 'abandoned')
	RETURNING t.*
)
SELECT l.version <> s.version AS moved,` + rowColumns + ownContent + `
FROM locked l CROSS JOIN seen s
JOIN conversations c ON c.conversation_key = l.conversation_key
LEFT JOIN (
	SELECT * FROM stopped UNION ALL SELECT * FROM found WHERE NOT EXISTS (SELECT 1 FROM stopped)
) t ON true
LEFT JOIN` + ownerOf

type stopRow struct {
	Moved bool
	turnRow
}

// RequestStop implements turns.Stops.
func (s *Store) RequestStop(ctx context.Context, key turns.ConversationKey, turn turns.TurnID, generation int32, by turns.TurnID) (turns.Reply, error) {
	for range stopTries {
		answer, err := s.groups.stops.one(ctx, stop{key, turn, generation, by})
		switch {
		case err != nil:
			return turns.Reply{}, err
		case answer.found && answer.row.Moved:
			continue
		case !answer.found || uuid.UUID(answer.row.ID) == uuid.Nil:
			return turns.Reply{}, turns.NotFound("turn", "")
		}
		reply, err := answer.row.reply()
		if err != nil {
			return turns.Reply{}, mapRead("request a stop", err)
		}
		return *reply, nil
	}
	return turns.Reply{}, turns.Unavailable(errors.New("request a stop: the conversation moved each time"))
}

// stop is one RequestStop, and stopAnswer what its statement gave.
type (
	stop struct {
		key        turns.ConversationKey
		turn       turns.TurnID
		generation int32
		by         turns.TurnID
	}
	stopAnswer struct {
		row   stopRow
		found bool
	}
)

func (s *Store) stops() kind[stop, stopAnswer] {
	return kind[stop, stopAnswer]{op: "request a stop", run: s.stop}
}

// stop sends a statement for each stop, all at once and in one transaction: stops are few, and each looks at much. They go in
// the order of their conversations, as all that locks several does.
func (s *Store) stop(ctx context.Context, stops []stop) ([]stopAnswer, error) {
	if len(stops) == 1 {
		o := &stops[0]
		row, found, err := one(ctx, s.pool, requestStop, stopArgs(o.key, o.turn, o.generation, o.by), pgx.RowToStructByName[stopRow])
		return []stopAnswer{{row, found}}, err
	}
	order := places(stops)
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(stops[a].key[:], stops[b].key[:]) })
	rows := make([][]stopRow, len(stops))
	err := s.pool.repeat(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		b := &pgx.Batch{}
		for _, n := range order {
			o := &stops[n]
			b.Queue(requestStop, stopArgs(o.key, o.turn, o.generation, o.by)).Query(into(&rows[n], pgx.RowToStructByName[stopRow]))
		}
		return conn.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return nil, err
	}
	answers := make([]stopAnswer, len(stops))
	for n := range rows {
		if len(rows[n]) > 0 {
			answers[n] = stopAnswer{rows[n][0], true}
		}
	}
	return answers, nil
}

func stopArgs(key turns.ConversationKey, turn turns.TurnID, generation int32, by turns.TurnID) pgx.NamedArgs {
	return pgx.NamedArgs{"by": zeronull.UUID(by.UUID), "key": zeronull.UUID(key), "turn": zeronull.UUID(turn.UUID), "generation": generation}
}

// Both replies are locked and judged before anything is written. The slot is freed first, and the choice looks at that,
// so that the unique index never sees two live replies.
const selectReply = `
WITH locked AS (
	SELECT c.conversation_key FROM conversations c
	WHERE c.conversation_key = @key AND c.version = @expect AND c.deleted_at IS NULL FOR NO KEY UPDATE
), asked AS (
	SELECT u.id FROM locked l JOIN turns u ON u.conversation_key = l.conversation_key AND u.id = @turn
	WHERE u.role = 'user' FOR NO KEY UPDATE OF u
), fit AS (
	SELECT r.id FROM asked a JOIN turns r ON r.conversation_key = @key AND r.id IN (@select::uuid, @supersede::uuid)
	WHERE r.responds_to = a.id AND ((r.id = @select::uuid AND NOT @live AND r.status = 'abandoned' AND r.reason = 'superseded')
		OR (r.id = @select::uuid AND @live AND r.status = 'complete') OR (r.id = @supersede::uuid AND r.status = 'complete'))
	ORDER BY r.id FOR NO KEY UPDATE OF r
), decided AS (
	SELECT count(*) AS replies FROM fit HAVING count(*) = CASE WHEN @supersede::uuid IS NULL THEN 1 ELSE 2 END
), superseded AS (
	UPDATE turns t SET status = 'abandoned', reason = 'superseded', replaced_by = @select::uuid FROM decided d
	WHERE t.conversation_key = @key AND t.id = @supersede::uuid AND t.status = 'complete'
	RETURNING t.id
), freed AS (
	SELECT d.replies FROM decided d WHERE NOT @live AND (@supersede::uuid IS NULL OR EXISTS (SELECT 1 FROM superseded))
), selected AS (
	UPDATE turns t SET status = 'complete', reason = '', replaced_by = NULL FROM freed f
	WHERE t.conversation_key = @key AND t.id = @select::uuid AND t.status = 'abandoned' AND t.reason = 'superseded'
	RETURNING t.id
), noted AS (
	UPDATE turns u SET slot_version = u.slot_version + 1 FROM selected s
	WHERE u.conversation_key = @key AND u.id = @turn AND u.role = 'user'
), chosen AS (
	SELECT id FROM selected UNION ALL SELECT @select::uuid FROM decided WHERE @live
), moved AS (
	UPDATE conversations c SET version = c.version + 1, leaf_id = COALESCE(@leaf::uuid, s.id), update_time = clock_timestamp()
	FROM chosen s WHERE c.conversation_key = @key
)
SELECT id FROM chosen`

// Select implements turns.Stops.
func (s *Store) Select(ctx context.Context, sel turns.Selection) (won bool, err error) {
	if sel.Live && !sel.Supersede.IsZero() {
		return false, nil
	}
	return s.swap(ctx, "select a reply", selectReply, selectArgs(sel))
}

func selectArgs(sel turns.Selection) pgx.NamedArgs {
	return pgx.NamedArgs{
		"key": zeronull.UUID(sel.Key), "expect": sel.ExpectVersion, "turn": zeronull.UUID(sel.Turn.UUID),
		"select": zeronull.UUID(sel.Select.UUID), "supersede": zeronull.UUID(sel.Supersede.UUID),
		"leaf": zeronull.UUID(sel.Leaf.UUID), "live": sel.Live,
	}
}

// swap runs a statement that makes a reply live and gives its id. One that met a unique key found the slot or the
// conversation taken: it wrote nothing and is lost.
func (s *Store) swap(ctx context.Context, op, sql string, args pgx.NamedArgs) (won bool, err error) {
	_, won, err = one(ctx, s.pool, sql, args, pgx.RowTo[[16]byte])
	if isUniqueViolation(err) {
		return false, nil
	}
	return won, mapWrite(op, err)
}

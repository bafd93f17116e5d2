package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// All that changes a line moves its conversation. So under the lock of a conversation that is at the expected version,
// which the caller read before, the snapshot shows the line as it is, and may count it.
const enqueue = `
WITH locked AS (
	SELECT c.conversation_key FROM conversations c
	WHERE c.conversation_key = @key AND c.version = @expect AND c.deleted_at IS NULL FOR NO KEY UPDATE
), line AS (
	SELECT count(*)::int AS length FROM turns q WHERE q.conversation_key = @key AND q.role = 'user' AND q.waiting <> ''
), moved AS (
	UPDATE conversations c SET version = c.version + 1, next_seq = c.next_seq + 1, update_time = clock_timestamp()
	FROM locked l CROSS JOIN line n
	WHERE c.conversation_key = l.conversation_key AND n.length < @max::int AND NOT EXISTS (
		SELECT 1 FROM turns t WHERE t.conversation_key = @key AND t.id = @turn)
	RETURNING c.conversation_key, c.next_seq - 1 AS seq
), stored AS (
	INSERT INTO turns (conversation_key, id, role, parent_id, seq, content, options, input_hash, waiting, create_time)
	SELECT m.conversation_key, @turn::uuid, 'user', @parent::uuid, m.seq, @content::text, @options::text, @input_hash::bytea,
		@waiting::text, clock_timestamp()
	FROM moved m
	RETURNING seq, create_time
)
SELECT n.length, n.length >= @max::int AND EXISTS (SELECT 1 FROM locked) AS is_full, s.seq, s.create_time
FROM line n LEFT JOIN stored s ON true`

type enqueueRow struct {
	Length     int
	IsFull     bool
	Seq        zeronull.Int8
	CreateTime zeronull.Timestamptz
}

// Enqueue implements turns.Lines.
func (s *Store) Enqueue(ctx context.Context, e turns.Enqueueing) (turns.EnqueueResult, error) {
	args, err := enqueueArgs(e)
	if err != nil {
		return turns.EnqueueResult{}, fmt.Errorf("enqueue: %w", err)
	}
	var row enqueueRow
	var met *turns.LimitMet
	if e.Reserve == nil {
		row, _, err = one(ctx, s.pool, enqueue, args, pgx.RowToStructByName[enqueueRow])
	} else {
		row, met, err = s.enqueueAndCharge(ctx, e, args)
	}
	if isUniqueViolation(err) {
		return turns.EnqueueResult{}, nil
	}
	if err != nil {
		return turns.EnqueueResult{}, mapWrite("enqueue", err)
	}
	if row.Seq == 0 || met != nil {
		return turns.EnqueueResult{Full: row.IsFull, Met: met}, nil
	}
	return turns.EnqueueResult{Won: true, Seq: int64(row.Seq), Position: row.Length, CreateTime: utc(row.CreateTime)}, nil
}

func enqueueArgs(e turns.Enqueueing) (pgx.NamedArgs, error) {
	content, err := turns.EncodeContent(e.NewTurn.Content)
	if err != nil {
		return nil, err
	}
	options, err := turns.EncodeOptions(e.NewTurn.Options)
	if err != nil {
		return nil, err
	}
	waiting, err := turns.EncodeWaiting(e.Waiting)
	if err != nil {
		return nil, err
	}
	return pgx.NamedArgs{
		"key": zeronull.UUID(e.Key), "expect": e.ExpectVersion, "turn": zeronull.UUID(e.Turn.UUID),
		"parent": zeronull.UUID(e.NewTurn.Parent.UUID), "content": string(content), "options": string(options),
		"input_hash": e.NewTurn.InputHash, "waiting": string(waiting), "max": e.Max,
	}, nil
}

// The reply that stands for a turn which left the line is over from its beginning, and settled: nobody made it.
const leaveLine = `
WITH locked AS (
	SELECT c.conversation_key FROM conversations c
	WHERE c.conversation_key = @key AND c.version = @expect AND c.deleted_at IS NULL FOR NO KEY UPDATE
), asked AS (
	SELECT u.conversation_key, u.id, u.generation, clock_timestamp() AS at
	FROM locked l JOIN turns u ON u.conversation_key = l.conversation_key AND u.id = @turn
	WHERE u.role = 'user' AND u.waiting <> '' FOR NO KEY UPDATE OF u
), moved AS (
	UPDATE conversations c SET version = c.version + 1, next_seq = c.next_seq + 1, update_time = a.at
	FROM asked a WHERE c.conversation_key = a.conversation_key
	RETURNING c.next_seq - 1 AS seq
), gone AS (
	UPDATE turns u SET waiting = '', parent_id = @parent::uuid,
		cancelled_generation = CASE WHEN @stops::bool THEN u.generation ELSE u.cancelled_generation END
	FROM asked a WHERE u.conversation_key = a.conversation_key AND u.id = a.id AND u.role = 'user'
)
INSERT INTO turns (conversation_key, id, role, parent_id, responds_to, seq, generation, status, reason, attempt, epoch, owner,
	model, content, provider_code, cancel_requested, settled_at, create_time, end_time)
SELECT a.conversation_key, @reply::uuid, 'assistant', a.id, a.id, m.seq, a.generation, 'abandoned', @reason::text, 1, 1, @owner::uuid,
	@model::text, '[]', @code::text, @stops::bool, a.at, a.at, a.at
FROM asked a CROSS JOIN moved m
RETURNING create_time`

// LeaveLine implements turns.Lines.
func (s *Store) LeaveLine(ctx context.Context, d turns.Departure) (turns.DepartureResult, error) {
	if err := allowedFrom("", d.Verb, turns.StatusAbandoned, d.Reason, turns.VerbCancel, turns.VerbRefuse); err != nil {
		return turns.DepartureResult{}, fmt.Errorf("leave the line: %w", err)
	}
	at, won, err := one(ctx, s.pool, leaveLine, pgx.NamedArgs{
		"key": zeronull.UUID(d.Key), "expect": d.ExpectVersion, "turn": zeronull.UUID(d.Turn.UUID), "parent": zeronull.UUID(d.Parent.UUID),
		"reply": zeronull.UUID(d.Reply.UUID), "reason": string(d.Reason), "owner": zeronull.UUID(d.Owner.UUID), "model": d.Model,
		"code": d.ProviderCode, "stops": d.Verb == turns.VerbCancel,
	}, pgx.RowTo[time.Time])
	if isUniqueViolation(err) || err == nil && !won {
		return turns.DepartureResult{}, nil
	}
	if err != nil {
		return turns.DepartureResult{}, mapWrite("leave the line", err)
	}
	return turns.DepartureResult{Won: true, Time: at.UTC()}, nil
}

const readLine = `
SELECT i.n, u.id IS NOT NULL AS found, COALESCE(u.waiting <> '', false) AS waiting,
	CASE WHEN u.waiting <> '' THEN (SELECT count(*)::int FROM turns q
		WHERE q.conversation_key = i.conversation_key AND q.role = 'user' AND q.waiting <> '' AND q.seq < u.seq) ELSE 0 END AS position,
	CASE WHEN u.waiting = '' THEN (SELECT r.id FROM turns r
		WHERE r.conversation_key = i.conversation_key AND r.responds_to = u.id
		ORDER BY (r.status <> 'abandoned') DESC, r.attempt DESC LIMIT 1) END AS reply_id
FROM unnest(@n::int[], @key::uuid[], @turn::uuid[]) AS i (n, conversation_key, turn_id)
LEFT JOIN LATERAL (SELECT u.* FROM turns u
	WHERE u.conversation_key = i.conversation_key AND u.id = i.turn_id AND u.role = 'user' LIMIT 1) u ON true`

type lineRow struct {
	N        int
	Found    bool
	Waiting  bool
	Position int
	ReplyID  zeronull.UUID
}

// ReadLine implements turns.Lines.
func (s *Store) ReadLine(ctx context.Context, asked []turns.LinePlace) ([]turns.LineView, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	rows, err := collect(ctx, s.pool, readLine, pgx.NamedArgs{
		"n":    places(asked),
		"key":  column(asked, func(p *turns.LinePlace) zeronull.UUID { return zeronull.UUID(p.Key) }),
		"turn": column(asked, func(p *turns.LinePlace) zeronull.UUID { return zeronull.UUID(p.Turn.UUID) }),
	}, pgx.RowToStructByName[lineRow])
	if err != nil {
		return nil, mapRead("read lines", err)
	}
	views := make([]turns.LineView, len(asked))
	for _, r := range rows {
		views[r.N] = turns.LineView{Found: r.Found, Waiting: r.Waiting, Position: r.Position, Reply: turns.ReplyID{UUID: uuid.UUID(r.ReplyID)}}
	}
	return views, nil
}

const idleLines = `
SELECT DISTINCT q.conversation_key FROM turns q
WHERE q.role = 'user' AND q.waiting <> '' AND q.conversation_key > @after::uuid AND NOT EXISTS (
	SELECT 1 FROM turns r WHERE r.conversation_key = q.conversation_key AND r.role = 'assistant' AND r.status = 'in_flight')
ORDER BY q.conversation_key LIMIT @limit`

// IdleLines implements turns.Lines.
func (s *Store) IdleLines(ctx context.Context, after turns.ConversationKey, limit int) ([]turns.ConversationKey, error) {
	keys, err := collect(ctx, s.pool, idleLines, pgx.NamedArgs{"after": [16]byte(after), "limit": limit}, pgx.RowTo[[16]byte])
	if err != nil {
		return nil, mapRead("read idle lines", err)
	}
	return slices.Clip(column(keys, func(k *[16]byte) turns.ConversationKey { return turns.ConversationKey(*k) })), nil
}

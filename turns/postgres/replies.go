package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// fence is the guard of every write by a reply's owner. Statements apply it where they lock the row.
const fence = ` t.status = 'in_flight' AND t.epoch = i.epoch AND t.owner = i.owner `

func addFences(args pgx.NamedArgs, fences []turns.Fence) {
	args["n"] = places(fences)
	args["key"] = column(fences, func(f *turns.Fence) zeronull.UUID { return zeronull.UUID(f.Key) })
	args["reply"] = column(fences, func(f *turns.Fence) zeronull.UUID { return zeronull.UUID(f.Reply.UUID) })
	args["epoch"] = column(fences, func(f *turns.Fence) int64 { return f.Epoch })
	args["owner"] = column(fences, func(f *turns.Fence) zeronull.UUID { return zeronull.UUID(f.Owner.UUID) })
}

// A call that is in the ledger already was permitted by the same statement, whose answer was lost: it counts once. One that
// is put back after a later one does not become the call under way.
const permitCalls = `
WITH item AS (
	SELECT * FROM unnest(@n::int[], @key::uuid[], @reply::uuid[], @epoch::bigint[], @owner::uuid[], @max_calls::int[],
		@waited_us::bigint[],` + callArrays + `)
	AS i (n, conversation_key, reply_id, epoch, owner, max_calls, waited_us, ` + callNames + `)
), known AS MATERIALIZED (
	SELECT i.*, EXISTS (SELECT 1 FROM provider_calls p
		WHERE p.conversation_key = i.conversation_key AND p.call_id = i.call_id AND p.reply_id = i.reply_id) AS again,
		NOT EXISTS (SELECT 1 FROM provider_calls p
		WHERE p.conversation_key = i.conversation_key AND p.reply_id = i.reply_id AND p.number > i.number) AS newest
	FROM item i
), locked AS (
	SELECT i.*, t.calls AS spent FROM known i
	JOIN turns t ON t.conversation_key = i.conversation_key AND t.id = i.reply_id
	WHERE` + fence + `AND NOT t.cancel_requested AND (i.again OR t.calls < i.max_calls)
	ORDER BY t.conversation_key, t.id FOR NO KEY UPDATE OF t
), counted AS (
	UPDATE turns t SET calls = t.calls + 1, waited_us = t.waited_us + i.waited_us,` + toCall + `
	FROM locked i
	WHERE t.conversation_key = i.conversation_key AND t.id = i.reply_id AND NOT i.again AND t.calls < i.max_calls
	RETURNING i.n, t.conversation_key, t.id, t.responds_to, t.generation, t.epoch, t.calls
), added AS (
	INSERT INTO provider_calls (` + openColumns + `)
	SELECT u.conversation_key, c.tenant, c.conversation_id, u.responds_to, u.generation, u.id, u.epoch, clock_timestamp(),` +
	fromCall + `
	FROM counted u JOIN locked i ON i.n = u.n JOIN conversations c ON c.conversation_key = u.conversation_key
)
SELECT n, calls FROM counted
UNION ALL
SELECT n, spent FROM locked WHERE again`

type permitRow struct {
	N     int
	Calls int
}

// PermitCalls implements turns.Replies. A permit sent again after an unknown outcome is granted and counts once.
func (s *Store) PermitCalls(ctx context.Context, permits []turns.CallPermit) ([]turns.PermitResult, error) {
	return s.groups.permits.write(ctx, permits)
}

func (s *Store) permits() kind[turns.CallPermit, turns.PermitResult] {
	return kind[turns.CallPermit, turns.PermitResult]{op: "permit a call", run: func(ctx context.Context, items []turns.CallPermit) ([]turns.PermitResult, error) {
		results, err := s.permit(ctx, items)
		if isUniqueViolation(err) {
			// The lost statement landed while this one waited for its row; now it is there to be seen.
			return s.permit(ctx, items)
		}
		return results, err
	}}
}

func (s *Store) permit(ctx context.Context, permits []turns.CallPermit) ([]turns.PermitResult, error) {
	args := pgx.NamedArgs{
		"max_calls": column(permits, func(p *turns.CallPermit) int { return p.MaxCalls }),
		"waited_us": column(permits, func(p *turns.CallPermit) int64 { return p.Waited.Microseconds() }),
	}
	addFences(args, column(permits, func(p *turns.CallPermit) turns.Fence { return p.Fence }))
	addCalls(args, column(permits, func(p *turns.CallPermit) turns.NewCall { return p.Call }))
	rows, err := collect(ctx, s.pool, permitCalls, args, pgx.RowToStructByName[permitRow])
	if err != nil {
		return nil, err
	}
	results := make([]turns.PermitResult, len(permits))
	for _, r := range rows {
		results[r.N] = turns.PermitResult{Granted: true, Calls: r.Calls}
	}
	return results, nil
}

// outcomes are calls to close, as a table, and closeOutcome writes one of them over an open row, of which it leaves what a
// note knew better.
const (
	outcomes = `
outcome AS (
	SELECT
		(@call_key::uuid[])[i] AS conversation_key, (@call_id::uuid[])[i] AS call_id, (@call_class::text[])[i] AS class,
		(@call_phase::text[])[i] AS phase, (@call_http::int[])[i] AS http_status,
		(@call_request::text[])[i] AS request_id, (@call_response::text[])[i] AS response_id,
		(@call_waste::text[])[i] AS waste_cause, (@call_input::bigint[])[i] AS input,
		(@call_cache_read::bigint[])[i] AS cache_read, (@call_cache_write::bigint[])[i] AS cache_write,
		(@call_output::bigint[])[i] AS output, (@call_reasoning::bigint[])[i] AS reasoning,
		(@call_source::text[])[i] AS source, (@call_wasted::bigint[])[i] AS wasted, (@call_cost::bigint[])[i] AS cost,
		(@call_extra::int[])[i] AS extra, (@call_low::bigint[])[i] AS low, (@call_high::bigint[])[i] AS high
	FROM (SELECT n + 1 AS i FROM unnest(@call_n::int[]) AS p (n)) p
)`

	closeOutcome = `
	UPDATE provider_calls p SET class = o.class,
		phase = CASE WHEN p.class = '' AND p.phase <> '' AND o.phase = 'written' THEN p.phase ELSE o.phase END,
		http_status = CASE WHEN p.class = '' AND o.http_status = 0 THEN p.http_status ELSE o.http_status END,
		provider_request_id = CASE WHEN p.class = '' AND o.request_id = '' THEN p.provider_request_id ELSE o.request_id END,
		provider_response_id = o.response_id, input_tokens = o.input,
		cache_read_tokens = o.cache_read, cache_write_tokens = o.cache_write, output_tokens = o.output,
		reasoning_tokens = o.reasoning, token_source = o.source, waste_cause = o.waste_cause, wasted_tokens = o.wasted,
		cost_micros = o.cost, extra_requests = o.extra, output_low = o.low, output_high = o.high, request_body = NULL,
		end_time = clock_timestamp()`
)

func addOutcomes(args pgx.NamedArgs, calls []turns.CallOutcome) {
	args["call_n"] = places(calls)
	args["call_key"] = column(calls, func(c *turns.CallOutcome) zeronull.UUID { return zeronull.UUID(c.Key) })
	args["call_id"] = column(calls, func(c *turns.CallOutcome) zeronull.UUID { return zeronull.UUID(c.ID.UUID) })
	args["call_class"] = column(calls, func(c *turns.CallOutcome) string { return string(c.Class) })
	args["call_phase"] = column(calls, func(c *turns.CallOutcome) string { return string(c.Phase) })
	args["call_http"] = column(calls, func(c *turns.CallOutcome) int { return c.HTTPStatus })
	args["call_request"] = column(calls, func(c *turns.CallOutcome) string { return c.RequestID })
	args["call_response"] = column(calls, func(c *turns.CallOutcome) string { return c.ResponseID })
	args["call_waste"] = column(calls, func(c *turns.CallOutcome) string { return c.WasteCause })
	args["call_extra"] = column(calls, func(c *turns.CallOutcome) int { return c.Extra })
	args["call_low"] = column(calls, func(c *turns.CallOutcome) int64 { return c.Low })
	args["call_high"] = column(calls, func(c *turns.CallOutcome) int64 { return c.High })
	addUsages(args, "call_", column(calls, func(c *turns.CallOutcome) turns.Usage { return c.Usage }))
}

func addUsages(args pgx.NamedArgs, prefix string, usages []turns.Usage) {
	args[prefix+"input"] = column(usages, func(u *turns.Usage) int64 { return u.Input })
	args[prefix+"cache_read"] = column(usages, func(u *turns.Usage) int64 { return u.CacheRead })
	args[prefix+"cache_write"] = column(usages, func(u *turns.Usage) int64 { return u.CacheWrite })
	args[prefix+"output"] = column(usages, func(u *turns.Usage) int64 { return u.Output })
	args[prefix+"reasoning"] = column(usages, func(u *turns.Usage) int64 { return u.Reasoning })
	args[prefix+"source"] = column(usages, func(u *turns.Usage) string { return string(u.Source) })
	args[prefix+"wasted"] = column(usages, func(u *turns.Usage) int64 { return u.Wasted })
	args[prefix+"cost"] = column(usages, func(u *turns.Usage) int64 { return u.CostMicros })
}

const closeCalls = `
WITH` + outcomes + `, locked AS (
	SELECT p.conversation_key, p.call_id FROM outcome o
	JOIN provider_calls p ON p.conversation_key = o.conversation_key AND p.call_id = o.call_id
	WHERE (p.class = '' OR p.waste_cause = 'deleted') ORDER BY p.conversation_key, p.call_id FOR NO KEY UPDATE OF p
)` + closeOutcome + `
FROM locked l JOIN outcome o ON o.conversation_key = l.conversation_key AND o.call_id = l.call_id
WHERE p.conversation_key = l.conversation_key AND p.call_id = l.call_id AND (p.class = '' OR p.waste_cause = 'deleted')`

// CloseCalls implements turns.Replies.
func (s *Store) CloseCalls(ctx context.Context, outcomes []turns.CallOutcome) error {
	_, err := s.groups.closings.write(ctx, outcomes)
	return err
}

func (s *Store) closings() kind[turns.CallOutcome, struct{}] {
	return kind[turns.CallOutcome, struct{}]{op: "close calls", run: func(ctx context.Context, items []turns.CallOutcome) ([]struct{}, error) {
		args := pgx.NamedArgs{}
		addOutcomes(args, items)
		_, err := exec(ctx, s.pool, closeCalls, args)
		return make([]struct{}, len(items)), err
	}}
}

// An item that would change nothing is answered from a plain read: it writes no row version. That is one that only asks,
// and one that was stored before and whose answer was lost. The others lock their row, and are held if the log then ends
// where they start, or where they end.
const checkpoint = `
WITH item AS (
	SELECT * FROM unnest(@n::int[], @key::uuid[], @reply::uuid[], @epoch::bigint[], @owner::uuid[], @from::bigint[],
		@upto::bigint[], @pieces::text[], @response::text[])
	AS i (n, conversation_key, reply_id, epoch, owner, from_offset, upto, pieces, response_id)
), read AS MATERIALIZED (
	SELECT i.*, t.cancel_requested, t.log_len = i.upto AND i.response_id IN ('', t.provider_response_id) AS stands
	FROM item i JOIN turns t ON t.conversation_key = i.conversation_key AND t.id = i.reply_id
	WHERE` + fence + `
), locked AS (
	SELECT i.n, i.conversation_key, i.reply_id, i.from_offset, i.upto, i.pieces, i.response_id,
		t.log_len, t.cancel_requested
	FROM read i JOIN turns t ON t.conversation_key = i.conversation_key AND t.id = i.reply_id
	WHERE NOT i.stands AND` + fence + `AND t.log_len IN (i.from_offset, i.upto)
	ORDER BY t.conversation_key, t.id FOR NO KEY UPDATE OF t
), grown AS (
	UPDATE turns t SET log_len = i.upto,
		provider_response_id = CASE WHEN i.response_id = '' THEN t.provider_response_id ELSE i.response_id END
	FROM locked i WHERE t.conversation_key = i.conversation_key AND t.id = i.reply_id
	RETURNING i.n
), stored AS (
	INSERT INTO reply_chunks (conversation_key, reply_id, start_offset, end_offset, pieces)
	SELECT i.conversation_key, i.reply_id, i.from_offset, i.upto, i.pieces
	FROM grown g JOIN locked i ON i.n = g.n WHERE i.log_len < i.upto
)
SELECT i.n, i.cancel_requested FROM grown g JOIN locked i ON i.n = g.n
UNION ALL
SELECT n, cancel_requested FROM read WHERE stands`

type checkpointRow struct {
	N               int
	CancelRequested bool
}

// Checkpoint implements turns.Replies. A checkpoint sent again after an unknown outcome is held and appends once. One that
// can't be stored is not held, and keeps none beside it from being stored.
func (s *Store) Checkpoint(ctx context.Context, checkpoints []turns.Checkpoint) ([]turns.CheckpointResult, error) {
	return s.groups.checkpoints.write(ctx, checkpoints)
}

func (s *Store) checkpoints() kind[turns.Checkpoint, turns.CheckpointResult] {
	return kind[turns.Checkpoint, turns.CheckpointResult]{op: "checkpoint", lost: isOfItem, run: s.checkpoint}
}

func (s *Store) checkpoint(ctx context.Context, checkpoints []turns.Checkpoint) ([]turns.CheckpointResult, error) {
	pieces, err := encodeLogs(column(checkpoints, func(c *turns.Checkpoint) []turns.Piece { return c.Pieces }))
	if err != nil {
		return nil, unfit{err}
	}
	args := pgx.NamedArgs{
		"from":     column(checkpoints, func(c *turns.Checkpoint) int64 { return int64(c.From) }),
		"upto":     column(checkpoints, func(c *turns.Checkpoint) int64 { return int64(c.To) }),
		"response": column(checkpoints, func(c *turns.Checkpoint) string { return c.ResponseID }),
		"pieces":   pieces,
	}
	addFences(args, column(checkpoints, func(c *turns.Checkpoint) turns.Fence { return c.Fence }))
	rows, err := collect(ctx, s.vital, checkpoint, args, pgx.RowToStructByName[checkpointRow])
	if err != nil {
		return nil, err
	}
	results := make([]turns.CheckpointResult, len(checkpoints))
	for _, r := range rows {
		results[r.N] = turns.CheckpointResult{Held: true, CancelRequested: r.CancelRequested}
	}
	return results, nil
}

func encodeLogs(logs [][]turns.Piece) ([]string, error) {
	encoded := make([]string, len(logs))
	for i, pieces := range logs {
		text, err := turns.EncodePieces(pieces)
		if err != nil {
			return nil, fmt.Errorf("encode a log: %w", err)
		}
		encoded[i] = string(text)
	}
	return encoded, nil
}

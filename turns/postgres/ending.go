package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// What goes with an ending, read from ended. Its chunks are dropped and its calls closed: those that an outcome is given
// for, and the others as sent and unknown, estimated at 3.5 bytes a token of their request. A correction writes its
// outcomes also over calls that were closed before, as those of a sweep are estimates. Where ended keeps its calls, as a
// held reply does, those without an outcome stay open.
const (
	dropAndClose = dropped + `, ` + closeAll

	closeAll = `closed AS (` + closeOutcome + closedOfEnded + ` AND p.class = ''
), ` + guessed

	dropAndCorrect = dropped + `, corrected AS (` + closeOutcome + closedOfEnded + ` AND p.reply_id = e.id
), ` + guessed

	dropped = `
dropped AS (
	DELETE FROM reply_chunks k USING ended e WHERE k.conversation_key = e.conversation_key AND k.reply_id = e.id
)`

	closedOfEnded = `
	FROM ended e JOIN outcome o ON o.conversation_key = e.conversation_key
	WHERE p.conversation_key = o.conversation_key AND p.call_id = o.call_id`

	guess = `
	UPDATE provider_calls p SET class = 'ambiguous', phase = CASE WHEN p.phase = '' THEN 'written' ELSE p.phase END, token_source = 'estimated',
		input_tokens = (p.request_bytes * 10 + 34) / 35, wasted_tokens = (p.request_bytes * 10 + 34) / 35,
		waste_cause = 'ambiguous', request_body = NULL, end_time = clock_timestamp()`

	guessed = `guessed AS (` + guess + `
	FROM ended e
	WHERE p.conversation_key = e.conversation_key AND p.reply_id = e.id AND p.class = '' AND NOT e.keeps AND NOT EXISTS (
		SELECT 1 FROM outcome o WHERE o.conversation_key = p.conversation_key AND o.call_id = p.call_id)
)`
)

// closing is what every ending writes; an item holds it under these names. spending is the part of it that counts.
const (
	closing = `
	status = i.status, reason = i.reason, content = i.content, log_len = i.length,
	end_time = CASE WHEN i.status <> 'held' THEN clock_timestamp() END,
	next_lookup_at = CASE WHEN i.status = 'held' AND i.lookup_us > 0
		THEN clock_timestamp() + i.lookup_us * interval '1 microsecond' END,` + spending

	spending = `
	input_tokens = i.input, cache_read_tokens = i.cache_read, cache_write_tokens = i.cache_write,
	output_tokens = i.output, reasoning_tokens = i.reasoning, token_source = i.source, wasted_tokens = i.wasted,
	cost_micros = i.cost, provider_calls = i.provider_calls`
)

// endings are the items of End, Salvage and Settle, in the order in which their rows are to be locked, and the calls that they
// close.
const endings = outcomes + `, item AS MATERIALIZED (
	SELECT
		i - 1 AS n, (@key::uuid[])[i] AS conversation_key, (@reply::uuid[])[i] AS reply_id,
		(@epoch::bigint[])[i] AS epoch, (@owner::uuid[])[i] AS owner, (@stored::bigint[])[i] AS stored,
		(@status::text[])[i] AS status, (@reason::text[])[i] AS reason, (@content::text[])[i] AS content,
		(@length::bigint[])[i] AS length, (@stop_reason::text[])[i] AS stop_reason,
		(@response::text[])[i] AS response_id, (@provider_code::text[])[i] AS provider_code,
		(@retry_after_us::bigint[])[i] AS retry_after_us, (@input::bigint[])[i] AS input,
		(@cache_read::bigint[])[i] AS cache_read, (@cache_write::bigint[])[i] AS cache_write,
		(@output::bigint[])[i] AS output, (@reasoning::bigint[])[i] AS reasoning, (@source::text[])[i] AS source,
		(@wasted::bigint[])[i] AS wasted, (@cost::bigint[])[i] AS cost, (@provider_calls::int[])[i] AS provider_calls,
		(@lookup_us::bigint[])[i] AS lookup_us, (@replaced_by::uuid[])[i] AS replaced_by
	FROM (SELECT n + 1 AS i FROM unnest(@n::int[]) AS p (n)) p ORDER BY conversation_key, reply_id
)`

// Only the last owner's own ending settles its reply. Each row is locked as it is written, in the order of the items.
const end = `
WITH` + endings + `, ended AS (
	UPDATE turns t SET` + closing + `, stop_reason = i.stop_reason, provider_code = i.provider_code,
		retry_after_us = i.retry_after_us, replaced_by = i.replaced_by,
		settled_at = CASE WHEN i.reason <> 'lease_expired' THEN clock_timestamp() END,
		provider_response_id = CASE WHEN i.response_id = '' THEN t.provider_response_id ELSE i.response_id END
	FROM item i WHERE t.conversation_key = i.conversation_key AND t.id = i.reply_id AND` + fence + `AND t.log_len = i.stored
	RETURNING i.n, t.conversation_key, t.id, t.end_time, t.status = 'held' AS keeps
),` + dropAndClose + `
SELECT n, end_time, (SELECT true FROM turns q
	WHERE q.conversation_key = e.conversation_key AND q.role = 'user' AND q.waiting <> '' LIMIT 1) IS NOT NULL AS in_line
FROM ended e`

type endRow struct {
	N       int
	EndTime zeronull.Timestamptz
	InLine  bool
}

// End implements turns.Replies. An ending that the transition table has not is CodeWrongState, and nothing is written.
// One that can't be stored is an error, beside the results of the others.
func (s *Store) End(ctx context.Context, endings []turns.Ending) ([]turns.EndResult, error) {
	for i := range endings {
		e := &endings[i]
		if err := allowed(e.Verb, e.Status, e.Reason, turns.VerbComplete, turns.VerbAbandon, turns.VerbHold); err != nil {
			return nil, fmt.Errorf("end reply: %w", err)
		}
	}
	return s.groups.endings.write(ctx, endings)
}

func (s *Store) endings() kind[turns.Ending, turns.EndResult] {
	return kind[turns.Ending, turns.EndResult]{op: "end reply", run: s.end}
}

func (s *Store) end(ctx context.Context, endings []turns.Ending) ([]turns.EndResult, error) {
	args, err := endingArgs(endings)
	if err != nil {
		return nil, unfit{err}
	}
	rows, err := collect(ctx, s.vital, end, args, pgx.RowToStructByName[endRow])
	if err != nil {
		return nil, err
	}
	results := make([]turns.EndResult, len(endings))
	for _, r := range rows {
		results[r.N] = turns.EndResult{Won: true, EndTime: utc(r.EndTime), InLine: r.InLine}
	}
	return results, nil
}

// allowed asks the transition table about an ending of a reply in flight by one of the verbs that a method is for.
func allowed(verb turns.Verb, to turns.Status, reason turns.Reason, verbs ...turns.Verb) error {
	return allowedFrom(turns.StatusInFlight, verb, to, reason, verbs...)
}

func allowedFrom(from turns.Status, verb turns.Verb, to turns.Status, reason turns.Reason, verbs ...turns.Verb) error {
	_, ok := turns.Allowed(from, "", verb, to, reason)
	if ok && slices.Contains(verbs, verb) && (reason != "") == (to == turns.StatusAbandoned) {
		return nil
	}
	return &turns.Error{Code: turns.CodeWrongState,
		Problem: fmt.Sprintf("a reply that is %s can't become %s(%s) by %s here", from, to, reason, verb)}
}

func endingArgs(endings []turns.Ending) (pgx.NamedArgs, error) {
	content, err := encodeLogs(column(endings, func(e *turns.Ending) []turns.Piece { return e.Content }))
	if err != nil {
		return nil, err
	}
	args := pgx.NamedArgs{
		"stored":         column(endings, func(e *turns.Ending) int64 { return int64(e.StoredLength) }),
		"status":         column(endings, func(e *turns.Ending) string { return string(e.Status) }),
		"reason":         column(endings, func(e *turns.Ending) string { return string(e.Reason) }),
		"content":        content,
		"length":         column(endings, func(e *turns.Ending) int64 { return int64(e.Length) }),
		"stop_reason":    column(endings, func(e *turns.Ending) string { return string(e.StopReason) }),
		"response":       column(endings, func(e *turns.Ending) string { return e.ResponseID }),
		"provider_code":  column(endings, func(e *turns.Ending) string { return e.ProviderCode }),
		"retry_after_us": column(endings, func(e *turns.Ending) int64 { return e.RetryAfter.Microseconds() }),
		"provider_calls": column(endings, func(e *turns.Ending) int32 { return e.Usage.Calls }),
		"lookup_us":      column(endings, func(e *turns.Ending) int64 { return e.LookupIn.Microseconds() }),
		"replaced_by":    make([]zeronull.UUID, len(endings)),
	}
	addFences(args, column(endings, func(e *turns.Ending) turns.Fence { return e.Fence }))
	addUsages(args, "", column(endings, func(e *turns.Ending) turns.Usage { return e.Usage }))
	var calls []turns.CallOutcome
	for i := range endings {
		if endings[i].Call != nil {
			calls = append(calls, *endings[i].Call)
		}
	}
	addOutcomes(args, calls)
	return args, nil
}

// That a stop was asked for stands in the row itself. That the owner is dead is read without a lock, and still a guard: dead is for ever, and a missing worker never comes.
const sweep = `
WITH` + outcomes + `, item AS (
	SELECT @epoch::bigint AS epoch, @owner::uuid AS owner, @status::text AS status, @reason::text AS reason,
		@content::text AS content, @length::bigint AS length, @input::bigint AS input, @cache_read::bigint AS cache_read,
		@cache_write::bigint AS cache_write, @output::bigint AS output, @reasoning::bigint AS reasoning,
		@source::text AS source, @wasted::bigint AS wasted, @cost::bigint AS cost, @provider_calls::int AS provider_calls,
		@lookup_us::bigint AS lookup_us
), ended AS (
	UPDATE turns t SET` + closing + `
	FROM item i
	WHERE t.conversation_key = @key AND t.id = @reply AND` + fence + `AND t.log_len = i.length
		AND (t.deadline_at < clock_timestamp() OR (@stopping AND t.cancel_requested)
			OR NOT EXISTS (SELECT 1 FROM workers w WHERE w.worker_id = t.owner AND NOT w.dead))
	RETURNING t.conversation_key, t.id, t.create_time, t.status = 'held' AS keeps
),` + dropAndClose + `
SELECT create_time FROM ended`

// Sweep implements turns.Replies. A sweep that the transition table has not is CodeWrongState.
func (s *Store) Sweep(ctx context.Context, sw turns.Sweeping) (won bool, err error) {
	err = allowed(sw.Verb, sw.Status, sw.Reason, turns.VerbSweep, turns.VerbExpire, turns.VerbCancel)
	if err != nil {
		return false, fmt.Errorf("sweep: %w", err)
	}
	content, err := turns.EncodePieces(sw.Content)
	if err != nil {
		return false, fmt.Errorf("sweep: encode a log: %w", err)
	}
	args := pgx.NamedArgs{
		"key": zeronull.UUID(sw.Fence.Key), "reply": zeronull.UUID(sw.Fence.Reply.UUID), "epoch": sw.Fence.Epoch,
		"owner": zeronull.UUID(sw.Fence.Owner.UUID), "status": string(sw.Status), "reason": string(sw.Reason),
		"content": string(content), "length": int64(sw.Length), "input": sw.Usage.Input, "cache_read": sw.Usage.CacheRead,
		"cache_write": sw.Usage.CacheWrite, "output": sw.Usage.Output, "reasoning": sw.Usage.Reasoning,
		"source": string(sw.Usage.Source), "wasted": sw.Usage.Wasted, "cost": sw.Usage.CostMicros,
		"provider_calls": sw.Usage.Calls, "stopping": sw.Verb == turns.VerbCancel,
		"lookup_us": sw.LookupIn.Microseconds(),
	}
	addOutcomes(args, sw.Calls)
	_, won, err = one(ctx, s.pool, sweep, args, pgx.RowTo[time.Time])
	return won, mapWrite("sweep", err)
}

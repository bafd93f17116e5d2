package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// What the last owner had of the reply comes as an ending, item; what its claim said of it is lost. Unlike a claim the
// reply takes no slot, so it is refused by its own keys alone: its id and its attempt. The turn's generation grows to the
// reply's, as the claim that was lost let it grow.
const restore = `
WITH` + endings + `, lost AS (
	SELECT * FROM unnest(@attempt::int[], @generation::int[], @endpoint::text[], @provider::text[], @model::text[],
		@provider_model::text[], @calls::int[], @waited_us::bigint[], @request_hash::bytea[], @builder_version::int[],
		@window_start::uuid[], @grace_us::bigint[], @on_ambiguous::text[], @on_partial::text[], @defaults_version::int[], @traceparent::text[])
	AS l (attempt, generation, endpoint, provider, model, provider_model, calls, waited_us, request_hash, builder_version,
		window_start, grace_us, on_ambiguous, on_partial, defaults_version, traceparent)
	LIMIT 1
), ledger AS (
	SELECT * FROM unnest(` + callArrays + `) AS p (` + callNames + `)
), locked AS (
	SELECT c.conversation_key, c.tenant, c.conversation_id FROM item i
	JOIN conversations c ON c.conversation_key = i.conversation_key
	WHERE c.version = @expect::bigint AND c.deleted_at IS NULL FOR NO KEY UPDATE OF c
), asked AS (
	SELECT u.id FROM locked l JOIN turns u ON u.conversation_key = l.conversation_key AND u.id = @turn::uuid
	WHERE u.role = 'user' AND NOT u.erased FOR NO KEY UPDATE OF u
), ended AS (
	INSERT INTO turns (conversation_key, id, role, parent_id, responds_to, seq, options, generation, status, reason, attempt,
		epoch, owner, endpoint, provider, model, provider_model, request_hash, builder_version, window_start, calls, waited_us,
		disconnect_grace_us, content, log_len, stop_reason, input_tokens, cache_read_tokens, cache_write_tokens,
		output_tokens, reasoning_tokens, token_source, wasted_tokens, cost_micros, provider_calls, provider_response_id,
		provider_code, retry_after_us, on_ambiguous, on_partial, defaults_version, traceparent, create_time, end_time, settled_at)
	SELECT i.conversation_key, i.reply_id, 'assistant', a.id, a.id, @next_seq::bigint, @reply_options::text, r.generation,
		i.status, i.reason, r.attempt, i.epoch, i.owner, r.endpoint, r.provider, r.model, r.provider_model, r.request_hash,
		r.builder_version, r.window_start, r.calls, r.waited_us, r.grace_us, i.content, i.length, i.stop_reason, i.input,
		i.cache_read, i.cache_write, i.output, i.reasoning, i.source, i.wasted, i.cost, i.provider_calls, i.response_id,
		i.provider_code, i.retry_after_us, r.on_ambiguous, r.on_partial, r.defaults_version, r.traceparent, n.at, n.at, n.at
	FROM asked a CROSS JOIN item i CROSS JOIN lost r CROSS JOIN (SELECT clock_timestamp() AS at) n
	RETURNING conversation_key, id, responds_to, generation, epoch, create_time
), moved AS (
	UPDATE conversations c SET version = c.version + 1, next_seq = @next_seq::bigint + 1
	FROM ended e WHERE c.conversation_key = e.conversation_key
), newer AS (
	UPDATE turns u SET generation = e.generation FROM ended e
	WHERE u.conversation_key = e.conversation_key AND u.id = e.responds_to AND u.role = 'user' AND u.generation < e.generation
), noted AS (
	INSERT INTO provider_calls (conversation_key, call_id, tenant, conversation_id, turn_id, generation, reply_id, epoch,
		number, first, layer, endpoint, provider, model, provider_model, credential, class, phase, http_status, idempotency_key,
		request_hash, builder_version, request_bytes, submitted_at, provider_request_id, provider_response_id, input_tokens,
		cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens, token_source, waste_cause, wasted_tokens,
		cost_micros, extra_requests, output_low, output_high, create_time, end_time)
	SELECT e.conversation_key, p.call_id, l.tenant, l.conversation_id, e.responds_to, e.generation, e.id, e.epoch, p.number,
		p.first, p.layer, p.call_endpoint, p.call_provider, p.call_model, p.call_provider_model, p.credential, o.class, o.phase,
		o.http_status, p.idempotency_key, p.call_hash, p.call_builder, p.request_bytes,
		CASE WHEN NOT p.unsent THEN e.create_time END, o.request_id, o.response_id, o.input, o.cache_read, o.cache_write,
		o.output, o.reasoning, o.source, o.waste_cause, o.wasted, o.cost, o.extra, o.low, o.high, e.create_time, e.create_time
	FROM ended e JOIN locked l ON l.conversation_key = e.conversation_key
	CROSS JOIN ledger p JOIN outcome o ON o.call_id = p.call_id
	ON CONFLICT (conversation_key, call_id) DO NOTHING
)
SELECT id FROM ended`

// Restore implements turns.Returns. A reply that is not abandoned is CodeWrongState. A call that the ledger has already
// stays as it is there.
func (s *Store) Restore(ctx context.Context, l turns.LostReply) (won bool, err error) {
	if l.Ending.Status != turns.StatusAbandoned || l.Ending.Reason == "" {
		return false, wrap("restore", &turns.Error{Code: turns.CodeWrongState, Problem: "only an abandoned reply is restored"})
	}
	args, err := restoreArgs(l)
	if err != nil {
		return false, wrap("restore", err)
	}
	return s.swap(ctx, "restore", restore, args)
}

func restoreArgs(l turns.LostReply) (pgx.NamedArgs, error) {
	if len(l.Calls) != len(l.Outcomes) {
		return nil, errors.New("each call needs its outcome")
	}
	e := l.Ending
	e.Fence = turns.Fence{Key: l.Key, Reply: l.Reply.ID, Epoch: max(l.Reply.Epoch, 1), Owner: l.Reply.Owner}
	args, err := endingArgs([]turns.Ending{e})
	if err != nil {
		return nil, err
	}
	addReplies(args, []turns.NewReply{l.Reply})
	addCalls(args, l.Calls)
	addOutcomes(args, placed(l.Calls, l.Outcomes))
	options, err := replyOptions(l.Reply.Options)
	if err != nil {
		return nil, err
	}
	args["reply_options"], args["turn"] = options, zeronull.UUID(l.Turn.UUID)
	args["expect"], args["next_seq"] = l.ExpectVersion, l.NextSeq
	return args, nil
}

// placed gives outcomes the ids of the calls in their places.
func placed(calls []turns.NewCall, outcomes []turns.CallOutcome) []turns.CallOutcome {
	named := make([]turns.CallOutcome, len(outcomes))
	for i, o := range outcomes {
		o.ID = calls[i].ID
		named[i] = o
	}
	return named
}

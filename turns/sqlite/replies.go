package sqlite

import (
	"context"

	"github.com/turnd/turnd/turns"
)

// The row moves to the route and the request of the call, and forgets the response of the one before. A call that is put
// back after a later one does not become the call under way.
const moveToCall = `UPDATE turns SET endpoint = @endpoint, provider = @provider, provider_model = @provider_model,
		request_hash = @request_hash, builder_version = @builder, provider_response_id = ''
	WHERE conversation_key = @key AND id = @reply AND NOT EXISTS (SELECT 1 FROM provider_calls
		WHERE conversation_key = @key AND reply_id = @reply AND number > @number)`

func (t *tx) moveToCall(key turns.ConversationKey, reply turns.ReplyID, c turns.NewCall) error {
	_, err := t.exec(moveToCall, arg("key", key[:]), blob("reply", reply.UUID), arg("endpoint", c.Route.Endpoint),
		arg("provider", c.Route.Provider), arg("provider_model", c.Route.ProviderModel), bytesArg("request_hash", c.RequestHash),
		arg("builder", c.BuilderVersion), arg("number", c.Number))
	return err
}

// nextCall adds a call to a reply, which moves to it.
func (t *tx) nextCall(key turns.ConversationKey, reply turns.ReplyID, c turns.NewCall) error {
	if err := t.moveToCall(key, reply, c); err != nil {
		return err
	}
	return t.insertCall(key, reply, c)
}

// callArgs names what a new row of the ledger holds.
func (t *tx) callArgs(key turns.ConversationKey, reply turns.ReplyID, c turns.NewCall, more ...any) []any {
	return append(more, arg("key", key[:]), blob("reply", reply.UUID), blob("call", c.ID.UUID), arg("number", c.Number),
		arg("first", c.First), arg("layer", string(c.MadeBy())), arg("endpoint", c.Route.Endpoint), arg("provider", c.Route.Provider), arg("model", c.Route.Model),
		arg("provider_model", c.Route.ProviderModel), arg("credential", c.Route.Credential), arg("idempotency_key", c.Key),
		bytesArg("request_hash", c.RequestHash), arg("builder", c.BuilderVersion), arg("bytes", c.RequestBytes),
		arg("unsent", c.Unsent), arg("now", t.now))
}

const permitCall = `UPDATE turns SET calls = calls + 1, waited_us = waited_us + @waited
	WHERE conversation_key = @key AND id = @reply AND status = 'in_flight' AND epoch = @epoch AND owner = @owner
		AND cancel_requested = 0 AND calls < @max
	RETURNING calls`

// A call that is in the ledger already was permitted before, with an answer that got lost.
const permittedBefore = `SELECT calls FROM turns
	WHERE conversation_key = @key AND id = @reply AND status = 'in_flight' AND epoch = @epoch AND owner = @owner
		AND cancel_requested = 0
		AND EXISTS (SELECT 1 FROM provider_calls WHERE conversation_key = @key AND call_id = @call AND reply_id = @reply)`

// PermitCalls implements turns.Replies. A permit sent again is granted and counts once.
func (s *Store) PermitCalls(ctx context.Context, permits []turns.CallPermit) ([]turns.PermitResult, error) {
	results := make([]turns.PermitResult, len(permits))
	tenant := tenantOf(permits, func(p *turns.CallPermit) turns.Tenant { return p.Tenant })
	err := s.shareTx(ctx, tenant, len(permits), "permit calls", func(t *tx) error {
		clear(results)
		for _, i := range inKeyOrder(permits, func(p turns.CallPermit) turns.ConversationKey { return p.Fence.Key }) {
			if err := t.permit(&permits[i], &results[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (t *tx) permit(p *turns.CallPermit, r *turns.PermitResult) (err error) {
	r.Granted, err = t.found(permittedBefore, fenceArgs(p.Fence, blob("call", p.Call.ID.UUID)), &r.Calls)
	if err != nil || r.Granted {
		return err
	}
	args := fenceArgs(p.Fence, arg("waited", p.Waited.Microseconds()), arg("max", p.MaxCalls))
	if r.Granted, err = t.found(permitCall, args, &r.Calls); err != nil || !r.Granted {
		return err
	}
	return t.nextCall(p.Fence.Key, p.Fence.Reply, p.Call)
}

// CloseCalls implements turns.Replies.
func (s *Store) CloseCalls(ctx context.Context, outcomes []turns.CallOutcome) error {
	tenant := tenantOf(outcomes, func(o *turns.CallOutcome) turns.Tenant { return o.Tenant })
	return s.shareTx(ctx, tenant, len(outcomes), "close calls", func(t *tx) error {
		for _, i := range inKeyOrder(outcomes, func(o turns.CallOutcome) turns.ConversationKey { return o.Key }) {
			if err := t.closeCall(outcomes[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// What a note of the open call knew better stays.
const closeCall = `UPDATE provider_calls SET class = @class,
		phase = CASE WHEN end_time IS NULL AND phase <> '' AND @phase = 'written' THEN phase ELSE @phase END,
		http_status = CASE WHEN end_time IS NULL AND @status = 0 THEN http_status ELSE @status END,
		provider_request_id = CASE WHEN end_time IS NULL AND @request = '' THEN provider_request_id ELSE @request END,
		provider_response_id = @response, input_tokens = @input, cache_read_tokens = @cache_read,
		cache_write_tokens = @cache_write, output_tokens = @output, reasoning_tokens = @reasoning, token_source = @source,
		wasted_tokens = @wasted, cost_micros = @cost, waste_cause = @waste_cause, extra_requests = @extra, output_low = @low,
		output_high = @high, request_body = NULL, end_time = @now
	WHERE conversation_key = @key AND call_id = @call AND (end_time IS NULL OR waste_cause = 'deleted')`

func (t *tx) closeCall(o turns.CallOutcome) error {
	_, err := t.exec(closeCall, t.outcomeArgs(o)...)
	return err
}

func (t *tx) outcomeArgs(o turns.CallOutcome) []any {
	return append(outcomeValues(o), arg("key", o.Key[:]), blob("call", o.ID.UUID), arg("now", t.now))
}

func outcomeValues(o turns.CallOutcome) []any {
	return append(usageArgs(o.Usage), arg("class", string(o.Class)), arg("phase", string(o.Phase)), arg("status", o.HTTPStatus),
		arg("request", o.RequestID), arg("response", o.ResponseID), arg("waste_cause", o.WasteCause), arg("extra", o.Extra),
		arg("low", o.Low), arg("high", o.High))
}

// Checkpoint implements turns.Replies.
func (s *Store) Checkpoint(ctx context.Context, checkpoints []turns.Checkpoint) ([]turns.CheckpointResult, error) {
	results := make([]turns.CheckpointResult, len(checkpoints))
	err := s.shareTx(ctx, "", len(checkpoints), "checkpoint", func(t *tx) error {
		clear(results)
		for _, i := range inKeyOrder(checkpoints, func(c turns.Checkpoint) turns.ConversationKey { return c.Fence.Key }) {
			if err := t.checkpoint(&checkpoints[i], &results[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

const growLog = `UPDATE turns SET log_len = @to,
		provider_response_id = CASE WHEN @response = '' THEN provider_response_id ELSE @response END
	WHERE conversation_key = @key AND id = @reply AND status = 'in_flight' AND epoch = @epoch AND owner = @owner AND log_len = @from
	RETURNING cancel_requested`

const askReply = `SELECT cancel_requested FROM turns
	WHERE conversation_key = @key AND id = @reply AND status = 'in_flight' AND epoch = @epoch AND owner = @owner AND log_len = @to`

// checkpoint moves the log's length under the fence and then adds the chunk. A log that is as long already was sent
// before, with an answer that got lost, and needs nothing more.
func (t *tx) checkpoint(c *turns.Checkpoint, result *turns.CheckpointResult) (err error) {
	args := fenceArgs(c.Fence, arg("to", c.To))
	grown := false
	if c.To > c.From || c.ResponseID != "" {
		grown, err = t.found(growLog, append(args, arg("from", c.From), arg("response", c.ResponseID)), &result.CancelRequested)
	}
	if err != nil {
		return err
	}
	if grown {
		result.Held = true
		return t.insertChunk(c)
	}
	result.Held, err = t.found(askReply, args, &result.CancelRequested)
	return err
}

const insertChunk = `INSERT INTO reply_chunks (conversation_key, reply_id, start_offset, end_offset, pieces)
	VALUES (@key, @reply, @from, @to, @pieces)`

func (t *tx) insertChunk(c *turns.Checkpoint) error {
	if c.To == c.From {
		return nil
	}
	pieces, err := turns.EncodePieces(c.Pieces)
	if err != nil {
		return err
	}
	_, err = t.exec(insertChunk, arg("key", c.Fence.Key[:]), blob("reply", c.Fence.Reply.UUID), arg("from", c.From), arg("to", c.To),
		textArg("pieces", pieces))
	return err
}

package sqlite

import (
	"context"
	"errors"

	"github.com/turnd/turnd/turns"
)

// Unlike a claim the reply takes no slot, so it is refused by its own keys alone: its id and its attempt.
const restoreReply = `INSERT INTO turns (conversation_key, id, role, parent_id, responds_to, seq, options, generation, status, reason,
		attempt, epoch, owner, endpoint, provider, model, provider_model, request_hash, builder_version, window_start, calls,
		waited_us, disconnect_grace_us, content, log_len, stop_reason, input_tokens, cache_read_tokens, cache_write_tokens,
		output_tokens, reasoning_tokens, token_source, wasted_tokens, cost_micros, provider_calls, provider_response_id,
		provider_code, retry_after_us, on_ambiguous, on_partial, defaults_version, traceparent, create_time, end_time, settled_at)
	SELECT @key, @reply, 'assistant', u.id, u.id, @seq, @options, @generation, 'abandoned', @reason, @attempt, @epoch, @owner,
		@endpoint, @provider, @model, @provider_model, @request_hash, @builder, @window, @calls, @waited, @grace, @content,
		@length, @stop_reason, @input, @cache_read, @cache_write, @output, @reasoning, @source, @wasted, @cost, @provider_calls,
		@response, @code, @retry_after, @on_ambiguous, @on_partial, @defaults_version, @traceparent, @now, @now, @now
	FROM turns u JOIN conversations c ON c.conversation_key = u.conversation_key
	WHERE u.conversation_key = @key AND u.id = @turn AND u.role = 'user' AND NOT u.erased AND c.version = @version AND c.deleted_at IS NULL
	ON CONFLICT (conversation_key, id) DO NOTHING
	ON CONFLICT (conversation_key, responds_to, attempt) DO NOTHING`

const moveSeq = `UPDATE conversations SET version = version + 1, next_seq = @seq + 1 WHERE conversation_key = @key`

// The turn's generation grows as the claim that was lost let it grow.
const growGeneration = `UPDATE turns SET generation = MAX(generation, @generation)
	WHERE conversation_key = @key AND id = @turn AND role = 'user'`

// A call that the ledger has already stays as it is there.
const restoreCall = `INSERT INTO provider_calls (conversation_key, call_id, tenant, conversation_id, turn_id, generation, reply_id,
		epoch, number, first, layer, endpoint, provider, model, provider_model, credential, class, phase, http_status, idempotency_key,
		request_hash, builder_version, request_bytes, submitted_at, provider_request_id, provider_response_id, input_tokens,
		cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens, token_source, waste_cause, wasted_tokens,
		cost_micros, extra_requests, output_low, output_high, create_time, end_time)
	SELECT r.conversation_key, @call, c.tenant, c.conversation_id, r.responds_to, r.generation, r.id, r.epoch, @number, @first, @layer,
		@endpoint, @provider, @model, @provider_model, @credential, @class, @phase, @status, @idempotency_key, @request_hash,
		@builder, @bytes, CASE WHEN @unsent THEN NULL ELSE @now END, @request, @response, @input, @cache_read, @cache_write, @output, @reasoning,
		@source, @waste_cause, @wasted, @cost, @extra, @low, @high, @now, @now
	FROM turns r JOIN conversations c ON c.conversation_key = r.conversation_key
	WHERE r.conversation_key = @key AND r.id = @reply
	ON CONFLICT (conversation_key, call_id) DO NOTHING`

// Restore implements turns.Returns. A reply that is not abandoned is CodeWrongState.
func (s *Store) Restore(ctx context.Context, l turns.LostReply) (won bool, err error) {
	if l.Ending.Status != turns.StatusAbandoned || l.Ending.Reason == "" {
		return false, &turns.Error{Code: turns.CodeWrongState, Problem: "only an abandoned reply is restored"}
	}
	if len(l.Calls) != len(l.Outcomes) {
		return false, errors.New("restore: each call needs its outcome")
	}
	return s.winTx(ctx, "restore", func(t *tx) (bool, error) {
		won, err := t.restoreReply(&l)
		if err != nil || !won {
			return false, err
		}
		if _, err := t.exec(moveSeq, arg("key", l.Key[:]), arg("seq", l.NextSeq)); err != nil {
			return false, err
		}
		if _, err := t.exec(growGeneration, arg("key", l.Key[:]), blob("turn", l.Turn.UUID), arg("generation", l.Reply.Generation)); err != nil {
			return false, err
		}
		return true, t.restoreCalls(&l)
	})
}

func (t *tx) restoreReply(l *turns.LostReply) (bool, error) {
	r, e := &l.Reply, &l.Ending
	options, err := optionsArg("options", r.Options)
	if err != nil {
		return false, err
	}
	content, err := turns.EncodePieces(e.Content)
	if err != nil {
		return false, err
	}
	return t.won(restoreReply, append(usageArgs(e.Usage), options, textArg("content", content), arg("key", l.Key[:]),
		blob("reply", r.ID.UUID), blob("turn", l.Turn.UUID), arg("seq", l.NextSeq), arg("version", l.ExpectVersion),
		arg("generation", r.Generation), arg("reason", string(e.Reason)), arg("attempt", r.Attempt), arg("epoch", max(r.Epoch, 1)),
		blob("owner", r.Owner.UUID), arg("endpoint", r.Route.Endpoint), arg("provider", r.Route.Provider), arg("model", r.Route.Model),
		arg("provider_model", r.Route.ProviderModel), arg("request_hash", r.RequestHash), arg("builder", r.BuilderVersion),
		blob("window", r.WindowStart.UUID), arg("calls", r.Calls), arg("waited", r.Waited.Microseconds()),
		arg("grace", r.DisconnectGrace.Microseconds()), arg("length", e.Length), arg("stop_reason", string(e.StopReason)),
		arg("provider_calls", e.Usage.Calls), arg("response", e.ResponseID), arg("code", e.ProviderCode),
		arg("retry_after", e.RetryAfter.Microseconds()), arg("on_ambiguous", string(r.OnAmbiguous)),
		arg("on_partial", string(r.OnPartial)), arg("defaults_version", r.DefaultsVersion), arg("traceparent", r.Traceparent), arg("now", t.now))...)
}

func (t *tx) restoreCalls(l *turns.LostReply) error {
	for i, c := range l.Calls {
		if _, err := t.exec(restoreCall, t.callArgs(l.Key, l.Reply.ID, c, outcomeValues(l.Outcomes[i])...)...); err != nil {
			return err
		}
	}
	return nil
}

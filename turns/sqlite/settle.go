package sqlite

import (
	"context"

	"github.com/turnd/turnd/turns"
)

const salvageReply = `UPDATE turns SET status = 'complete', reason = '', content = @content, log_len = @length,
		stop_reason = @stop_reason, input_tokens = @input, cache_read_tokens = @cache_read, cache_write_tokens = @cache_write,
		output_tokens = @output, reasoning_tokens = @reasoning, token_source = @source, wasted_tokens = @wasted,
		cost_micros = @cost, provider_calls = @calls,
		provider_response_id = CASE WHEN @response = '' THEN provider_response_id ELSE @response END,
		end_time = @now, settled_at = @now, replaced_by = NULL
	WHERE conversation_key = @key AND id = @reply`

// Salvage implements turns.Returns. An ending that is not complete is CodeWrongState.
func (s *Store) Salvage(ctx context.Context, e turns.Ending) (won bool, err error) {
	if e.Status != turns.StatusComplete || e.Reason != "" {
		return false, wrongState(turns.VerbSalvage, e.Status, e.Reason)
	}
	return s.winTx(ctx, "salvage", func(t *tx) (bool, error) {
		may, err := t.mayReturn(e.Fence, e.Content, turns.VerbSalvage, turns.StatusComplete)
		if err != nil || !may {
			return false, err
		}
		if err := t.settle(salvageReply, &e, arg("stop_reason", string(e.StopReason))); err != nil {
			return false, err
		}
		return true, t.leafBack(e.Fence)
	})
}

const settleReply = `UPDATE turns SET content = @content, log_len = @length, input_tokens = @input,
		cache_read_tokens = @cache_read, cache_write_tokens = @cache_write, output_tokens = @output,
		reasoning_tokens = @reasoning, token_source = @source, wasted_tokens = @wasted, cost_micros = @cost,
		provider_calls = @calls, settled_at = @now,
		provider_response_id = CASE WHEN @response = '' THEN provider_response_id ELSE @response END
	WHERE conversation_key = @key AND id = @reply`

// Settle implements turns.Returns.
func (s *Store) Settle(ctx context.Context, e turns.Ending) (won bool, err error) {
	return s.winTx(ctx, "settle", func(t *tx) (bool, error) {
		_, extends, err := t.unsettled(e.Fence, e.Content)
		if err != nil || !extends {
			return false, err
		}
		return true, t.settle(settleReply, &e)
	})
}

// settle writes what the last owner knows of a reply, by one of the two statements above, and of its call.
func (t *tx) settle(text string, e *turns.Ending, more ...any) error {
	content, err := turns.EncodePieces(e.Content)
	if err != nil {
		return err
	}
	args := append(more, arg("key", e.Fence.Key[:]), blob("reply", e.Fence.Reply.UUID), textArg("content", content),
		arg("length", e.Length), arg("response", e.ResponseID), arg("calls", e.Usage.Calls), arg("now", t.now))
	if _, err := t.exec(text, append(args, usageArgs(e.Usage)...)...); err != nil {
		return err
	}
	if e.Call != nil {
		if err := t.correctCall(e.Fence.Reply, *e.Call); err != nil {
			return err
		}
	}
	return t.guessOpenCalls(e.Fence)
}

// What was guessed of a call when its reply was ended from outside gives way to what its owner knows.
const correctCall = `UPDATE provider_calls SET class = @class, phase = @phase, http_status = @status,
		provider_request_id = @request, provider_response_id = @response, input_tokens = @input, cache_read_tokens = @cache_read,
		cache_write_tokens = @cache_write, output_tokens = @output, reasoning_tokens = @reasoning, token_source = @source,
		wasted_tokens = @wasted, cost_micros = @cost, waste_cause = @waste_cause, extra_requests = @extra, output_low = @low,
		output_high = @high, request_body = NULL, end_time = @now
	WHERE conversation_key = @key AND call_id = @call AND reply_id = @reply`

func (t *tx) correctCall(reply turns.ReplyID, o turns.CallOutcome) error {
	_, err := t.exec(correctCall, append(t.outcomeArgs(o), blob("reply", reply.UUID))...)
	return err
}

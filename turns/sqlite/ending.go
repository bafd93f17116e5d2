package sqlite

import (
	"context"

	"github.com/turnd/turnd/turns"
)

var endingVerbs = []turns.Verb{turns.VerbComplete, turns.VerbAbandon, turns.VerbHold}

// End implements turns.Replies.
func (s *Store) End(ctx context.Context, endings []turns.Ending) ([]turns.EndResult, error) {
	for i := range endings {
		if e := &endings[i]; !allowed(endingVerbs, e.Verb, e.Status, e.Reason) {
			return nil, wrongState(e.Verb, e.Status, e.Reason)
		}
	}
	results := make([]turns.EndResult, len(endings))
	tenant := tenantOf(endings, func(e *turns.Ending) turns.Tenant { return e.Tenant })
	err := s.shareTx(ctx, tenant, len(endings), "end replies", func(t *tx) error {
		clear(results)
		for _, i := range inKeyOrder(endings, func(e turns.Ending) turns.ConversationKey { return e.Fence.Key }) {
			won, err := t.end(&endings[i], turns.ReplyID{})
			if err != nil {
				return err
			}
			if results[i].Won = won; !won {
				continue
			}
			if endings[i].Status != turns.StatusHeld {
				results[i].EndTime = timeOf(t.now)
			}
			if results[i].InLine, err = t.found(hasLine, []any{arg("key", endings[i].Fence.Key[:])}, new(int)); err != nil {
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

// Only the last owner's own ending settles its reply.
const endReply = `UPDATE turns SET status = @status, reason = @reason, content = @content, log_len = @length,
		stop_reason = @stop_reason, input_tokens = @input, cache_read_tokens = @cache_read, cache_write_tokens = @cache_write,
		output_tokens = @output, reasoning_tokens = @reasoning, token_source = @source, wasted_tokens = @wasted,
		cost_micros = @cost, provider_calls = @calls, provider_code = @code, retry_after_us = @retry_after,
		provider_response_id = CASE WHEN @response = '' THEN provider_response_id ELSE @response END,
		end_time = CASE WHEN @status = 'held' THEN NULL ELSE @now END, replaced_by = @replaced_by,
		next_lookup_at = CASE WHEN @status = 'held' AND @lookup > 0 THEN @now + @lookup END,
		settled_at = CASE WHEN @reason = 'lease_expired' THEN NULL ELSE @now END
	WHERE conversation_key = @key AND id = @reply AND status = 'in_flight' AND epoch = @epoch AND owner = @owner
		AND log_len = @stored`

// end ends a reply, in whose place another may come.
func (t *tx) end(e *turns.Ending, by turns.ReplyID) (won bool, err error) {
	content, err := turns.EncodePieces(e.Content)
	if err != nil {
		return false, err
	}
	args := fenceArgs(e.Fence, arg("status", string(e.Status)), arg("reason", string(e.Reason)), textArg("content", content),
		arg("length", e.Length), arg("stored", e.StoredLength), arg("stop_reason", string(e.StopReason)), arg("code", e.ProviderCode),
		arg("retry_after", e.RetryAfter.Microseconds()), arg("response", e.ResponseID), arg("calls", e.Usage.Calls),
		blob("replaced_by", by.UUID), arg("lookup", e.LookupIn.Microseconds()), arg("now", t.now))
	won, err = t.won(endReply, append(args, usageArgs(e.Usage)...)...)
	if err != nil || !won {
		return false, err
	}
	var outcomes []turns.CallOutcome
	if e.Call != nil {
		outcomes = append(outcomes, *e.Call)
	}
	return true, t.clear(e.Fence, e.Status, outcomes)
}

const deleteChunks = `DELETE FROM reply_chunks WHERE conversation_key = @key AND reply_id = @reply`

// Nothing is known of a call that its reply's end finds open: it may have been sent, and is estimated at 3.5 bytes a token of
// its request.
const closeOpenCalls = `UPDATE provider_calls SET class = 'ambiguous', phase = CASE WHEN phase = '' THEN 'written' ELSE phase END, token_source = 'estimated',
		input_tokens = (request_bytes * 10 + 34) / 35, wasted_tokens = (request_bytes * 10 + 34) / 35,
		waste_cause = 'ambiguous', request_body = NULL, end_time = @now
	WHERE conversation_key = @key AND reply_id = @reply AND end_time IS NULL`

// clear removes what a reply only has while it is in flight: its chunks, and unless it is held calls without an outcome.
func (t *tx) clear(f turns.Fence, status turns.Status, outcomes []turns.CallOutcome) error {
	if _, err := t.exec(deleteChunks, arg("key", f.Key[:]), blob("reply", f.Reply.UUID)); err != nil {
		return err
	}
	return t.closeCalls(f, outcomes, status == turns.StatusHeld)
}

// closeCalls closes calls of a reply as given, and unless it keeps them the others by a guess.
func (t *tx) closeCalls(f turns.Fence, outcomes []turns.CallOutcome, keeps bool) error {
	for _, o := range outcomes {
		if err := t.closeCall(o); err != nil {
			return err
		}
	}
	if keeps {
		return nil
	}
	return t.guessOpenCalls(f)
}

func (t *tx) guessOpenCalls(f turns.Fence) error {
	_, err := t.exec(closeOpenCalls, arg("key", f.Key[:]), blob("reply", f.Reply.UUID), arg("now", t.now))
	return err
}

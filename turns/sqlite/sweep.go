package sqlite

import (
	"context"

	"github.com/turnd/turnd/turns"
)

// The index named holds only replies in flight, so the statement's cost does not grow with the table.
const staleEverywhere = `SELECT ` + rowColumns + `'', r.conversation_key, COALESCE(r.deadline_at <= @now, 0)
	FROM turns r INDEXED BY turns_running_by_owner
		JOIN conversations c ON c.conversation_key = r.conversation_key
		LEFT JOIN workers w ON w.worker_id = r.owner
	WHERE r.status = 'in_flight' AND (w.dead IS NOT 0 OR r.deadline_at <= @now OR (@stopped AND r.cancel_requested)) LIMIT @limit`

const staleInConversation = `SELECT ` + rowColumns + `'', r.conversation_key, COALESCE(r.deadline_at <= @now, 0)
	FROM turns r INDEXED BY one_running_reply_per_conversation
		JOIN conversations c ON c.conversation_key = r.conversation_key
		LEFT JOIN workers w ON w.worker_id = r.owner
	WHERE r.conversation_key = @key AND r.role = 'assistant' AND r.status = 'in_flight'
		AND (w.dead IS NOT 0 OR r.deadline_at <= @now OR (@stopped AND r.cancel_requested)) LIMIT @limit`

// StaleReplies implements turns.Replies.
func (s *Store) StaleReplies(ctx context.Context, q turns.StaleQuery) (stale []turns.StaleReply, err error) {
	err = s.readTx(ctx, "read stale replies", func(t *tx) error {
		text, args := staleEverywhere, []any{arg("now", t.now), arg("stopped", q.Stopped), arg("limit", q.Limit)}
		if q.Key != nil {
			text, args = staleInConversation, append(args, arg("key", q.Key[:]))
		}
		if stale, err = t.stale(text, args); err != nil {
			return err
		}
		for i := range stale {
			s := &stale[i]
			if s.OpenCalls, err = t.ledgerOf(s.Key, &s.Reply); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return stale, nil
}

func (t *tx) stale(text string, args []any) (stale []turns.StaleReply, err error) {
	err = t.query(func(scan func(...any) error) error {
		var one turns.StaleReply
		var key []byte
		r, err := scanRow(scan, t.now, &key, &one.DeadlinePassed)
		if err != nil && !isUnreadable(err) {
			return err
		}
		copy(one.Key[:], key)
		r.reply.Options, r.reply.Usage = turns.Options{}, turns.Usage{} // a sweep needs none, and must find a row of unreadable ones
		one.Reply, one.OwnerDead, one.CancelRequested = r.reply, r.reply.OwnerDead, r.reply.CancelRequested
		stale = append(stale, one)
		return nil
	}, text, args...)
	return stale, err
}

const sweepReply = `UPDATE turns SET status = @status, reason = @reason, content = @content, input_tokens = @input,
		cache_read_tokens = @cache_read, cache_write_tokens = @cache_write, output_tokens = @output,
		reasoning_tokens = @reasoning, token_source = @source, wasted_tokens = @wasted, cost_micros = @cost,
		provider_calls = @calls, end_time = CASE WHEN @status = 'held' THEN NULL ELSE @now END,
		next_lookup_at = CASE WHEN @status = 'held' AND @lookup > 0 THEN @now + @lookup END
	WHERE conversation_key = @key AND id = @reply AND status = 'in_flight' AND epoch = @epoch AND owner = @owner
		AND log_len = @length
		AND (@stopped AND cancel_requested OR deadline_at <= @now OR NOT EXISTS (SELECT 1 FROM workers WHERE worker_id = @owner AND dead = 0))`

var sweepVerbs = []turns.Verb{turns.VerbSweep, turns.VerbExpire, turns.VerbCancel}

// Sweep implements turns.Replies. The row is not settled: its last owner may still have more of it.
func (s *Store) Sweep(ctx context.Context, sw turns.Sweeping) (won bool, err error) {
	if !allowed(sweepVerbs, sw.Verb, sw.Status, sw.Reason) {
		return false, wrongState(sw.Verb, sw.Status, sw.Reason)
	}
	content, err := turns.EncodePieces(sw.Content)
	if err != nil {
		return false, err
	}
	err = s.writeTx(ctx, "sweep", func(t *tx) error {
		args := fenceArgs(sw.Fence, arg("status", string(sw.Status)), arg("reason", string(sw.Reason)), textArg("content", content),
			arg("length", sw.Length), arg("stopped", sw.Verb == turns.VerbCancel), arg("calls", sw.Usage.Calls),
			arg("lookup", sw.LookupIn.Microseconds()), arg("now", t.now))
		won, err = t.won(sweepReply, append(args, usageArgs(sw.Usage)...)...)
		if err != nil || !won {
			return err
		}
		return t.clear(sw.Fence, sw.Status, sw.Calls)
	})
	return won && err == nil, err
}

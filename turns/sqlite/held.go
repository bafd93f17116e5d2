package sqlite

import (
	"context"
	"time"

	"github.com/turnd/turnd/turns"
)

// The index named holds only replies that are held, in the order of the page.
const heldReplies = `SELECT ` + rowColumns + `'', r.conversation_key, r.lookups
	FROM turns r INDEXED BY turns_held_by_age
		JOIN conversations c ON c.conversation_key = r.conversation_key
		LEFT JOIN workers w ON w.worker_id = r.owner
	WHERE r.status = 'held' AND c.tenant = @tenant AND (r.create_time, r.id) > (@after_time, @after_id)
	ORDER BY r.create_time, r.id LIMIT @limit`

// HeldReplies implements turns.Held.
func (s *Store) HeldReplies(ctx context.Context, q turns.HeldQuery) (held []turns.HeldReply, err error) {
	err = s.readTx(ctx, "read held replies", func(t *tx) error {
		held, err = t.held(heldReplies, arg("tenant", string(q.Tenant)), arg("after_time", fromTime(q.AfterTime)),
			arg("after_id", q.AfterID.UUID[:]), arg("limit", q.Limit))
		return err
	})
	if err != nil {
		return nil, err
	}
	return held, nil
}

// held reads replies with their calls. Options that can't be read stay empty: one row that holds nonsense must not keep the
// others from being found.
func (t *tx) held(text string, args ...any) (held []turns.HeldReply, err error) {
	err = t.query(func(scan func(...any) error) error {
		var h turns.HeldReply
		var key []byte
		r, err := scanRow(scan, t.now, &key, &h.Lookups)
		if err != nil && !isUnreadable(err) {
			return err
		}
		copy(h.Key[:], key)
		h.Reply = r.reply
		held = append(held, h)
		return nil
	}, text, args...)
	if err != nil {
		return nil, err
	}
	for i := range held {
		if held[i].OpenCalls, err = t.ledgerOf(held[i].Key, &held[i].Reply); err != nil {
			return nil, err
		}
	}
	return held, nil
}

const dueLookups = `SELECT ` + rowColumns + `'', r.conversation_key, r.lookups + 1
	FROM turns r INDEXED BY turns_held_by_lookup
		JOIN conversations c ON c.conversation_key = r.conversation_key
		LEFT JOIN workers w ON w.worker_id = r.owner
	WHERE r.status = 'held' AND r.next_lookup_at <= @now ORDER BY r.next_lookup_at LIMIT @limit`

// Half of the wait is left to chance, so that what was held together is not asked for together.
const takeLookup = `UPDATE turns SET lookups = lookups + 1, next_lookup_at = @now + CAST((1 - (random() & 0xFFFFFF) / 33554432.0)
		* MIN(@most, @base * (1 << MIN(lookups, 40))) AS INTEGER)
	WHERE conversation_key = @key AND id = @reply AND status = 'held'`

// DueLookups implements turns.Held.
func (s *Store) DueLookups(ctx context.Context, base, most time.Duration, limit int) (held []turns.HeldReply, err error) {
	err = s.writeTx(ctx, "take due lookups", func(t *tx) error {
		if held, err = t.held(dueLookups, arg("limit", limit), arg("now", t.now)); err != nil {
			return err
		}
		for i := range held {
			if _, err := t.exec(takeLookup, arg("key", held[i].Key[:]), blob("reply", held[i].Reply.ID.UUID), arg("now", t.now),
				arg("base", float64(base.Microseconds())), arg("most", float64(most.Microseconds()))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return held, nil
}

const wakeLookup = `UPDATE turns SET next_lookup_at = MIN(next_lookup_at, @now)
	WHERE conversation_key = @key AND responds_to = @turn AND role = 'assistant' AND status = 'held'
		AND (@generation = 0 OR generation = @generation) AND next_lookup_at IS NOT NULL`

// WakeLookup implements turns.Held.
func (s *Store) WakeLookup(ctx context.Context, key turns.ConversationKey, turn turns.TurnID, generation int32) (woken bool, err error) {
	err = s.writeTx(ctx, "wake a lookup", func(t *tx) error {
		woken, err = t.won(wakeLookup, arg("key", key[:]), blob("turn", turn.UUID), arg("generation", generation), arg("now", t.now))
		return err
	})
	return woken && err == nil, err
}

// A stop that was asked for bars a completion alone, and only the last owner's own verb asks for the owner.
const readHeld = `SELECT content FROM turns WHERE conversation_key = @key AND id = @reply AND status = 'held' AND epoch = @epoch
	AND (@owner IS NULL OR owner = @owner) AND (@status <> 'complete' OR cancel_requested = 0)`

const resolveHeld = `UPDATE turns SET status = @status, reason = @reason, content = @content, log_len = @length,
		stop_reason = @stop_reason, input_tokens = @input, cache_read_tokens = @cache_read, cache_write_tokens = @cache_write,
		output_tokens = @output, reasoning_tokens = @reasoning, token_source = @source, wasted_tokens = @wasted,
		cost_micros = @cost, provider_calls = @calls,
		provider_response_id = CASE WHEN @response = '' THEN provider_response_id ELSE @response END,
		end_time = @now, next_lookup_at = NULL, settled_at = CASE WHEN @status = 'complete' THEN @now ELSE settled_at END
	WHERE conversation_key = @key AND id = @reply`

var resolvingVerbs = []turns.Verb{turns.VerbRelease, turns.VerbAdopt, turns.VerbFinish, turns.VerbCancel}

// ResolveHeld implements turns.Held.
func (s *Store) ResolveHeld(ctx context.Context, r turns.Resolution) (result turns.EndResult, err error) {
	if !allowedFrom(turns.StatusHeld, resolvingVerbs, r.Verb, r.Status, r.Reason) {
		return turns.EndResult{}, wrongState(r.Verb, r.Status, r.Reason)
	}
	if r.Verb != turns.VerbFinish {
		r.Fence.Owner = turns.WorkerID{}
	}
	err = s.writeTx(ctx, "resolve a held reply", func(t *tx) error {
		var stored []byte
		found, err := t.found(readHeld, fenceArgs(r.Fence, arg("status", string(r.Status))), &stored)
		if err != nil || !found {
			return err
		}
		log, err := turns.DecodePieces(stored)
		if err != nil {
			return err
		}
		if extends, err := isExtended(log, r.Content); err != nil || !extends {
			return err
		}
		if err := t.resolve(&r); err != nil {
			return err
		}
		result = turns.EndResult{Won: true, EndTime: timeOf(t.now)}
		return t.clear(r.Fence, r.Status, r.Calls)
	})
	if err != nil {
		return turns.EndResult{}, err
	}
	return result, nil
}

func (t *tx) resolve(r *turns.Resolution) error {
	content, err := turns.EncodePieces(r.Content)
	if err != nil {
		return err
	}
	_, err = t.exec(resolveHeld, append(usageArgs(r.Usage), arg("key", r.Fence.Key[:]), blob("reply", r.Fence.Reply.UUID),
		arg("status", string(r.Status)), arg("reason", string(r.Reason)), textArg("content", content), arg("length", r.Length),
		arg("stop_reason", string(r.StopReason)), arg("calls", r.Usage.Calls), arg("response", r.ResponseID), arg("now", t.now))...)
	return err
}

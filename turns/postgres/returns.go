package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

const ownedReplies = `
SELECT t.conversation_key, t.id, t.epoch FROM turns t
WHERE t.owner = @owner AND t.role = 'assistant' AND t.status = 'in_flight'
	AND t.create_time < clock_timestamp() - @age::bigint * interval '1 microsecond'
ORDER BY t.create_time, t.id LIMIT @limit`

type ownedRow struct {
	ConversationKey [16]byte
	ID              [16]byte
	Epoch           int64
}

// OwnedReplies implements turns.Returns.
func (s *Store) OwnedReplies(ctx context.Context, owner turns.WorkerID, age time.Duration, limit int) ([]turns.Fence, error) {
	rows, err := collect(ctx, s.pool, ownedReplies, pgx.NamedArgs{
		"owner": zeronull.UUID(owner.UUID), "age": age.Microseconds(), "limit": limit,
	}, pgx.RowToStructByName[ownedRow])
	if err != nil {
		return nil, mapRead("read a worker's replies", err)
	}
	return column(rows, func(r *ownedRow) turns.Fence {
		return turns.Fence{Key: r.ConversationKey, Reply: turns.ReplyID{UUID: r.ID}, Epoch: r.Epoch, Owner: owner}
	}), nil
}

// returning locks what stands in the way of a reply that comes back, from item i: the conversation, whose last turn must
// be the reply's; that turn, whose generation must be the reply's and not asked to stop; the reply, not settled and ended
// by another's hand. What it can't lock, another live or running reply that it does not see, the unique indexes refuse.
const returning = `, locked AS (
	SELECT c.conversation_key, c.last_turn_id FROM item i JOIN conversations c ON c.conversation_key = i.conversation_key
	WHERE c.deleted_at IS NULL FOR NO KEY UPDATE OF c
), asked AS (
	SELECT u.id, u.generation FROM locked l
	JOIN turns u ON u.conversation_key = l.conversation_key AND u.id = l.last_turn_id
	WHERE u.role = 'user' AND u.cancelled_generation < u.generation FOR NO KEY UPDATE OF u
), fit AS (
	SELECT i.*, t.responds_to AS turn_id FROM item i
	JOIN turns t ON t.conversation_key = i.conversation_key AND t.id = i.reply_id
	JOIN asked a ON a.id = t.responds_to AND a.generation = t.generation
	WHERE` + endedOutside + `AND t.reason = ANY (@revivable::text[])
	FOR NO KEY UPDATE OF t
)`

// endedOutside is the guard of the last owner's writes after its reply was ended from outside. Each of them settles the
// reply or raises its epoch, so there is one, and until then what is stored stays as it was read.
const endedOutside = ` t.status = 'abandoned' AND t.epoch = i.epoch AND t.owner = i.owner AND t.settled_at IS NULL
	AND t.log_len = i.stored `

// leafToReply moves the conversation, and its leaf to the reply that came back, from e; unless the leaf was put below
// another turn meanwhile.
const leafToReply = `moved AS (
	UPDATE conversations c SET version = c.version + 1, leaf_id = CASE WHEN EXISTS (
			SELECT 1 FROM turns f WHERE f.conversation_key = c.conversation_key AND f.id = c.leaf_id
				AND f.responds_to IS DISTINCT FROM e.responds_to)
		THEN c.leaf_id ELSE e.id END
	FROM ended e WHERE c.conversation_key = e.conversation_key
)`

// The new owner is locked as in a claim. The log goes back to how a reply in flight is stored: no content, and its bytes
// in one chunk.
const revive = `
WITH living AS (
	SELECT w.worker_id FROM workers w WHERE w.worker_id = @new_owner AND NOT w.dead FOR KEY SHARE
), item AS (
	SELECT @key::uuid AS conversation_key, @reply::uuid AS reply_id, @epoch::bigint AS epoch, @owner::uuid AS owner,
		@stored::bigint AS stored, l.worker_id AS new_owner
	FROM living l
)` + returning + `, ended AS (
	UPDATE turns t SET status = 'in_flight', reason = '', epoch = t.epoch + 1, owner = i.new_owner, content = '',
		log_len = @length, end_time = NULL, replaced_by = NULL,
		deadline_at = clock_timestamp() + NULLIF(@deadline_us::bigint, 0) * interval '1 microsecond',
		input_tokens = 0, cache_read_tokens = 0, cache_write_tokens = 0, output_tokens = 0, reasoning_tokens = 0,
		token_source = '', wasted_tokens = 0, cost_micros = 0, provider_calls = 0
	FROM fit i WHERE t.conversation_key = i.conversation_key AND t.id = i.reply_id AND` + endedOutside + `
	RETURNING t.conversation_key, t.id, t.responds_to, t.log_len, t.epoch
), ` + told + `, stored AS (
	INSERT INTO reply_chunks (conversation_key, reply_id, start_offset, end_offset, pieces)
	SELECT e.conversation_key, e.id, 0, e.log_len, @pieces FROM ended e WHERE e.log_len > 0
), opened AS (
	UPDATE provider_calls p SET class = '', phase = '', http_status = 0, end_time = NULL, input_tokens = 0,
		cache_read_tokens = 0, cache_write_tokens = 0, output_tokens = 0, reasoning_tokens = 0, token_source = '', waste_cause = '',
		wasted_tokens = 0, cost_micros = 0, extra_requests = 0, output_low = 0, output_high = 0
	FROM ended e WHERE p.conversation_key = e.conversation_key AND p.call_id = @call AND p.reply_id = e.id
), ` + leafToReply + `
SELECT id FROM ended`

// Revive implements turns.Returns.
func (s *Store) Revive(ctx context.Context, r turns.Revival) (won bool, err error) {
	stored, extended, err := s.extended(ctx, r.Fence, r.Pieces)
	if err != nil || !extended {
		return false, wrap("revive", err)
	}
	args, err := revivalArgs(r, stored)
	if err != nil {
		return false, wrap("revive", err)
	}
	return s.swap(ctx, "revive", revive, args)
}

func revivalArgs(r turns.Revival, stored uint32) (pgx.NamedArgs, error) {
	pieces, err := turns.EncodePieces(r.Pieces)
	if err != nil {
		return nil, fmt.Errorf("encode a log: %w", err)
	}
	return pgx.NamedArgs{
		"key": zeronull.UUID(r.Fence.Key), "reply": zeronull.UUID(r.Fence.Reply.UUID), "epoch": r.Fence.Epoch,
		"owner": zeronull.UUID(r.Fence.Owner.UUID), "new_owner": zeronull.UUID(r.Owner.UUID), "pieces": string(pieces),
		"stored": int64(stored), "length": int64(r.Length), "deadline_us": r.Deadline.Microseconds(), "call": zeronull.UUID(r.Call.UUID),
		"revivable": revivable(), "way": string(turns.TakenBack),
	}, nil
}

func revivable() []string {
	return column(turns.Revivable, func(r *turns.Reason) string { return string(*r) })
}

const salvage = `
WITH` + endings + returning + `, ended AS (
	UPDATE turns t SET status = 'complete', reason = '', content = i.content, log_len = i.length,` + spending + `,
		stop_reason = i.stop_reason, provider_code = i.provider_code, retry_after_us = i.retry_after_us,
		end_time = clock_timestamp(), settled_at = clock_timestamp(), replaced_by = NULL,
		provider_response_id = CASE WHEN i.response_id = '' THEN t.provider_response_id ELSE i.response_id END
	FROM fit i WHERE t.conversation_key = i.conversation_key AND t.id = i.reply_id AND` + endedOutside + `
	RETURNING t.conversation_key, t.id, t.responds_to, false AS keeps
), ` + dropAndCorrect + `, ` + leafToReply + `
SELECT id FROM ended`

// Salvage implements turns.Returns. An ending that is not complete is CodeWrongState.
func (s *Store) Salvage(ctx context.Context, e turns.Ending) (won bool, err error) {
	if e.Status != turns.StatusComplete || e.Reason != "" {
		return false, wrap("salvage", &turns.Error{Code: turns.CodeWrongState, Problem: "only a complete reply is salvaged"})
	}
	return s.bringBack(ctx, "salvage", salvage, e)
}

const settle = `
WITH` + endings + `, ended AS (
	UPDATE turns t SET content = i.content, log_len = i.length,` + spending + `, settled_at = clock_timestamp(),
		provider_response_id = CASE WHEN i.response_id = '' THEN t.provider_response_id ELSE i.response_id END
	FROM item i WHERE t.conversation_key = i.conversation_key AND t.id = i.reply_id AND` + endedOutside + `
		AND EXISTS (SELECT 1 FROM conversations c WHERE c.conversation_key = i.conversation_key AND c.deleted_at IS NULL)
	RETURNING t.conversation_key, t.id, false AS keeps
), ` + dropAndCorrect + `
SELECT id FROM ended`

// Settle implements turns.Returns.
func (s *Store) Settle(ctx context.Context, e turns.Ending) (won bool, err error) {
	return s.bringBack(ctx, "settle", settle, e)
}

// bringBack runs one of the two statements that write all that the last owner knows.
func (s *Store) bringBack(ctx context.Context, op, sql string, e turns.Ending) (won bool, err error) {
	stored, extended, err := s.extended(ctx, e.Fence, e.Content)
	if err != nil || !extended {
		return false, wrap(op, err)
	}
	args, err := returnArgs(e, stored)
	if err != nil {
		return false, wrap(op, err)
	}
	return s.swap(ctx, op, sql, args)
}

// returnArgs is an ending over a log of which stored bytes are stored, whatever the ending itself says of that.
func returnArgs(e turns.Ending, stored uint32) (pgx.NamedArgs, error) {
	e.StoredLength = stored
	args, err := endingArgs([]turns.Ending{e})
	if err != nil {
		return nil, err
	}
	args["revivable"] = revivable()
	return args, nil
}

// extended reads how long the log of a reply is that was ended from outside, and reports whether pieces begin with all of
// it. SQL can't compare logs; what is read here is still so if endedOutside holds when the statement locks the row.
func (s *Store) extended(ctx context.Context, f turns.Fence, pieces []turns.Piece) (stored uint32, ok bool, err error) {
	r, err := s.ReadReply(ctx, f.Key, f.Reply)
	if isMissing(err) {
		return 0, false, nil
	}
	if err != nil || r.Status != turns.StatusAbandoned || r.Epoch != f.Epoch || r.Owner != f.Owner || r.Settled {
		return 0, false, err
	}
	ok, err = extends(r.Content, pieces)
	return r.Length, ok, err
}

// extends reports whether pieces begin with all that is stored.
func extends(stored, pieces []turns.Piece) (bool, error) {
	short, err := turns.LogOf(stored)
	if err != nil {
		return false, err
	}
	long, err := turns.LogOf(pieces)
	if err != nil {
		return false, err
	}
	return begins(long, short), nil
}

// begins reports whether the long log begins with the short one. A block of that which is still open may go on.
func begins(long, short *turns.Log) bool {
	all, _, _ := long.From(0, 0)
	some, _, _ := short.From(0, 0)
	if len(all) < len(some) {
		return false
	}
	for i, p := range some {
		got := all[i]
		if !p.Ends && strings.HasPrefix(got.Text, p.Text) {
			got.Text, got.Ends = p.Text, false
		}
		if got != p {
			return false
		}
	}
	return true
}

func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", op, err)
}

package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

const (
	heldColumns = `
SELECT` + rowColumns + ownContent + `, t.conversation_key, t.lookups,
` + ledgerOfReply

	heldReplies = heldColumns + `
FROM` + rowSource + `
WHERE t.role = 'assistant' AND t.status = 'held' AND c.tenant = @tenant
	AND (t.create_time, t.id) > (@after_time::timestamptz, @after_id::uuid)
ORDER BY t.create_time, t.id LIMIT @limit`
)

type heldRow struct {
	turnRow
	ConversationKey [16]byte
	Lookups         int
	Ledger          []byte
}

// HeldReplies implements turns.Held.
func (s *Store) HeldReplies(ctx context.Context, q turns.HeldQuery) ([]turns.HeldReply, error) {
	return s.held(ctx, "read held replies", mapRead, heldReplies, pgx.NamedArgs{
		"tenant": string(q.Tenant), "after_time": q.AfterTime, "after_id": [16]byte(q.AfterID.UUID), "limit": q.Limit})
}

func (s *Store) held(ctx context.Context, op string, mapped func(string, error) error, sql string, args pgx.NamedArgs) ([]turns.HeldReply, error) {
	rows, err := collect(ctx, s.pool, sql, args, pgx.RowToStructByName[heldRow])
	if err != nil {
		return nil, mapped(op, err)
	}
	held := make([]turns.HeldReply, 0, len(rows))
	for i := range rows {
		h, err := rows[i].heldReply()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		held = append(held, h)
	}
	return held, nil
}

func (r *heldRow) heldReply() (turns.HeldReply, error) {
	if _, err := turns.DecodeOptions([]byte(r.Options)); err != nil {
		r.Options = "" // one row that holds nonsense must not keep the others from being found
	}
	reply, err := r.reply()
	if err != nil {
		return turns.HeldReply{}, err
	}
	open, err := readLedger(r.Ledger, reply)
	return turns.HeldReply{Key: r.ConversationKey, Reply: *reply, OpenCalls: open, Lookups: r.Lookups}, err
}

// A row that another caller has locked is that caller's, and is passed over. Half of the wait is left to chance, so that
// what was held together is not asked for together.
const dueLookups = `
WITH due AS (
	SELECT t.conversation_key, t.id FROM turns t
	WHERE t.role = 'assistant' AND t.status = 'held' AND t.next_lookup_at <= clock_timestamp()
	ORDER BY t.next_lookup_at LIMIT @limit FOR NO KEY UPDATE SKIP LOCKED
), taken AS (
	UPDATE turns t SET lookups = t.lookups + 1, next_lookup_at = clock_timestamp() + (1 - random() / 2)
		* LEAST(@most::float8, @base::float8 * power(2, LEAST(t.lookups, 60))) * interval '1 microsecond'
	FROM due d WHERE t.conversation_key = d.conversation_key AND t.id = d.id AND t.status = 'held'
	RETURNING t.*
)` + heldColumns + `
FROM taken t
JOIN conversations c ON c.conversation_key = t.conversation_key
LEFT JOIN` + ownerOf + `
ORDER BY t.create_time, t.id`

// DueLookups implements turns.Held. After an unknown outcome the replies that were taken are due again after their wait.
func (s *Store) DueLookups(ctx context.Context, base, most time.Duration, limit int) ([]turns.HeldReply, error) {
	return s.held(ctx, "take due lookups", mapWrite, dueLookups, pgx.NamedArgs{
		"base": float64(base.Microseconds()), "most": float64(most.Microseconds()), "limit": limit})
}

const wakeLookup = `
UPDATE turns t SET next_lookup_at = LEAST(t.next_lookup_at, clock_timestamp())
WHERE t.conversation_key = @key AND t.responds_to = @turn AND t.role = 'assistant' AND t.status = 'held'
	AND (@generation::int = 0 OR t.generation = @generation::int) AND t.next_lookup_at IS NOT NULL`

// WakeLookup implements turns.Held.
func (s *Store) WakeLookup(ctx context.Context, key turns.ConversationKey, turn turns.TurnID, generation int32) (woken bool, err error) {
	n, err := exec(ctx, s.pool, wakeLookup, pgx.NamedArgs{
		"key": zeronull.UUID(key), "turn": zeronull.UUID(turn.UUID), "generation": generation})
	return n > 0, mapWrite("wake a lookup", err)
}

// endedHeld is the guard of what ends a held reply. Only the last owner's own verb asks for the owner. A stop that was
// asked for stands in the row itself, and bars a completion alone.
const endedHeld = ` t.status = 'held' AND t.epoch = i.epoch AND (i.owner IS NULL OR t.owner = i.owner) AND t.log_len = i.stored
	AND (i.status <> 'complete' OR NOT t.cancel_requested) `

const resolveHeld = `
WITH` + endings + `, ended AS (
	UPDATE turns t SET` + closing + `, stop_reason = i.stop_reason,
		settled_at = CASE WHEN i.status = 'complete' THEN clock_timestamp() ELSE t.settled_at END,
		provider_response_id = CASE WHEN i.response_id = '' THEN t.provider_response_id ELSE i.response_id END
	FROM item i WHERE t.conversation_key = i.conversation_key AND t.id = i.reply_id AND` + endedHeld + `
	RETURNING t.conversation_key, t.id, t.end_time, false AS keeps
),` + dropAndClose + `
SELECT end_time FROM ended`

// ResolveHeld implements turns.Held.
func (s *Store) ResolveHeld(ctx context.Context, r turns.Resolution) (turns.EndResult, error) {
	const op = "resolve a held reply"
	err := allowedFrom(turns.StatusHeld, r.Verb, r.Status, r.Reason, turns.VerbRelease, turns.VerbAdopt, turns.VerbFinish, turns.VerbCancel)
	if err != nil {
		return turns.EndResult{}, wrap(op, err)
	}
	row, err := s.ReadReply(ctx, r.Fence.Key, r.Fence.Reply)
	switch {
	case isMissing(err), err == nil && (row.Status != turns.StatusHeld || row.Epoch != r.Fence.Epoch):
		return turns.EndResult{}, nil
	case err != nil:
		return turns.EndResult{}, wrap(op, err)
	}
	// SQL can't compare logs. What was read is still so if the statement finds a reply of the same epoch held.
	if extends, err := extends(row.Content, r.Content); err != nil || !extends {
		return turns.EndResult{}, wrap(op, err)
	}
	args, err := resolutionArgs(r, row.Length)
	if err != nil {
		return turns.EndResult{}, wrap(op, err)
	}
	end, won, err := one(ctx, s.pool, resolveHeld, args, pgx.RowTo[time.Time])
	if err != nil || !won {
		return turns.EndResult{}, mapWrite(op, err)
	}
	return turns.EndResult{Won: true, EndTime: end.UTC()}, nil
}

func resolutionArgs(r turns.Resolution, stored uint32) (pgx.NamedArgs, error) {
	if r.Verb != turns.VerbFinish {
		r.Fence.Owner = turns.WorkerID{}
	}
	args, err := endingArgs([]turns.Ending{{
		Fence: r.Fence, Status: r.Status, Reason: r.Reason, StoredLength: stored, Content: r.Content, Length: r.Length,
		StopReason: r.StopReason, Usage: r.Usage, ResponseID: r.ResponseID,
	}})
	if err != nil {
		return nil, err
	}
	addOutcomes(args, r.Calls)
	return args, nil
}

package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// The new owner is locked as in a claim, then what a stop and a deletion would change, then the reply. That the old owner
// is dead is read without a lock, as in a sweep. The reply moves alone: a claim that was computed beside it is judged by
// the conversation's version, which stays.
const takeOver = `
WITH` + outcomes + `, living AS (
	SELECT w.worker_id FROM workers w WHERE w.worker_id = @new_owner AND NOT w.dead FOR KEY SHARE
), item AS (
	SELECT @key::uuid AS conversation_key, @reply::uuid AS reply_id, @epoch::bigint AS epoch, @owner::uuid AS owner,
		@stored::bigint AS stored, l.worker_id AS new_owner, p.*, p.call_id IS NOT NULL AS newest
	FROM living l CROSS JOIN unnest(` + callArrays + `) AS p (` + callNames + `)
), locked AS (
	SELECT c.conversation_key, c.tenant, c.conversation_id FROM item i
	JOIN conversations c ON c.conversation_key = i.conversation_key
	WHERE c.deleted_at IS NULL FOR SHARE OF c
), asked AS (
	SELECT u.id, u.generation FROM locked l CROSS JOIN item i
	JOIN turns r ON r.conversation_key = l.conversation_key AND r.id = i.reply_id
	JOIN turns u ON u.conversation_key = r.conversation_key AND u.id = r.responds_to
	WHERE u.role = 'user' AND u.cancelled_generation < u.generation FOR SHARE OF u
), fit AS (
	SELECT i.* FROM item i
	JOIN turns t ON t.conversation_key = i.conversation_key AND t.id = i.reply_id
	JOIN asked a ON a.id = t.responds_to AND a.generation = t.generation
	WHERE` + fence + `AND t.log_len = i.stored AND NOT t.cancel_requested
		AND t.epoch < @max_epoch::bigint AND (NOT i.newest OR t.calls < @max_calls::int)
		AND (t.deadline_at IS NULL OR t.deadline_at >= clock_timestamp())
		AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.worker_id = t.owner AND NOT w.dead)
	FOR NO KEY UPDATE OF t
), ended AS (
	UPDATE turns t SET epoch = t.epoch + 1, owner = i.new_owner, traceparent = @traceparent::text,
		calls = t.calls + CASE WHEN i.newest THEN 1 ELSE 0 END,` + toCall + `
	FROM fit i WHERE t.conversation_key = i.conversation_key AND t.id = i.reply_id AND` + fence + `
	RETURNING t.conversation_key, t.id, t.responds_to, t.generation, t.epoch, t.calls, NOT i.newest AS keeps,
		COALESCE((EXTRACT(EPOCH FROM t.deadline_at - clock_timestamp()) * 1000000)::bigint, 0) AS left_us
), ` + told + `, ` + closeAll + `, opened AS (
	INSERT INTO provider_calls (` + openColumns + `)
	SELECT e.conversation_key, l.tenant, l.conversation_id, e.responds_to, e.generation, e.id, e.epoch, clock_timestamp(),` +
	fromCall + `
	FROM ended e JOIN locked l ON l.conversation_key = e.conversation_key JOIN fit i ON i.newest
)
SELECT calls, left_us FROM ended`

// told notes in the story of a reply that it came to another owner, from its row e and the item that moved it.
const told = `told AS (
	INSERT INTO reply_takeovers (conversation_key, reply_id, epoch, way, from_worker, from_name, to_worker, to_name, create_time)
	SELECT e.conversation_key, e.id, e.epoch, @way, i.owner, COALESCE(f.name, ''), i.new_owner, COALESCE(n.name, ''), clock_timestamp()
	FROM ended e CROSS JOIN fit i
	LEFT JOIN workers f ON f.worker_id = i.owner
	LEFT JOIN workers n ON n.worker_id = i.new_owner
	ON CONFLICT (conversation_key, reply_id, epoch) DO NOTHING
)`

type takenRow struct {
	Calls  int
	LeftUs int64
}

// TakeOver implements turns.Returns. Calls that are open and that the takeover does not name are closed as sent and
// unknown, as with an ending. After an unknown outcome the row says whose the reply is; the same again is never won twice. Without a call of its own it leaves the others open.
func (s *Store) TakeOver(ctx context.Context, t turns.Takeover) (turns.TakeoverResult, error) {
	row, won, err := one(ctx, s.pool, takeOver, takeoverArgs(t), pgx.RowToStructByName[takenRow])
	if err != nil {
		return turns.TakeoverResult{}, mapWrite("take over", err)
	}
	return turns.TakeoverResult{Won: won, Calls: row.Calls, Left: microseconds(row.LeftUs)}, nil
}

func takeoverArgs(t turns.Takeover) pgx.NamedArgs {
	args := pgx.NamedArgs{
		"key": zeronull.UUID(t.Fence.Key), "reply": zeronull.UUID(t.Fence.Reply.UUID), "epoch": t.Fence.Epoch,
		"owner": zeronull.UUID(t.Fence.Owner.UUID), "new_owner": zeronull.UUID(t.Owner.UUID), "stored": int64(t.StoredLength),
		"max_epoch": int64(turns.MaxEpoch), "max_calls": t.MaxCalls, "way": string(t.Way), "traceparent": t.Traceparent,
	}
	addCalls(args, []turns.NewCall{t.Call})
	addOutcomes(args, t.Closed)
	return args
}

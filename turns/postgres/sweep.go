package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// A stale reply is in flight and its owner is dead or unknown, or its own deadline has passed, or it was asked to stop
// and that is asked for. The two statements differ in the index they start from: all that are in flight, which are few
// among all rows, or the one of a conversation.
const (
	staleColumns = `
SELECT` + rowColumns + ownContent + `, t.conversation_key,
	COALESCE(t.deadline_at < clock_timestamp(), false) AS deadline_passed,
` + ledgerOfReply + `
FROM` + rowSource + `
WHERE t.role = 'assistant' AND t.status = 'in_flight'
	AND (w.worker_id IS NULL OR w.dead OR t.deadline_at < clock_timestamp() OR (@stopped AND t.cancel_requested))`

	staleReplies = staleColumns + ` LIMIT @limit`

	staleReplyOf = staleColumns + ` AND t.conversation_key = @key LIMIT @limit`
)

type staleRow struct {
	turnRow
	ConversationKey [16]byte
	DeadlinePassed  bool
	Ledger          []byte
}

// StaleReplies implements turns.Replies.
func (s *Store) StaleReplies(ctx context.Context, q turns.StaleQuery) ([]turns.StaleReply, error) {
	sql, args := staleReplies, pgx.NamedArgs{"limit": q.Limit, "stopped": q.Stopped}
	if q.Key != nil {
		sql, args["key"] = staleReplyOf, zeronull.UUID(*q.Key)
	}
	rows, err := collect(ctx, s.pool, sql, args, pgx.RowToStructByName[staleRow])
	if err != nil {
		return nil, mapRead("find stale replies", err)
	}
	stale := make([]turns.StaleReply, 0, len(rows))
	for i := range rows {
		r, err := rows[i].staleReply()
		if err != nil {
			return nil, fmt.Errorf("find stale replies: %w", err)
		}
		stale = append(stale, r)
	}
	return stale, nil
}

func (r *staleRow) staleReply() (turns.StaleReply, error) {
	r.Options = "" // a sweep needs none, and must find a row whose options can't be read
	reply, err := r.reply()
	if err != nil {
		return turns.StaleReply{}, err
	}
	open, err := readLedger(r.Ledger, reply)
	if err != nil {
		return turns.StaleReply{}, err
	}
	return turns.StaleReply{
		Key: r.ConversationKey, Reply: *reply, OwnerDead: r.OwnerDead, DeadlinePassed: r.DeadlinePassed,
		CancelRequested: r.CancelRequested, OpenCalls: open,
	}, nil
}

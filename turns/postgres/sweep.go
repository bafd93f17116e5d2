package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// A stale reply is in flight and its owner is dead or unknown, or its own deadline has passed, or it was asked to stop
// and that is asked for. The two statements differ
// in the index they start from: all that are in flight, which are few among all rows, or the one of a conversation.
const (
	staleColumns = `
SELECT` + rowColumns + allContent + `, t.conversation_key,
	COALESCE(t.deadline_at < clock_timestamp(), false) AS deadline_passed,
	(SELECT json_agg(json_build_object('id', p.call_id, 'bytes', p.request_bytes, 'provider', p.provider,
			'model', p.model, 'first', p.first) ORDER BY p.number)
		FROM provider_calls p
		WHERE p.conversation_key = t.conversation_key AND p.reply_id = t.id AND p.class = '') AS open_calls
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
	OpenCalls       []byte
}

// openCall is a row of the ledger as staleColumns puts it in JSON.
type openCall struct {
	ID       uuid.UUID `json:"id"`
	Bytes    int       `json:"bytes"`
	Provider string    `json:"provider"`
	Model    string    `json:"model"`
	First    bool      `json:"first"`
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
	reply, err := r.reply()
	if err != nil {
		return turns.StaleReply{}, err
	}
	var open []openCall
	if len(r.OpenCalls) > 0 {
		if err := json.Unmarshal(r.OpenCalls, &open); err != nil {
			return turns.StaleReply{}, fmt.Errorf("decode open calls: %w", err)
		}
	}
	stale := turns.StaleReply{
		Key: r.ConversationKey, Reply: *reply, OwnerDead: r.OwnerDead, DeadlinePassed: r.DeadlinePassed,
		CancelRequested: r.CancelRequested,
	}
	for _, c := range open {
		stale.OpenCalls = append(stale.OpenCalls, turns.OpenCall{
			ID: turns.CallID{UUID: c.ID}, RequestBytes: c.Bytes, Provider: c.Provider, Model: c.Model, First: c.First})
	}
	return stale, nil
}

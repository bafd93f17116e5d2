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
// and that is asked for. The two statements differ in the index they start from: all that are in flight, which are few
// among all rows, or the one of a conversation.
const (
	staleColumns = `
SELECT` + rowColumns + ownContent + `, t.conversation_key,
	COALESCE(t.deadline_at < clock_timestamp(), false) AS deadline_passed,
	(SELECT json_agg(json_build_object('id', p.call_id, 'bytes', p.request_bytes, 'provider', p.provider,
			'model', p.model, 'first', p.first, 'closed', p.class <> '', 'input', p.input_tokens,
			'cache_read', p.cache_read_tokens, 'cache_write', p.cache_write_tokens, 'output', p.output_tokens,
			'reasoning', p.reasoning_tokens, 'source', p.token_source, 'wasted', p.wasted_tokens, 'cost', p.cost_micros)
			ORDER BY p.number)
		FROM provider_calls p WHERE p.conversation_key = t.conversation_key AND p.reply_id = t.id) AS ledger
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

// ledgerCall is a row of the ledger as staleColumns puts it in JSON.
type ledgerCall struct {
	ID         uuid.UUID         `json:"id"`
	Bytes      int               `json:"bytes"`
	Provider   string            `json:"provider"`
	Model      string            `json:"model"`
	First      bool              `json:"first"`
	Closed     bool              `json:"closed"`
	Input      int64             `json:"input"`
	CacheRead  int64             `json:"cache_read"`
	CacheWrite int64             `json:"cache_write"`
	Output     int64             `json:"output"`
	Reasoning  int64             `json:"reasoning"`
	Source     turns.TokenSource `json:"source"`
	Wasted     int64             `json:"wasted"`
	Cost       int64             `json:"cost"`
}

// addTo adds the call to what is known of its reply.
func (c *ledgerCall) addTo(s *turns.StaleReply) {
	if c.Closed {
		s.Reply.Usage = s.Reply.Usage.Add(turns.Usage{Input: c.Input, CacheRead: c.CacheRead, CacheWrite: c.CacheWrite,
			Output: c.Output, Reasoning: c.Reasoning, Source: c.Source, Wasted: c.Wasted, CostMicros: c.Cost, Calls: 1})
		return
	}
	s.OpenCalls = append(s.OpenCalls, turns.OpenCall{
		ID: turns.CallID{UUID: c.ID}, RequestBytes: c.Bytes, Provider: c.Provider, Model: c.Model, First: c.First})
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
	var ledger []ledgerCall
	if len(r.Ledger) > 0 {
		if err := json.Unmarshal(r.Ledger, &ledger); err != nil {
			return turns.StaleReply{}, fmt.Errorf("decode the ledger: %w", err)
		}
	}
	reply.Usage = turns.Usage{}
	stale := turns.StaleReply{
		Key: r.ConversationKey, Reply: *reply, OwnerDead: r.OwnerDead, DeadlinePassed: r.DeadlinePassed,
		CancelRequested: r.CancelRequested,
	}
	for i := range ledger {
		ledger[i].addTo(&stale)
	}
	return stale, nil
}

package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// The reply is locked as for each write under its fence, and then its call. When a call was sent is kept from the first
// time that it was said.
const noteCalls = `
WITH item AS (
	SELECT * FROM unnest(@n::int[], @key::uuid[], @reply::uuid[], @epoch::bigint[], @owner::uuid[], @call::uuid[],
		@session::text[], @submitted::bool[], @phase::text[], @http::int[], @request::text[])
	AS i (n, conversation_key, reply_id, epoch, owner, call_id, session, submitted, phase, http_status, request_id)
), locked AS (
	SELECT i.* FROM item i JOIN turns t ON t.conversation_key = i.conversation_key AND t.id = i.reply_id
	WHERE` + fence + `AND NOT t.cancel_requested
	ORDER BY t.conversation_key, t.id FOR NO KEY UPDATE OF t
)
UPDATE provider_calls p SET session = CASE WHEN i.session = '' THEN p.session ELSE i.session END,
	submitted_at = CASE WHEN i.submitted THEN COALESCE(p.submitted_at, clock_timestamp()) ELSE p.submitted_at END,
	phase = CASE WHEN i.phase = '' THEN p.phase ELSE i.phase END,
	http_status = CASE WHEN i.http_status = 0 THEN p.http_status ELSE i.http_status END,
	provider_request_id = CASE WHEN i.request_id = '' THEN p.provider_request_id ELSE i.request_id END
FROM locked i
WHERE p.conversation_key = i.conversation_key AND p.call_id = i.call_id AND p.reply_id = i.reply_id AND p.class = ''
RETURNING i.n`

// NoteCalls implements turns.Ledger. The same note again is noted again and changes nothing.
func (s *Store) NoteCalls(ctx context.Context, notes []turns.CallNote) ([]turns.NoteResult, error) {
	return s.groups.notes.write(ctx, notes)
}

func (s *Store) notes() kind[turns.CallNote, turns.NoteResult] {
	return kind[turns.CallNote, turns.NoteResult]{op: "note calls", run: func(ctx context.Context, items []turns.CallNote) ([]turns.NoteResult, error) {
		args := pgx.NamedArgs{
			"call":      column(items, func(c *turns.CallNote) zeronull.UUID { return zeronull.UUID(c.Call.UUID) }),
			"session":   column(items, func(c *turns.CallNote) string { return c.Session }),
			"submitted": column(items, func(c *turns.CallNote) bool { return c.Submitted }),
			"phase":     column(items, func(c *turns.CallNote) string { return string(c.Phase) }),
			"http":      column(items, func(c *turns.CallNote) int { return c.HTTPStatus }),
			"request":   column(items, func(c *turns.CallNote) string { return c.RequestID }),
		}
		addFences(args, column(items, func(c *turns.CallNote) turns.Fence { return c.Fence }))
		noted, err := collect(ctx, s.pool, noteCalls, args, pgx.RowTo[int])
		if err != nil {
			return nil, err
		}
		results := make([]turns.NoteResult, len(items))
		for _, n := range noted {
			results[n].Noted = true
		}
		return results, nil
	}}
}

const readCall = `
SELECT p.call_id, p.number, p.first, p.layer, p.idempotency_key, p.endpoint, p.provider, p.model, p.provider_model, p.credential,
	p.request_hash, p.builder_version, p.request_bytes, p.request_body, p.submitted_at IS NOT NULL AS submitted, p.session,
	CASE WHEN p.provider_response_id <> '' OR EXISTS (SELECT 1 FROM provider_calls q
		WHERE q.conversation_key = p.conversation_key AND q.reply_id = p.reply_id AND q.number > p.number)
	THEN p.provider_response_id
	ELSE COALESCE((SELECT t.provider_response_id FROM turns t
		WHERE t.conversation_key = p.conversation_key AND t.id = p.reply_id), '') END AS response_id,
	(EXTRACT(EPOCH FROM clock_timestamp() - p.create_time) * 1000000)::bigint AS age_us
FROM provider_calls p WHERE p.conversation_key = @key AND p.call_id = @call AND p.class = ''`

type callRow struct {
	CallID         [16]byte
	Number         int
	First          bool
	Layer          turns.Layer
	IdempotencyKey string
	Endpoint       string
	Provider       string
	Model          string
	ProviderModel  string
	Credential     string
	RequestHash    []byte
	BuilderVersion int
	RequestBytes   int
	RequestBody    []byte
	Submitted      bool
	Session        string
	ResponseID     string
	AgeUs          int64
}

// ReadCall implements turns.Ledger.
func (s *Store) ReadCall(ctx context.Context, key turns.ConversationKey, id turns.CallID) (turns.OpenCall, error) {
	r, found, err := one(ctx, s.pool, readCall, pgx.NamedArgs{"key": zeronull.UUID(key), "call": zeronull.UUID(id.UUID)},
		pgx.RowToStructByName[callRow])
	if err != nil {
		return turns.OpenCall{}, mapRead("read a call", err)
	}
	if !found {
		return turns.OpenCall{}, turns.NotFound("call", "")
	}
	return turns.OpenCall{
		ID: turns.CallID{UUID: r.CallID}, Number: r.Number, First: r.First, Layer: r.Layer, Key: r.IdempotencyKey, Endpoint: r.Endpoint,
		Provider: r.Provider, Model: r.Model, ProviderModel: r.ProviderModel, Credential: r.Credential,
		RequestHash: r.RequestHash, BuilderVersion: r.BuilderVersion, RequestBytes: r.RequestBytes,
		HasBody: r.RequestBody != nil, Body: r.RequestBody, Submitted: r.Submitted, Session: r.Session,
		ResponseID: r.ResponseID, Age: microseconds(r.AgeUs),
	}, nil
}

// chosen is a filter over calls of a tenant, and chosenOf the same for one conversation, which has an index of its own.
const (
	chosen = ` FROM provider_calls p
WHERE p.tenant = @tenant AND p.create_time >= @from AND p.create_time < COALESCE(@before::timestamptz, 'infinity')
	AND (@turn::uuid IS NULL OR p.turn_id = @turn::uuid) AND (@provider::text = '' OR p.provider = @provider::text)
	AND (@model::text = '' OR p.model = @model::text) AND (@endpoint::text = '' OR p.endpoint = @endpoint::text)
	AND (@class::text = '' OR p.class = @class::text) AND (@layer::text = '' OR p.layer = @layer::text)
	AND (@try::text = '' OR p.first = (@try::text = 'first')) AND (NOT @wasted::bool OR p.wasted_tokens > 0)
	AND (NOT @open::bool OR p.class = '')`

	chosenOf = chosen + ` AND p.conversation_key = @key`
)

func filterArgs(f turns.LedgerFilter) pgx.NamedArgs {
	args := pgx.NamedArgs{
		"tenant": string(f.Tenant), "from": f.From, "before": zeronull.Timestamptz(f.Before), "turn": zeronull.UUID(f.Turn.UUID),
		"provider": f.Provider, "model": f.Model, "endpoint": f.Endpoint, "class": string(f.Class), "layer": string(f.Layer),
		"try": string(f.Try), "wasted": f.Wasted, "open": f.Open,
	}
	if f.Key != nil {
		args["key"] = zeronull.UUID(*f.Key)
	}
	return args
}

const (
	callColumns = `
SELECT p.call_id, p.conversation_id, p.turn_id, p.reply_id, p.epoch, p.number, p.first, p.layer, p.endpoint, p.provider, p.model,
	p.class, p.phase, p.http_status, p.idempotency_key, p.provider_request_id, p.provider_response_id, p.input_tokens,
	p.cache_read_tokens, p.cache_write_tokens, p.output_tokens, p.reasoning_tokens, p.token_source, p.wasted_tokens,
	p.cost_micros, p.waste_cause, p.extra_requests, p.output_low, p.output_high, p.create_time, p.end_time`

	page = ` AND (p.create_time, p.call_id) > (@after_time::timestamptz, @after_id::uuid) ORDER BY p.create_time, p.call_id LIMIT @limit`

	listCalls = callColumns + chosen + page

	listCallsOf = callColumns + chosenOf + page
)

type listedRow struct {
	CallID, ConversationID, TurnID, ReplyID [16]byte
	Epoch                                   int64
	Number                                  int
	First                                   bool
	Layer                                   turns.Layer
	Endpoint, Provider, Model               string
	Class                                   turns.CallClass
	Phase                                   turns.CallPhase
	HTTPStatus                              int `db:"http_status"`
	IdempotencyKey                          string
	ProviderRequestID, ProviderResponseID   string
	InputTokens                             int64
	CacheReadTokens, CacheWriteTokens       int64
	OutputTokens, ReasoningTokens           int64
	TokenSource                             turns.TokenSource
	WastedTokens, CostMicros                int64
	WasteCause                              string
	ExtraRequests                           int
	OutputLow, OutputHigh                   int64
	CreateTime                              time.Time
	EndTime                                 zeronull.Timestamptz
}

func (r *listedRow) call() turns.LedgerCall {
	return turns.LedgerCall{
		ID: turns.CallID{UUID: r.CallID}, Conversation: turns.ConversationID{UUID: r.ConversationID},
		Turn: turns.TurnID{UUID: r.TurnID}, Reply: turns.ReplyID{UUID: r.ReplyID}, Epoch: r.Epoch, Number: r.Number,
		First: r.First, Layer: r.Layer, Endpoint: r.Endpoint, Provider: r.Provider, Model: r.Model, Class: r.Class, Phase: r.Phase,
		HTTPStatus: r.HTTPStatus, Key: r.IdempotencyKey, RequestID: r.ProviderRequestID, ResponseID: r.ProviderResponseID,
		Usage: turns.Usage{Input: r.InputTokens, CacheRead: r.CacheReadTokens, CacheWrite: r.CacheWriteTokens,
			Output: r.OutputTokens, Reasoning: r.ReasoningTokens, Source: r.TokenSource, Wasted: r.WastedTokens,
			CostMicros: r.CostMicros, Calls: 1},
		WasteCause: r.WasteCause, Extra: r.ExtraRequests, Low: r.OutputLow, High: r.OutputHigh,
		CreateTime: r.CreateTime.UTC(), EndTime: utc(r.EndTime),
	}
}

// ListCalls implements turns.Ledger.
func (s *Store) ListCalls(ctx context.Context, q turns.LedgerQuery) ([]turns.LedgerCall, error) {
	sql, args := listCalls, filterArgs(q.Filter)
	if q.Filter.Key != nil {
		sql = listCallsOf
	}
	args["after_time"], args["after_id"], args["limit"] = q.AfterTime, [16]byte(q.AfterID.UUID), q.Limit
	rows, err := collect(ctx, s.pool, sql, args, pgx.RowToStructByName[listedRow])
	if err != nil {
		return nil, mapRead("list calls", err)
	}
	return column(rows, (*listedRow).call), nil
}

// The groups are few: causes of waste are the domain's own words.
const (
	sums = `
SELECT p.layer, p.waste_cause, count(*)::int AS calls, sum(p.input_tokens)::bigint AS input,
	sum(p.cache_read_tokens)::bigint AS cache_read, sum(p.cache_write_tokens)::bigint AS cache_write,
	sum(p.output_tokens)::bigint AS output, sum(p.reasoning_tokens)::bigint AS reasoning,
	CASE WHEN bool_or(p.token_source = 'estimated') THEN 'estimated' ELSE max(p.token_source) END AS source,
	sum(p.wasted_tokens)::bigint AS wasted, sum(p.cost_micros)::bigint AS cost`

	grouped = ` GROUP BY p.layer, p.waste_cause`

	sumCalls = sums + chosen + grouped

	sumCallsOf = sums + chosenOf + grouped
)

type sumRow struct {
	Layer        turns.Layer
	WasteCause   string
	Calls        int32
	Input        int64
	CacheRead    int64
	CacheWrite   int64
	Output       int64
	Reasoning    int64
	Source       turns.TokenSource
	Wasted, Cost int64
}

// SumCalls implements turns.Ledger.
func (s *Store) SumCalls(ctx context.Context, f turns.LedgerFilter) (turns.LedgerSums, error) {
	sql := sumCalls
	if f.Key != nil {
		sql = sumCallsOf
	}
	rows, err := collect(ctx, s.pool, sql, filterArgs(f), pgx.RowToStructByName[sumRow])
	if err != nil {
		return turns.LedgerSums{}, mapRead("sum calls", err)
	}
	var all turns.LedgerSums
	for i := range rows {
		r := &rows[i]
		all.Add(r.Layer, r.WasteCause, turns.Usage{Input: r.Input, CacheRead: r.CacheRead, CacheWrite: r.CacheWrite,
			Output: r.Output, Reasoning: r.Reasoning, Source: r.Source, Wasted: r.Wasted, CostMicros: r.Cost, Calls: r.Calls})
	}
	return all, nil
}

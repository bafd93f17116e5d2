package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/turnd/turnd/turns"
)

// When a call was sent is kept from the first time that it was said.
const noteCall = `UPDATE provider_calls SET session = CASE WHEN @session = '' THEN session ELSE @session END,
		submitted_at = CASE WHEN @submitted THEN COALESCE(submitted_at, @now) ELSE submitted_at END,
		phase = CASE WHEN @phase = '' THEN phase ELSE @phase END,
		http_status = CASE WHEN @status = 0 THEN http_status ELSE @status END,
		provider_request_id = CASE WHEN @request = '' THEN provider_request_id ELSE @request END
	WHERE conversation_key = @key AND call_id = @call AND reply_id = @reply AND end_time IS NULL
		AND EXISTS (SELECT 1 FROM turns WHERE conversation_key = @key AND id = @reply AND status = 'in_flight' AND epoch = @epoch
			AND owner = @owner AND cancel_requested = 0)`

// NoteCalls implements turns.Ledger. The same note again is noted again and changes nothing.
func (s *Store) NoteCalls(ctx context.Context, notes []turns.CallNote) ([]turns.NoteResult, error) {
	results := make([]turns.NoteResult, len(notes))
	tenant := tenantOf(notes, func(n *turns.CallNote) turns.Tenant { return n.Tenant })
	err := s.shareTx(ctx, tenant, len(notes), "note calls", func(t *tx) (err error) {
		for _, i := range inKeyOrder(notes, func(n turns.CallNote) turns.ConversationKey { return n.Fence.Key }) {
			n := &notes[i]
			results[i].Noted, err = t.won(noteCall, fenceArgs(n.Fence, blob("call", n.Call.UUID), arg("session", n.Session),
				arg("submitted", n.Submitted), arg("phase", string(n.Phase)), arg("status", n.HTTPStatus),
				arg("request", n.RequestID), arg("now", t.now))...)
			if err != nil {
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

// openColumns are what openCall scans, apart from the body.
const openColumns = `SELECT p.call_id, p.number, p.first, p.layer, p.idempotency_key, p.endpoint, p.provider, p.model, p.provider_model,
	p.credential, p.request_hash, p.builder_version, p.request_bytes, p.request_body IS NOT NULL, p.submitted_at IS NOT NULL,
	p.session, p.provider_response_id, p.create_time`

func scanOpen(scan func(...any) error, now int64, more ...any) (c turns.OpenCall, err error) {
	var created int64
	dest := []any{&c.ID.UUID, &c.Number, &c.First, &c.Layer, &c.Key, &c.Endpoint, &c.Provider, &c.Model, &c.ProviderModel, &c.Credential,
		&c.RequestHash, &c.BuilderVersion, &c.RequestBytes, &c.HasBody, &c.Submitted, &c.Session, &c.ResponseID, &created}
	err = scan(append(dest, more...)...)
	c.Age = micros(now - created)
	return c, err
}

const readLedger = openColumns + `, p.end_time IS NOT NULL, p.input_tokens, p.cache_read_tokens, p.cache_write_tokens,
		p.output_tokens, p.reasoning_tokens, p.token_source, p.wasted_tokens, p.cost_micros
	FROM provider_calls p WHERE p.conversation_key = @key AND p.reply_id = @reply ORDER BY p.number`

// ledgerOf gives a reply the usage of its closed calls, and returns its open ones. What a checkpoint has stored of the
// response belongs to the newest call.
func (t *tx) ledgerOf(key turns.ConversationKey, reply *turns.Reply) (open []turns.OpenCall, err error) {
	newest := false
	reply.Usage = turns.Usage{}
	err = t.query(func(scan func(...any) error) error {
		u := turns.Usage{Calls: 1}
		var closed bool
		call, err := scanOpen(scan, t.now, &closed, &u.Input, &u.CacheRead, &u.CacheWrite, &u.Output, &u.Reasoning, &u.Source,
			&u.Wasted, &u.CostMicros)
		if err != nil {
			return err
		}
		if newest = !closed; closed {
			reply.Usage = reply.Usage.Add(u)
		} else {
			open = append(open, call)
		}
		return nil
	}, readLedger, arg("key", key[:]), blob("reply", reply.ID.UUID))
	if last := len(open) - 1; newest && open[last].ResponseID == "" {
		open[last].ResponseID = reply.ResponseID
	}
	return open, err
}

const readCall = openColumns + `, p.request_body, CASE WHEN EXISTS (SELECT 1 FROM provider_calls q
			WHERE q.conversation_key = p.conversation_key AND q.reply_id = p.reply_id AND q.number > p.number) THEN ''
		ELSE COALESCE((SELECT r.provider_response_id FROM turns r
			WHERE r.conversation_key = p.conversation_key AND r.id = p.reply_id), '') END
	FROM provider_calls p WHERE p.conversation_key = @key AND p.call_id = @call AND p.end_time IS NULL`

// ReadCall implements turns.Ledger.
func (s *Store) ReadCall(ctx context.Context, key turns.ConversationKey, id turns.CallID) (call turns.OpenCall, err error) {
	err = s.readTx(ctx, "read a call", func(t *tx) error {
		found := false
		err := t.query(func(scan func(...any) error) (err error) {
			found = true
			var body []byte
			var response string
			if call, err = scanOpen(scan, t.now, &body, &response); err != nil {
				return err
			}
			if call.Body = body; call.ResponseID == "" {
				call.ResponseID = response
			}
			return nil
		}, readCall, arg("key", key[:]), blob("call", id.UUID))
		if err == nil && !found {
			err = turns.NotFound("call", "")
		}
		return err
	})
	if err != nil {
		return turns.OpenCall{}, err
	}
	return call, nil
}

// chosen is a filter over calls of a tenant, and chosenOf the same for one conversation, which has an index of its own.
const (
	chosen = ` p.tenant = @tenant AND p.create_time >= @from AND p.create_time < @before
		AND (@turn IS NULL OR p.turn_id = @turn) AND (@provider = '' OR p.provider = @provider)
		AND (@model = '' OR p.model = @model) AND (@endpoint = '' OR p.endpoint = @endpoint) AND (@class = '' OR p.class = @class)
		AND (@layer = '' OR p.layer = @layer) AND (@try = '' OR p.first = (@try = 'first'))
		AND (NOT @wasted OR p.wasted_tokens > 0) AND (NOT @open OR p.class = '')`

	chosenOf = chosen + ` AND p.conversation_key = @key`
)

func filterArgs(f turns.LedgerFilter, more ...any) []any {
	args := append(more, arg("tenant", string(f.Tenant)), arg("from", fromTime(f.From)), arg("before", beforeTime(f.Before)), blob("turn", f.Turn.UUID),
		arg("provider", f.Provider), arg("model", f.Model), arg("endpoint", f.Endpoint), arg("class", string(f.Class)),
		arg("layer", string(f.Layer)), arg("try", string(f.Try)), arg("wasted", f.Wasted), arg("open", f.Open))
	if f.Key != nil {
		args = append(args, arg("key", f.Key[:]))
	}
	return args
}

// fromTime is a time as it is stored; the zero time is before all.
func fromTime(t time.Time) int64 {
	if t.IsZero() {
		return -1 << 63
	}
	return t.UnixMicro()
}

// beforeTime is a time as it is stored; the zero time is after all.
func beforeTime(t time.Time) int64 {
	if t.IsZero() {
		return 1<<63 - 1
	}
	return t.UnixMicro()
}

const (
	callColumns = `SELECT p.call_id, p.conversation_id, p.turn_id, p.reply_id, p.epoch, p.number, p.first, p.layer, p.endpoint, p.provider,
		p.model, p.class, p.phase, p.http_status, p.idempotency_key, p.provider_request_id, p.provider_response_id,
		p.input_tokens, p.cache_read_tokens, p.cache_write_tokens, p.output_tokens, p.reasoning_tokens, p.token_source,
		p.wasted_tokens, p.cost_micros, p.waste_cause, p.extra_requests, p.output_low, p.output_high, p.create_time, p.end_time
	FROM provider_calls p`

	page = ` AND (p.create_time, p.call_id) > (@after_time, @after_id) ORDER BY p.create_time, p.call_id LIMIT @limit`

	// The indexes are named, since neither knows how few a conversation has of a tenant's calls.
	listCalls = callColumns + ` INDEXED BY provider_calls_of_tenant WHERE` + chosen + page

	listCallsOf = callColumns + ` INDEXED BY provider_calls_of_reply WHERE` + chosenOf + page
)

// ListCalls implements turns.Ledger.
func (s *Store) ListCalls(ctx context.Context, q turns.LedgerQuery) (calls []turns.LedgerCall, err error) {
	text := listCalls
	if q.Filter.Key != nil {
		text = listCallsOf
	}
	err = s.readTx(ctx, "list calls", func(t *tx) error {
		return t.query(func(scan func(...any) error) error {
			call, err := scanCall(scan)
			calls = append(calls, call)
			return err
		}, text, filterArgs(q.Filter, arg("after_time", fromTime(q.AfterTime)), arg("after_id", q.AfterID.UUID[:]), arg("limit", q.Limit))...)
	})
	if err != nil {
		return nil, err
	}
	return calls, nil
}

func scanCall(scan func(...any) error) (c turns.LedgerCall, err error) {
	u := &c.Usage
	var created int64
	var ended sql.NullInt64
	err = scan(&c.ID.UUID, &c.Conversation.UUID, &c.Turn.UUID, &c.Reply.UUID, &c.Epoch, &c.Number, &c.First, &c.Layer, &c.Endpoint,
		&c.Provider, &c.Model, &c.Class, &c.Phase, &c.HTTPStatus, &c.Key, &c.RequestID, &c.ResponseID, &u.Input, &u.CacheRead,
		&u.CacheWrite, &u.Output, &u.Reasoning, &u.Source, &u.Wasted, &u.CostMicros, &c.WasteCause, &c.Extra, &c.Low, &c.High,
		&created, &ended)
	u.Calls, c.CreateTime = 1, timeOf(created)
	if ended.Valid {
		c.EndTime = timeOf(ended.Int64)
	}
	return c, err
}

// The groups are few: causes of waste are the domain's own words.
const (
	sums = `SELECT p.layer, p.waste_cause, count(*), sum(p.input_tokens), sum(p.cache_read_tokens), sum(p.cache_write_tokens),
		sum(p.output_tokens), sum(p.reasoning_tokens),
		CASE WHEN max(p.token_source = 'estimated') THEN 'estimated' ELSE max(p.token_source) END, sum(p.wasted_tokens),
		sum(p.cost_micros)
	FROM provider_calls p`

	sumCalls = sums + ` INDEXED BY provider_calls_of_tenant WHERE` + chosen + ` GROUP BY p.layer, p.waste_cause`

	sumCallsOf = sums + ` INDEXED BY provider_calls_of_reply WHERE` + chosenOf + ` GROUP BY p.layer, p.waste_cause`
)

// SumCalls implements turns.Ledger.
func (s *Store) SumCalls(ctx context.Context, f turns.LedgerFilter) (all turns.LedgerSums, err error) {
	text := sumCalls
	if f.Key != nil {
		text = sumCallsOf
	}
	err = s.readTx(ctx, "sum calls", func(t *tx) error {
		return t.query(func(scan func(...any) error) error {
			var layer turns.Layer
			var cause string
			var u turns.Usage
			err := scan(&layer, &cause, &u.Calls, &u.Input, &u.CacheRead, &u.CacheWrite, &u.Output, &u.Reasoning, &u.Source,
				&u.Wasted, &u.CostMicros)
			all.Add(layer, cause, u)
			return err
		}, text, filterArgs(f)...)
	})
	if err != nil {
		return turns.LedgerSums{}, err
	}
	return all, nil
}

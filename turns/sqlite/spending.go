package sqlite

import (
	"context"
	"database/sql"

	"github.com/turnd/turnd/turns"
)

// callSpent is what a call took, and whether a kept sum may pass it; passed tells that it may pass all up to it too.
const callSpent = ` p.create_time, p.call_id, p.first AS turns, p.input_tokens + p.output_tokens AS tokens, p.cost_micros AS micros,
			COALESCE(p.end_time - p.create_time, 0) AS us,
			p.create_time < @now - CASE WHEN p.class = '' THEN 3600000000 ELSE 60000000 END AS passes`

// tailSums are the sums of the calls after a kept sum, and of those that it may pass.
const tailSums = ` COALESCE(SUM(f.turns), 0) AS turns, COALESCE(SUM(f.tokens), 0) AS tokens, COALESCE(SUM(f.micros), 0) AS micros,
		COALESCE(SUM(f.us), 0) AS us, COUNT(*) FILTER (WHERE f.passed) AS calls,
		COALESCE(SUM(f.turns) FILTER (WHERE f.passed), 0) AS passed_turns,
		COALESCE(SUM(f.tokens) FILTER (WHERE f.passed), 0) AS passed_tokens,
		COALESCE(SUM(f.micros) FILTER (WHERE f.passed), 0) AS passed_micros,
		COALESCE(SUM(f.us) FILTER (WHERE f.passed), 0) AS passed_us`

const conversationSpent = `SELECT c.spent_turns + added.turns, c.spent_tokens + added.tokens, c.spent_micros + added.micros, c.spent_us + added.us,
		added.calls, added.passed_turns, added.passed_tokens, added.passed_micros, added.passed_us, c.spent_through, NULL, added.through_id, NULL
	FROM conversations c CROSS JOIN (SELECT` + tailSums + `, MAX(f.call_id) FILTER (WHERE f.passed) AS through_id
		FROM (SELECT tail.*, MIN(tail.passes) OVER (ORDER BY tail.call_id) AS passed
			FROM (SELECT` + callSpent + ` FROM provider_calls p
				WHERE p.conversation_key = @key AND p.call_id > COALESCE(
					(SELECT spent_through FROM conversations WHERE conversation_key = @key), x'')
				ORDER BY p.call_id LIMIT @reach) tail) f) added
	WHERE c.conversation_key = @key`

const passConversation = `UPDATE conversations SET spent_turns = spent_turns + @turns, spent_tokens = spent_tokens + @tokens,
		spent_micros = spent_micros + @micros, spent_us = spent_us + @us, spent_through = @through_id
	WHERE conversation_key = @key AND spent_through IS @from_id`

// A time before all stands for a tenant whose sum was never kept.
const tenantSpent = `SELECT COALESCE(k.turns, 0) + added.turns, COALESCE(k.tokens, 0) + added.tokens, COALESCE(k.micros, 0) + added.micros,
		COALESCE(k.us, 0) + added.us, added.calls, added.passed_turns, added.passed_tokens, added.passed_micros, added.passed_us, k.through_id, k.through_time,
		added.through_id, added.through_time
	FROM (SELECT` + tailSums + `, MAX(f.create_time) FILTER (WHERE f.passed) AS through_time,
			MAX(CASE WHEN f.passed AND f.create_time = f.latest THEN f.call_id END) AS through_id
		FROM (SELECT marked.*, MAX(CASE WHEN marked.passed THEN marked.create_time END) OVER () AS latest
			FROM (SELECT tail.*, MIN(tail.passes) OVER (ORDER BY tail.create_time, tail.call_id) AS passed
				FROM (SELECT` + callSpent + ` FROM provider_calls p INDEXED BY provider_calls_of_tenant
					WHERE p.tenant = @tenant AND (p.create_time, p.call_id) > (
						COALESCE((SELECT through_time FROM tenant_spending WHERE tenant = @tenant), -9223372036854775808),
						COALESCE((SELECT through_id FROM tenant_spending WHERE tenant = @tenant), x''))
					ORDER BY p.create_time, p.call_id LIMIT @reach) tail) marked) f) added
	LEFT JOIN tenant_spending k ON k.tenant = @tenant`

const passTenant = `INSERT INTO tenant_spending (tenant, turns, tokens, micros, us, through_time, through_id)
	VALUES (@tenant, @turns, @tokens, @micros, @us, @through_time, @through_id)
	ON CONFLICT (tenant) DO UPDATE SET turns = turns + excluded.turns, tokens = tokens + excluded.tokens, micros = micros + excluded.micros,
		us = us + excluded.us, through_time = excluded.through_time, through_id = excluded.through_id
	WHERE through_time = @from_time AND through_id = @from_id`

// spent is a sum of calls, and how far the kept part of it may move on.
type spent struct {
	turns, tokens, micros, us int64
	calls                     int64
	passed                    [4]int64 // turns, tokens, microseconds of currency and of time
	fromID, throughID         []byte
	fromTime, throughTime     sql.NullInt64
}

func (v *spent) spending() turns.Spending {
	return turns.Spending{Turns: v.turns, Tokens: v.tokens, CostMicros: v.micros, Time: micros(v.us)}
}

func (v *spent) args(more ...any) []any {
	return append([]any{arg("turns", v.passed[0]), arg("tokens", v.passed[1]), arg("micros", v.passed[2]), arg("us", v.passed[3]),
		bytesArg("from_id", v.fromID), bytesArg("through_id", v.throughID)}, more...)
}

// sum reads a sum by one of the statements above.
func (s *Store) sum(ctx context.Context, doing, text string, of ...any) (v spent, err error) {
	err = s.readTx(ctx, doing, func(t *tx) error {
		_, err := t.found(text, append(of, arg("now", t.now), arg("reach", turns.SpendingReach)), &v.turns, &v.tokens, &v.micros, &v.us,
			&v.calls, &v.passed[0], &v.passed[1], &v.passed[2], &v.passed[3], &v.fromID, &v.fromTime, &v.throughID, &v.throughTime)
		return err
	})
	return v, err
}

// ConversationSpent implements turns.Spendings.
func (s *Store) ConversationSpent(ctx context.Context, key turns.ConversationKey) (turns.Spending, error) {
	v, err := s.sum(ctx, "sum a conversation's calls", conversationSpent, arg("key", key[:]))
	if err == nil && v.calls >= turns.ConversationTail {
		err = s.writeTx(ctx, "keep a conversation's sum", func(t *tx) error {
			_, err := t.exec(passConversation, v.args(arg("key", key[:]))...)
			return err
		})
	}
	return v.spending(), err
}

// TenantSpent implements turns.Spendings.
func (s *Store) TenantSpent(ctx context.Context, tenant turns.Tenant) (turns.Spending, error) {
	v, err := s.sum(ctx, "sum a tenant's calls", tenantSpent, arg("tenant", string(tenant)))
	if err == nil && v.calls >= turns.TenantTail {
		err = s.writeTx(ctx, "keep a tenant's sum", func(t *tx) error {
			_, err := t.exec(passTenant, v.args(arg("tenant", string(tenant)), arg("from_time", v.fromTime), arg("through_time", v.throughTime))...)
			return err
		})
	}
	return v.spending(), err
}

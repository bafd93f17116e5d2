package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// callSpent is what a call took, and whether a kept sum may pass it; passed tells that it may pass all up to it too.
const callSpent = ` p.create_time, p.call_id, p.first::int AS turns, p.input_tokens + p.output_tokens AS tokens, p.cost_micros AS micros,
		COALESCE((EXTRACT(EPOCH FROM p.end_time - p.create_time) * 1000000)::bigint, 0) AS us,
		p.create_time < clock_timestamp() - CASE WHEN p.class = '' THEN interval '1 hour' ELSE interval '1 minute' END AS passes`

// tailSums are the sums of the calls after a kept sum, and of those that it may pass.
const tailSums = ` COALESCE(sum(f.turns), 0)::bigint AS turns, COALESCE(sum(f.tokens), 0)::bigint AS tokens,
		COALESCE(sum(f.micros), 0)::bigint AS micros, COALESCE(sum(f.us), 0)::bigint AS us,
		count(*) FILTER (WHERE f.passed) AS calls, COALESCE(sum(f.turns) FILTER (WHERE f.passed), 0)::bigint AS passed_turns,
		COALESCE(sum(f.tokens) FILTER (WHERE f.passed), 0)::bigint AS passed_tokens,
		COALESCE(sum(f.micros) FILTER (WHERE f.passed), 0)::bigint AS passed_micros,
		COALESCE(sum(f.us) FILTER (WHERE f.passed), 0)::bigint AS passed_us, max(f.create_time) FILTER (WHERE f.passed) AS through_time,
		(array_agg(f.call_id ORDER BY f.create_time DESC, f.call_id DESC) FILTER (WHERE f.passed))[1] AS through_latest,
		(array_agg(f.call_id ORDER BY f.call_id DESC) FILTER (WHERE f.passed))[1] AS through_id`

const conversationSpent = `
SELECT c.spent_turns + s.turns AS turns, c.spent_tokens + s.tokens AS tokens, c.spent_micros + s.micros AS micros,
	c.spent_us + s.us AS us, s.calls, s.passed_turns, s.passed_tokens, s.passed_micros, s.passed_us, c.spent_through AS from_id,
	NULL::timestamptz AS from_time, s.through_id, s.through_time
FROM conversations c
CROSS JOIN LATERAL (SELECT` + tailSums + `
	FROM (SELECT t.*, bool_and(t.passes) OVER (ORDER BY t.call_id) AS passed
		FROM (SELECT` + callSpent + ` FROM provider_calls p
			WHERE p.conversation_key = c.conversation_key
				AND p.call_id > COALESCE(c.spent_through, '00000000-0000-0000-0000-000000000000')
			ORDER BY p.call_id LIMIT @reach) t) f) s
WHERE c.conversation_key = @key`

const passConversation = `
UPDATE conversations SET spent_turns = spent_turns + @turns, spent_tokens = spent_tokens + @tokens, spent_micros = spent_micros + @micros,
	spent_us = spent_us + @us, spent_through = @through_id
WHERE conversation_key = @key AND spent_through IS NOT DISTINCT FROM @from_id::uuid`

const tenantSpent = `
SELECT COALESCE(k.turns, 0) + s.turns AS turns, COALESCE(k.tokens, 0) + s.tokens AS tokens, COALESCE(k.micros, 0) + s.micros AS micros,
	COALESCE(k.us, 0) + s.us AS us, s.calls, s.passed_turns, s.passed_tokens, s.passed_micros, s.passed_us, k.through_id AS from_id,
	k.through_time AS from_time, s.through_latest AS through_id, s.through_time
FROM (SELECT @tenant::text AS tenant) n
LEFT JOIN tenant_spending k ON k.tenant = n.tenant
CROSS JOIN LATERAL (SELECT` + tailSums + `
	FROM (SELECT t.*, bool_and(t.passes) OVER (ORDER BY t.create_time, t.call_id) AS passed
		FROM (SELECT` + callSpent + ` FROM provider_calls p
			WHERE p.tenant = n.tenant AND (p.create_time, p.call_id) > (COALESCE(k.through_time, '-infinity'),
				COALESCE(k.through_id, '00000000-0000-0000-0000-000000000000'))
			ORDER BY p.create_time, p.call_id LIMIT @reach) t) f) s`

const passTenant = `
INSERT INTO tenant_spending AS k (tenant, turns, tokens, micros, us, through_time, through_id)
VALUES (@tenant, @turns, @tokens, @micros, @us, @through_time, @through_id)
ON CONFLICT (tenant) DO UPDATE SET turns = k.turns + excluded.turns, tokens = k.tokens + excluded.tokens, micros = k.micros + excluded.micros,
	us = k.us + excluded.us, through_time = excluded.through_time, through_id = excluded.through_id
WHERE k.through_time = @from_time::timestamptz AND k.through_id = @from_id::uuid`

type spentRow struct {
	Turns, Tokens, Micros, Us                         int64
	Calls                                             int64
	PassedTurns, PassedTokens, PassedMicros, PassedUs int64
	FromID, ThroughID                                 zeronull.UUID
	FromTime, ThroughTime                             *time.Time
}

func (r spentRow) spending() turns.Spending {
	return turns.Spending{Turns: r.Turns, Tokens: r.Tokens, CostMicros: r.Micros, Time: microseconds(r.Us)}
}

func (r spentRow) args() pgx.NamedArgs {
	return pgx.NamedArgs{"turns": r.PassedTurns, "tokens": r.PassedTokens, "micros": r.PassedMicros, "us": r.PassedUs,
		"from_id": r.FromID, "from_time": r.FromTime, "through_id": r.ThroughID, "through_time": r.ThroughTime}
}

// ConversationSpent implements turns.Spendings.
func (s *Store) ConversationSpent(ctx context.Context, key turns.ConversationKey) (turns.Spending, error) {
	args := pgx.NamedArgs{"key": zeronull.UUID(key), "reach": turns.SpendingReach}
	row, _, err := one(ctx, s.pool, conversationSpent, args, pgx.RowToStructByName[spentRow])
	if err != nil {
		return turns.Spending{}, mapRead("sum a conversation's calls", err)
	}
	if row.Calls >= turns.ConversationTail {
		args := row.args()
		delete(args, "from_time")
		delete(args, "through_time")
		args["key"] = zeronull.UUID(key)
		if _, err := exec(ctx, s.pool, passConversation, args); err != nil {
			return turns.Spending{}, mapWrite("keep a conversation's sum", err)
		}
	}
	return row.spending(), nil
}

// TenantSpent implements turns.Spendings.
func (s *Store) TenantSpent(ctx context.Context, tenant turns.Tenant) (turns.Spending, error) {
	args := pgx.NamedArgs{"tenant": string(tenant), "reach": turns.SpendingReach}
	row, _, err := one(ctx, s.pool, tenantSpent, args, pgx.RowToStructByName[spentRow])
	if err != nil {
		return turns.Spending{}, mapRead("sum a tenant's calls", err)
	}
	if row.Calls >= turns.TenantTail {
		args := row.args()
		args["tenant"] = string(tenant)
		if _, err := exec(ctx, s.pool, passTenant, args); err != nil {
			return turns.Spending{}, mapWrite("keep a tenant's sum", err)
		}
	}
	return row.spending(), nil
}

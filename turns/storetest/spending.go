package storetest

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func spending() []promise {
	return []promise{
		{"what a conversation and a tenant spent is the sum of their calls", theSumIsOfTheCalls},
		{"who has called nobody has spent nothing", nothingIsSpent},
		{"a kept sum moves on over old calls and the sum stays", aKeptSumMovesOn},
		{"a kept sum waits for an open call until that is old", aKeptSumWaitsForAnOpenCall},
	}
}

// spent demands both sums of a conversation that has its tenant for itself.
func (w *world) spent(c conversation, want turns.Spending) {
	w.t.Helper()
	of, err := w.Store.ConversationSpent(w.ctx, c.key)
	require.NoError(w.t, err)
	require.Zero(w.t, of.Time, "of the conversation")
	all, err := w.Store.TenantSpent(w.ctx, c.tenant)
	require.NoError(w.t, err)
	equal(w.t, of, all)
	equal(w.t, want, of)
}

// age moves the calls of a conversation, their ends as well, to the beginning of time, in both engines' own words.
func (w *world) age(c conversation) {
	w.t.Helper()
	for _, zero := range []string{"to_timestamp(0)", "0"} {
		if err := w.Exec(w.ctx, "UPDATE provider_calls SET create_time = "+zero+", end_time = CASE WHEN class <> '' THEN "+zero+
			" END WHERE conversation_key = "+w.ID(c.key)); err == nil {
			return
		}
	}
	w.t.Fatalf("no engine understands this")
}

// spend makes n turns, each of 10 tokens in, 5 out and 7 micros.
func (w *world) spend(c conversation, n int) {
	w.t.Helper()
	for range n {
		claim := w.next(c)
		claim.Call.ID = turns.CallID{UUID: uuid.Must(uuid.NewV7())}
		w.win(claim)
		e := completing(claim, 0, whole("a"))
		e.Call.Usage = turns.Usage{Input: 10, Output: 5, CostMicros: 7, Source: turns.SourceReported, Calls: 1}
		w.finish(e)
	}
}

func sumOf(n int64) turns.Spending {
	return turns.Spending{Turns: n, Tokens: 15 * n, CostMicros: 7 * n}
}

// alone is a conversation whose tenant has no other.
func alone() conversation { return conversationOf(turns.Tenant(uuid.NewString()), uuid.New()) }

func theSumIsOfTheCalls(t *testing.T, w *world) {
	c, other := alone(), conversationOf("another", uuid.New())
	w.spend(other, 1)
	w.spend(c, 3)
	w.age(c)
	w.spent(c, sumOf(3))
	claim := w.win(w.next(c))
	w.age(c)
	open := sumOf(3)
	open.Turns++
	w.spent(c, open)
	second := newCall(2)
	second.First = false
	results, err := w.Store.PermitCalls(w.ctx, []turns.CallPermit{{Fence: fenceOf(claim), Call: second, Turn: claim.Turn, MaxCalls: 5}})
	require.NoError(t, err)
	require.True(t, results[0].Granted)
	w.age(c)
	w.spent(c, open) // a further call is no further turn
	w.exec("UPDATE provider_calls SET end_time = (SELECT max(create_time) FROM workers w JOIN provider_calls p ON true WHERE p.conversation_key <> " +
		w.ID(c.key) + ") WHERE class <> ''")
	of, err := w.Store.ConversationSpent(w.ctx, c.key)
	require.NoError(t, err)
	require.Greater(t, of.Time, 3*24*time.Hour, "the time from each beginning to its end")
}

func nothingIsSpent(t *testing.T, w *world) { w.spent(alone(), turns.Spending{}) }

func aKeptSumMovesOn(t *testing.T, w *world) {
	c := alone()
	w.spend(c, turns.ConversationTail+4)
	w.age(c)
	w.spent(c, sumOf(turns.ConversationTail+4))
	require.EqualValues(t, turns.ConversationTail+4, w.count("SELECT spent_turns FROM conversations WHERE conversation_key = %s", c.key))
	w.spent(c, sumOf(turns.ConversationTail+4))
	w.spend(c, 2)
	of, err := w.Store.ConversationSpent(w.ctx, c.key)
	require.NoError(t, err)
	require.EqualValues(t, turns.ConversationTail+6, of.Turns)
	require.EqualValues(t, turns.ConversationTail+4, w.count("SELECT spent_turns FROM conversations WHERE conversation_key = %s", c.key))
	w.manyCalls(c, turns.TenantTail)
	w.age(c)
	for range 2 {
		all, err := w.Store.TenantSpent(w.ctx, c.tenant)
		require.NoError(t, err)
		require.EqualValues(t, turns.ConversationTail+6+turns.TenantTail, all.Turns)
	}
	require.EqualValues(t, turns.ConversationTail+6+turns.TenantTail, w.count("SELECT turns FROM tenant_spending"))
	w.spend(c, 1)
	w.manyCalls(c, turns.TenantTail)
	all, err := w.Store.TenantSpent(w.ctx, c.tenant)
	require.NoError(t, err)
	require.EqualValues(t, turns.ConversationTail+7+2*turns.TenantTail, all.Turns)
}

// manyCalls copies a call of a conversation under other ids.
func (w *world) manyCalls(c conversation, n int) {
	w.t.Helper()
	var ids string
	for i := range n {
		if i > 0 {
			ids += ", "
		}
		ids += "(" + w.ID(uuid.Must(uuid.NewV7())) + ")"
	}
	const same = `conversation_key, tenant, conversation_id, turn_id, generation, reply_id, epoch, number, first, layer, endpoint, provider,
		model, class, idempotency_key, request_bytes, input_tokens, output_tokens, cost_micros, create_time, end_time`
	w.exec("INSERT INTO provider_calls (call_id, " + same + ") SELECT n.column1, " + same + " FROM (VALUES " + ids + ") n CROSS JOIN (SELECT * FROM provider_calls WHERE conversation_key = " +
		w.ID(c.key) + " AND class <> '' LIMIT 1) p")
}

func aKeptSumWaitsForAnOpenCall(t *testing.T, w *world) {
	c := alone()
	w.spend(c, turns.ConversationTail)
	held := w.next(c)
	held.Call.ID = turns.CallID{UUID: uuid.Must(uuid.NewV7())}
	w.win(held)
	w.manyCalls(c, turns.ConversationTail)
	w.exec("UPDATE provider_calls SET create_time = (SELECT max(create_time) FROM provider_calls WHERE class <> '')")
	of, err := w.Store.ConversationSpent(w.ctx, c.key)
	require.NoError(t, err)
	require.EqualValues(t, 2*turns.ConversationTail+1, of.Turns)
	require.Zero(t, w.count("SELECT spent_turns FROM conversations WHERE conversation_key = %s", c.key), "all are younger than a minute")
	w.age(c)
	of, err = w.Store.ConversationSpent(w.ctx, c.key)
	require.NoError(t, err)
	require.EqualValues(t, 2*turns.ConversationTail+1, of.Turns)
	require.EqualValues(t, 2*turns.ConversationTail+1, w.count("SELECT spent_turns FROM conversations WHERE conversation_key = %s", c.key),
		"also one that is open, as it is old")
}

package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func ledgers() []promise {
	return []promise{
		{"a call is listed with what it was and what it took", aCallIsListed},
		{"calls are listed oldest first, a page at a time", callsAreListedByPages},
		{"calls are listed by conversation, turn, time, provider and model", callsAreFiltered},
		{"calls are summed, the first of their turns apart from the others", callsAreSummed},
		{"a tenant's calls are that tenant's alone", callsAreATenantsOwn},
	}
}

func (w *world) ledger(q turns.LedgerQuery) []turns.LedgerCall {
	w.t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	q.Filter.Tenant = "tenant"
	calls, err := w.Store.ListCalls(w.ctx, q)
	require.NoError(w.t, err)
	return calls
}

func aCallIsListed(t *testing.T, w *world) {
	c, claim := w.fresh()
	o := turns.CallOutcome{
		Key: c.key, ID: claim.Call.ID, Class: turns.ClassThrottled, Phase: turns.PhaseHeaders, HTTPStatus: 429, RequestID: "req",
		ResponseID: "resp", WasteCause: "retried", Extra: 2, Low: 4, High: 6,
		Usage: turns.Usage{Input: 7, CacheRead: 2, CacheWrite: 1, Output: 5, Reasoning: 3, Source: turns.SourceEstimated, Wasted: 12, CostMicros: 40, Calls: 1},
	}
	require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{o}))
	p := permitFor(claim, 2)
	p.Call.Layer = turns.LayerTakeover
	require.True(t, w.permit(p).Granted)
	calls := w.ledger(turns.LedgerQuery{})
	closed := turns.LedgerCall{
		ID: claim.Call.ID, Conversation: c.id, Turn: claim.Turn, Reply: claim.Reply.ID, Epoch: 1, Number: 1, First: true, Layer: turns.LayerFirst,
		Endpoint: "local", Provider: "anthropic", Model: "demo", Class: o.Class, Phase: o.Phase, HTTPStatus: 429, Key: "key",
		RequestID: "req", ResponseID: "resp", Usage: o.Usage, WasteCause: "retried", Extra: 2, Low: 4, High: 6,
	}
	open := turns.LedgerCall{
		ID: p.Call.ID, Conversation: c.id, Turn: claim.Turn, Reply: claim.Reply.ID, Epoch: 1, Number: 2, Layer: turns.LayerTakeover,
		Endpoint: "local", Provider: "anthropic", Model: "demo", Key: "key", Usage: turns.Usage{Calls: 1},
	}
	equal(t, []turns.LedgerCall{closed, open}, calls, cmpopts.IgnoreFields(turns.LedgerCall{}, "CreateTime", "EndTime"))
	require.False(t, calls[0].EndTime.Before(calls[0].CreateTime))
	require.True(t, calls[1].EndTime.IsZero())
}

func callsAreListedByPages(t *testing.T, w *world) {
	var want []turns.CallID
	for range 4 {
		_, claim := w.fresh()
		want = append(want, claim.Call.ID)
	}
	w.exec("UPDATE provider_calls SET create_time = (SELECT min(create_time) FROM provider_calls) WHERE call_id IN (%s, %s)", want[0].UUID, want[1].UUID)
	var got []turns.CallID
	q := turns.LedgerQuery{Limit: 1}
	for page := w.ledger(q); len(page) > 0; page = w.ledger(q) {
		require.Len(t, page, 1)
		got = append(got, page[0].ID)
		q.AfterTime, q.AfterID = page[0].CreateTime, page[0].ID
	}
	require.ElementsMatch(t, want, got)
	require.Equal(t, want[2:], got[2:])
}

func callsAreFiltered(t *testing.T, w *world) {
	c, first := w.fresh()
	w.finish(completing(first, 0))
	second := w.next(c)
	second.Call.Route = spareRoute
	w.win(second)
	third := w.first(newConversation())
	third.Call.Route.Model = "else"
	w.win(third)
	all := w.ledger(turns.LedgerQuery{})
	require.Len(t, all, 3)
	for name, f := range map[string]struct {
		filter turns.LedgerFilter
		want   []turns.CallID
	}{
		"conversation": {turns.LedgerFilter{Key: &c.key}, []turns.CallID{first.Call.ID, second.Call.ID}},
		"turn":         {turns.LedgerFilter{Turn: first.Turn}, []turns.CallID{first.Call.ID}},
		"both":         {turns.LedgerFilter{Key: &c.key, Turn: third.Turn}, nil},
		"provider":     {turns.LedgerFilter{Provider: "openai"}, []turns.CallID{second.Call.ID}},
		"model":        {turns.LedgerFilter{Model: "else"}, []turns.CallID{third.Call.ID}},
		"from":         {turns.LedgerFilter{From: all[1].CreateTime}, []turns.CallID{second.Call.ID, third.Call.ID}},
		"before":       {turns.LedgerFilter{Before: all[1].CreateTime}, []turns.CallID{first.Call.ID}},
		"between":      {turns.LedgerFilter{From: all[1].CreateTime, Before: all[2].CreateTime, Key: &c.key}, []turns.CallID{second.Call.ID}},
		"nowhere":      {turns.LedgerFilter{From: time.Now().Add(hour)}, nil},
	} {
		var got []turns.CallID
		for _, call := range w.ledger(turns.LedgerQuery{Filter: f.filter}) {
			got = append(got, call.ID)
		}
		require.Equal(t, f.want, got, name)
		f.filter.Tenant = "tenant"
		sums, err := w.Store.SumCalls(w.ctx, f.filter)
		require.NoError(t, err)
		require.EqualValues(t, len(f.want), sums.First+sums.Retry, name)
	}
}

func callsAreSummed(t *testing.T, w *world) {
	_, claim := w.fresh()
	closed := w.twoClosedAndOneOpen(claim)
	_, waste := w.fresh()
	e := abandoning(waste, 0, turns.ReasonShutdown)
	e.Call.Usage.Wasted, e.Call.WasteCause = 13, "shutdown"
	w.finish(e)
	sums, err := w.Store.SumCalls(w.ctx, turns.LedgerFilter{Tenant: "tenant"})
	require.NoError(t, err)
	require.EqualValues(t, []int64{2, 2}, []int64{sums.First, sums.Retry})
	all := sums.FirstUsage.Add(sums.RetryUsage)
	want := closed.Add(e.Call.Usage)
	want.Calls = 4
	equal(t, want, all)
	require.EqualValues(t, 13, sums.Wasted["shutdown"])
	require.Equal(t, want.Wasted, sums.Wasted["shutdown"]+sums.Wasted[""])
	none, err := w.Store.SumCalls(w.ctx, turns.LedgerFilter{Tenant: "nobody"})
	require.NoError(t, err)
	require.Zero(t, none)
}

func callsAreATenantsOwn(t *testing.T, w *world) {
	c, _ := w.fresh()
	for _, f := range []turns.LedgerFilter{{Tenant: "intruder"}, {Tenant: "intruder", Key: &c.key}} {
		calls, err := w.Store.ListCalls(w.ctx, turns.LedgerQuery{Filter: f, Limit: 10})
		require.NoError(t, err)
		require.Empty(t, calls)
		sums, err := w.Store.SumCalls(w.ctx, f)
		require.NoError(t, err)
		require.Zero(t, sums)
	}
	require.Empty(t, w.heldOf(turns.HeldQuery{Tenant: "intruder", Limit: 10}))
}

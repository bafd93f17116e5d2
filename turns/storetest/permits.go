package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func permits() []promise {
	return []promise{
		{"a permit adds a call row before its request is sent", aPermitAddsARow},
		{"a permit is refused once the budget is spent", aPermitIsRefusedPastTheBudget},
		{"a permit is refused once a stop was asked for", aPermitIsRefusedAfterAStop},
		{"a permit sent again is granted again and counts once", aPermitAgainCountsOnce},
		{"a permit's waiting counts against the budget", aPermitsWaitingCounts},
		{"permits of a batch are answered each", permitsAreAnsweredEach},
		{"a reply moves to the route and the request of its next call", aReplyMovesToItsNextCall},
		{"a reply does not move to a call that is put back after a later one", aReplyStaysWithItsNewestCall},
	}
}

// permitFor asks for the n-th call of a claimed reply.
func permitFor(c turns.Claim, n int) turns.CallPermit {
	return turns.CallPermit{Fence: fenceOf(c), Turn: c.Turn, MaxCalls: 3, Waited: time.Second,
		Call: newCall(n)}
}

func (w *world) permit(p turns.CallPermit) turns.PermitResult {
	w.t.Helper()
	results, err := w.Store.PermitCalls(w.ctx, []turns.CallPermit{p})
	require.NoError(w.t, err)
	require.Len(w.t, results, 1)
	return results[0]
}

func aPermitAddsARow(t *testing.T, w *world) {
	_, claim := w.fresh()
	p := permitFor(claim, 2)
	require.Equal(t, turns.PermitResult{Granted: true, Calls: 2}, w.permit(p))
	require.EqualValues(t, 1, w.count(`SELECT count(*) FROM provider_calls WHERE call_id = %s AND number = 2 AND NOT first
		AND end_time IS NULL AND provider = 'anthropic' AND endpoint = 'local' AND model = 'demo' AND generation = 1
		AND epoch = 1 AND tenant = 'tenant'`, p.Call.ID.UUID))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE reply_id = %s AND turn_id = %s AND number = 2",
		claim.Reply.ID.UUID, claim.Turn.UUID))
}

func aPermitIsRefusedPastTheBudget(t *testing.T, w *world) {
	c, claim := w.fresh()
	require.True(t, w.permit(permitFor(claim, 2)).Granted)
	require.Equal(t, 3, w.permit(permitFor(claim, 3)).Calls)
	w.unchanged(func() { require.False(t, w.permit(permitFor(claim, 4)).Granted) })
	require.Equal(t, 3, w.read(c, claim.Reply.ID).Calls)
	w.finish(abandoning(claim, 0, turns.ReasonProviderError))
	second := w.win(w.again(c, claim.Turn))
	w.unchanged(func() { require.False(t, w.permit(permitFor(second, 2)).Granted, "the budget holds over attempts") })
}

func aPermitIsRefusedAfterAStop(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.askToStop(claim.Reply.ID)
	w.unchanged(func() { require.False(t, w.permit(permitFor(claim, 2)).Granted) })
}

func aPermitAgainCountsOnce(t *testing.T, w *world) {
	_, claim := w.fresh()
	second, third := permitFor(claim, 2), permitFor(claim, 3)
	require.True(t, w.permit(second).Granted)
	third.MaxCalls = 3
	require.True(t, w.permit(third).Granted)
	w.unchanged(func() {
		require.Equal(t, turns.PermitResult{Granted: true, Calls: 3}, w.permit(third), "though the budget is spent by now")
		require.Equal(t, turns.PermitResult{Granted: true, Calls: 3}, w.permit(second))
	})
	w.askToStop(claim.Reply.ID)
	w.unchanged(func() { require.False(t, w.permit(third).Granted, "a stop was asked for since") })
}

func aPermitsWaitingCounts(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.permit(permitFor(claim, 2))
	w.permit(permitFor(claim, 3))
	require.Equal(t, 2*time.Second, w.read(c, claim.Reply.ID).Waited)
}

func aReplyMovesToItsNextCall(t *testing.T, w *world) {
	c, claim := w.fresh()
	_, err := w.Store.Checkpoint(w.ctx, []turns.Checkpoint{{Fence: fenceOf(claim), ResponseID: "resp"}})
	require.NoError(t, err)
	before := w.read(c, claim.Reply.ID)
	require.Equal(t, "resp", before.ResponseID)
	p := permitFor(claim, 2)
	p.Call.Route, p.Call.RequestHash, p.Call.BuilderVersion = spareRoute, []byte("spare"), 3
	require.True(t, w.permit(p).Granted)
	after := w.read(c, claim.Reply.ID)
	before.Endpoint, before.Provider, before.ProviderModel, before.ResponseID = "spare", "openai", "demo-2", ""
	before.RequestHash, before.BuilderVersion, before.Calls, before.Waited = []byte("spare"), 3, 2, p.Waited
	before.Age, before.LeaseLeft = after.Age, after.LeaseLeft
	equal(t, before, after)
	w.unchanged(func() { require.True(t, w.permit(p).Granted) })
}

func aReplyStaysWithItsNewestCall(t *testing.T, w *world) {
	c, claim := w.fresh()
	late, second := permitFor(claim, 3), permitFor(claim, 2)
	late.Call.Route = spareRoute
	require.True(t, w.permit(late).Granted)
	require.True(t, w.permit(second).Granted)
	require.Equal(t, "spare", w.read(c, claim.Reply.ID).Endpoint)
}

func permitsAreAnsweredEach(t *testing.T, w *world) {
	_, first := w.fresh()
	_, second := w.fresh()
	_, third := w.fresh()
	w.askToStop(second.Reply.ID)
	results, err := w.Store.PermitCalls(w.ctx, []turns.CallPermit{permitFor(first, 2), permitFor(second, 2), permitFor(third, 2)})
	require.NoError(t, err)
	require.Equal(t, []turns.PermitResult{{Granted: true, Calls: 2}, {}, {Granted: true, Calls: 2}}, results)
	require.EqualValues(t, 5, w.count("SELECT count(*) FROM provider_calls"))
}

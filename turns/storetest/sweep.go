package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func sweeps() []promise {
	return []promise{
		{"a reply of a living worker is not stale", aLivingReplyIsNotStale},
		{"a lease that ran out makes no reply stale before the burial", expiredIsNotStale},
		{"a reply of a dead worker is stale, without its log, with its open calls", aDeadWorkersReplyIsStale},
		{"a row that holds nonsense keeps no other from being found stale", nonsenseIsFoundStale},
		{"a stale reply's usage is that of its closed calls", aStaleRepliesUsageIsOfClosedCalls},
		{"a swept reply's usage is the sum over its ledger rows", aSweptReplysUsageIsItsLedgers},
		{"a reply of an unknown worker is stale", anUnknownWorkersReplyIsStale},
		{"a reply past its own deadline is stale whatever its owner", aLateReplyIsStale},
		{"stale replies are bounded, by limit and by conversation", staleRepliesAreBounded},
		{"a reply that has ended is not stale", anEndedReplyIsNotStale},
		{"a sweep ends the reply, folds its log, closes its calls and keeps its epoch", aSweepEndsTheReply},
		{"a sweep closes open calls that it was not told of", aSweepClosesAllCalls},
		{"a sweep of a reply whose owner lives is lost", aSweepOfALivingOwnerIsLost},
		{"a sweep past the deadline is won though the owner lives", aSweepPastTheDeadlineIsWon},
		{"a sweep loses to a checkpoint that landed meanwhile", aSweepLosesToACheckpoint},
		{"of two sweeps one is won", oneSweepIsWon},
		{"a worker is buried before its claims are swept", buriedBeforeSwept},
		{"the slot is free after a sweep", theSlotIsFreeAfterASweep},
	}
}

// sweeping ends a claim's reply as its worker's death does.
func sweeping(c turns.Claim, length uint32, pieces ...turns.Piece) turns.Sweeping {
	return turns.Sweeping{
		Fence: fenceOf(c), Verb: turns.VerbSweep, Status: turns.StatusAbandoned, Reason: turns.ReasonLeaseExpired,
		Content: pieces, Length: length,
		Usage: turns.Usage{Input: 25, Output: 3, Source: turns.SourceEstimated, Wasted: 28, Calls: 1},
		Calls: []turns.CallOutcome{{Key: c.Key, ID: c.Call.ID, Class: turns.ClassAmbiguous, Phase: turns.PhaseWritten,
			Usage: turns.Usage{Input: 25, Output: 3, Source: turns.SourceEstimated}, WasteCause: "lease_expired"}},
	}
}

// expiring ends a claim's reply because its own deadline passed.
func expiring(c turns.Claim, length uint32, pieces ...turns.Piece) turns.Sweeping {
	s := sweeping(c, length, pieces...)
	s.Verb, s.Reason = turns.VerbExpire, turns.ReasonDeadline
	return s
}

func (w *world) sweep(s turns.Sweeping) bool {
	w.t.Helper()
	won, err := w.Store.Sweep(w.ctx, s)
	require.NoError(w.t, err)
	return won
}

func (w *world) stale(q turns.StaleQuery) []turns.StaleReply {
	w.t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	replies, err := w.Store.StaleReplies(w.ctx, q)
	require.NoError(w.t, err)
	return replies
}

func aLivingReplyIsNotStale(t *testing.T, w *world) {
	w.fresh()
	require.Empty(t, w.stale(turns.StaleQuery{}))
}

func expiredIsNotStale(t *testing.T, w *world) {
	w.fresh()
	w.expireLease(w.worker)
	require.Empty(t, w.stale(turns.StaleQuery{}))
}

func aDeadWorkersReplyIsStale(t *testing.T, w *world) {
	c, claim := w.fresh()
	length := w.append(fenceOf(claim), 0, opening("ab"))
	w.append(fenceOf(claim), length, more("cd"))
	p := permitFor(claim, 2)
	w.permit(p)
	require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{*closing(c.key, claim.Call.ID, turns.ClassTransient)}))
	w.bury(w.worker)
	stale := w.stale(turns.StaleQuery{})
	require.Len(t, stale, 1)
	require.Equal(t, c.key, stale[0].Key)
	require.Equal(t, claim.Reply.ID, stale[0].Reply.ID)
	require.Equal(t, w.worker, stale[0].Reply.Owner)
	require.EqualValues(t, 1, stale[0].Reply.Epoch)
	require.EqualValues(t, 5, stale[0].Reply.Length)
	require.Nil(t, stale[0].Reply.Content)
	require.True(t, stale[0].OwnerDead)
	require.False(t, stale[0].DeadlinePassed)
	require.False(t, stale[0].CancelRequested)
	equal(t, []turns.OpenCall{openOf(p.Call)}, stale[0].OpenCalls, ageless)
	w.askToStop(claim.Reply.ID)
	require.True(t, w.stale(turns.StaleQuery{})[0].CancelRequested)
}

func nonsenseIsFoundStale(t *testing.T, w *world) {
	c, bad := w.fresh()
	_, good := w.fresh()
	w.append(fenceOf(bad), 0, opening("ab"))
	w.exec("UPDATE reply_chunks SET pieces = 'nonsense'")
	w.exec("UPDATE turns SET options = 'nonsense' WHERE id = %s", bad.Reply.ID.UUID)
	w.bury(w.worker)
	var found []turns.ReplyID
	for _, s := range w.stale(turns.StaleQuery{}) {
		found = append(found, s.Reply.ID)
	}
	require.ElementsMatch(t, []turns.ReplyID{bad.Reply.ID, good.Reply.ID}, found)
	_, err := w.Store.ReadReply(w.ctx, c.key, bad.Reply.ID)
	require.Error(t, err, "it fails where it is read by itself")
}

// twoClosedAndOneOpen gives a claimed reply a reported call, an estimated one, and one that is under way.
func (w *world) twoClosedAndOneOpen(claim turns.Claim) (closed turns.Usage) {
	w.t.Helper()
	second, third := permitFor(claim, 2), permitFor(claim, 3)
	require.True(w.t, w.permit(second).Granted)
	require.True(w.t, w.permit(third).Granted)
	reported := turns.Usage{Input: 9, CacheRead: 2, CacheWrite: 1, Output: 4, Reasoning: 3, Source: turns.SourceReported, Wasted: 13, CostMicros: 40}
	estimated := turns.Usage{Input: 20, Output: 5, Source: turns.SourceEstimated, Wasted: 25, CostMicros: 7}
	outcomes := []turns.CallOutcome{*closing(claim.Key, claim.Call.ID, turns.ClassTransient), *closing(claim.Key, second.Call.ID, turns.ClassThrottled)}
	outcomes[0].Usage, outcomes[1].Usage = estimated, reported
	require.NoError(w.t, w.Store.CloseCalls(w.ctx, outcomes))
	closed = estimated.Add(reported)
	closed.Calls = 2
	return closed
}

func aStaleRepliesUsageIsOfClosedCalls(t *testing.T, w *world) {
	_, claim := w.fresh()
	closed := w.twoClosedAndOneOpen(claim)
	_, idle := w.fresh()
	w.bury(w.worker)
	require.Equal(t, closed, w.stale(turns.StaleQuery{Key: &claim.Key})[0].Reply.Usage)
	require.Zero(t, w.stale(turns.StaleQuery{Key: &idle.Key})[0].Reply.Usage)
}

func aSweptReplysUsageIsItsLedgers(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.twoClosedAndOneOpen(claim)
	w.bury(w.worker)
	stale := w.stale(turns.StaleQuery{})[0]
	s := sweeping(claim, 0)
	s.Usage, s.Calls = stale.Reply.Usage, nil
	for _, call := range stale.OpenCalls {
		guess := turns.EstimateUsage(call.RequestBytes, 0)
		guess.Wasted = guess.Total()
		s.Usage = s.Usage.Add(guess)
		s.Calls = append(s.Calls, turns.CallOutcome{Key: c.key, ID: call.ID, Class: turns.ClassAmbiguous, Usage: guess})
	}
	require.True(t, w.sweep(s))
	sum := func(column string) int64 {
		return w.count("SELECT CAST(sum(" + column + ") AS bigint) FROM provider_calls")
	}
	equal(t, turns.Usage{Input: sum("input_tokens"), CacheRead: sum("cache_read_tokens"), CacheWrite: sum("cache_write_tokens"),
		Output: sum("output_tokens"), Reasoning: sum("reasoning_tokens"), Source: turns.SourceEstimated, Wasted: sum("wasted_tokens"),
		CostMicros: sum("cost_micros"), Calls: int32(w.count("SELECT count(*) FROM provider_calls"))}, w.read(c, claim.Reply.ID).Usage)
}

func anUnknownWorkersReplyIsStale(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.exec("DELETE FROM workers")
	stale := w.stale(turns.StaleQuery{})
	require.Len(t, stale, 1)
	require.True(t, stale[0].OwnerDead)
	equal(t, []turns.OpenCall{openOf(claim.Call)}, stale[0].OpenCalls, ageless)
	require.True(t, w.sweep(sweeping(claim, 0)))
}

func aLateReplyIsStale(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.passDeadline(claim.Reply.ID)
	stale := w.stale(turns.StaleQuery{})
	require.Len(t, stale, 1)
	require.True(t, stale[0].DeadlinePassed)
	require.False(t, stale[0].OwnerDead)
}

func staleRepliesAreBounded(t *testing.T, w *world) {
	var claims []turns.Claim
	for range 3 {
		_, claim := w.fresh()
		claims = append(claims, claim)
	}
	w.bury(w.worker)
	require.Len(t, w.stale(turns.StaleQuery{}), 3)
	require.Len(t, w.stale(turns.StaleQuery{Limit: 2}), 2)
	one := w.stale(turns.StaleQuery{Key: &claims[1].Key})
	require.Len(t, one, 1)
	require.Equal(t, claims[1].Reply.ID, one[0].Reply.ID)
	none := newConversation().key
	require.Empty(t, w.stale(turns.StaleQuery{Key: &none}))
}

func anEndedReplyIsNotStale(t *testing.T, w *world) {
	_, claim := w.fresh()
	_, held := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	w.hold(held.Reply.ID)
	w.bury(w.worker)
	require.Empty(t, w.stale(turns.StaleQuery{}))
}

func aSweepEndsTheReply(t *testing.T, w *world) {
	c, claim := w.fresh()
	length := w.append(fenceOf(claim), 0, opening("ab"))
	length = w.append(fenceOf(claim), length, more("cd"))
	w.bury(w.worker)
	s := sweeping(claim, length, opening("abcd"))
	require.True(t, w.sweep(s))
	r := w.read(c, claim.Reply.ID)
	require.Equal(t, turns.StatusAbandoned, r.Status)
	require.Equal(t, turns.ReasonLeaseExpired, r.Reason)
	require.EqualValues(t, 1, r.Epoch)
	require.Equal(t, w.worker, r.Owner)
	require.Equal(t, s.Usage, r.Usage)
	require.Equal(t, length, r.Length)
	sameLog(t, s.Content, r.Content)
	require.False(t, r.EndTime.IsZero())
	require.Zero(t, w.count("SELECT count(*) FROM reply_chunks"))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE class = 'ambiguous' AND waste_cause = 'lease_expired' AND input_tokens = 25 AND token_source = 'estimated'"))
	require.Empty(t, w.stale(turns.StaleQuery{}))
}

func aSweepClosesAllCalls(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.permit(permitFor(claim, 2))
	w.bury(w.worker)
	require.True(t, w.sweep(sweeping(claim, 0)))
	require.Zero(t, w.count("SELECT count(*) FROM provider_calls WHERE end_time IS NULL"))
}

func aSweepOfALivingOwnerIsLost(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.unchanged(func() { require.False(t, w.sweep(sweeping(claim, 0))) })
	w.expireLease(w.worker)
	w.unchanged(func() {
		require.False(t, w.sweep(sweeping(claim, 0)))
		require.False(t, w.sweep(expiring(claim, 0)))
	})
}

func aSweepPastTheDeadlineIsWon(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.passDeadline(claim.Reply.ID)
	require.True(t, w.sweep(expiring(claim, 0)))
	require.Equal(t, turns.ReasonDeadline, w.read(c, claim.Reply.ID).Reason)
}

func aSweepLosesToACheckpoint(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.append(fenceOf(claim), 0, opening("ab"))
	w.bury(w.worker)
	w.unchanged(func() { require.False(t, w.sweep(sweeping(claim, 0))) })
	require.True(t, w.sweep(sweeping(claim, 3, opening("ab"))))
}

func oneSweepIsWon(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.bury(w.worker)
	require.True(t, w.sweep(sweeping(claim, 0)))
	w.unchanged(func() { require.False(t, w.sweep(sweeping(claim, 0))) })
}

func buriedBeforeSwept(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.expireLease(w.worker)
	w.unchanged(func() { require.False(t, w.sweep(sweeping(claim, 0)), "not dead yet") })
	w.bury(w.worker)
	require.True(t, w.sweep(sweeping(claim, 0)))
}

func theSlotIsFreeAfterASweep(_ *testing.T, w *world) {
	c, claim := w.fresh()
	w.bury(w.worker)
	w.sweep(sweeping(claim, 0))
	w.worker = w.register()
	w.win(w.again(c, claim.Turn))
}

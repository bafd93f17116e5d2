package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func restores() []promise {
	return []promise{
		{"a restored reply is over and settled, with what its last owner had of it", aRestoredReplyIsOver},
		{"a restored reply's calls are in the ledger, closed", aRestoredReplyHasItsCalls},
		{"a restored reply moves the version and takes a place, and not the leaf", aRestoredReplyTakesAPlace},
		{"a restored reply leaves the reply in the slot as it is", aRestoredReplyLeavesTheSlot},
		{"a restored reply's generation was started", aRestoredGenerationWasStarted},
		{"a restored reply of an earlier generation leaves its turn's", anEarlierGenerationStays},
		{"a restored reply that was whole can be chosen", aRestoredWholeReplyIsChosen},
		{"a restored reply is not settled and does not come back again", aRestoredReplyStays},
		{"the same reply again is not restored again", theSameReplyIsRestoredOnce},
		{"a reply is not restored over a claim that landed meanwhile", aRestoreLosesToAClaim},
		{"a reply is not restored at a place or attempt that is taken", aRestoreTakesNothing},
		{"a call that the ledger has already stays as it is", aStoredCallStays},
		{"a reply that is not abandoned is a typed error, and is not restored", onlyAbandonedIsRestored},
		{"calls without their outcomes are an error, and nothing is restored", callsNeedOutcomes},
		{"a reply of a turn that is not stored is not restored", func(_ *testing.T, w *world) {
			w.notRestored(func(_ turns.Claim, l *turns.LostReply) { l.Turn = newTurnID() })
		}},
		{"a reply to a reply is not restored", func(_ *testing.T, w *world) {
			w.notRestored(func(c turns.Claim, l *turns.LostReply) { l.Turn = turns.TurnID(c.Reply.ID) })
		}},
		{"a reply is not restored at an older version", func(_ *testing.T, w *world) {
			w.notRestored(func(_ turns.Claim, l *turns.LostReply) { l.ExpectVersion-- })
		}},
		{"a reply is not restored at a newer version", func(_ *testing.T, w *world) {
			w.notRestored(func(_ turns.Claim, l *turns.LostReply) { l.ExpectVersion++ })
		}},
		{"a reply is not restored in a deleted conversation", func(_ *testing.T, w *world) {
			w.notRestored(func(c turns.Claim, _ *turns.LostReply) { w.markDeleted(c.Key) })
		}},
		{"a reply is not restored in a conversation that is gone", func(_ *testing.T, w *world) {
			w.notRestored(func(_ turns.Claim, l *turns.LostReply) { l.Key = newConversation().key })
		}},
	}
}

// restoring is a reply that a failover lost, of a turn that has the claim's reply by now.
func (w *world) restoring(c turns.Claim) turns.LostReply {
	w.t.Helper()
	st := w.lookup(conversationOf(c.Tenant, c.Conversation.UUID), c.Turn)
	calls := []turns.NewCall{newCall(1), newCall(2)}
	calls[0].Key, calls[0].RequestBytes, calls[1].Key, calls[1].RequestBytes = "one", 40, "two", 50
	l := turns.LostReply{
		Key: c.Key, Tenant: c.Tenant, Conversation: c.Conversation, ExpectVersion: st.Version, NextSeq: st.NextSeq, Turn: c.Turn,
		Reply: turns.NewReply{ID: newReplyID(), Attempt: st.Newest.Attempt + 1, Epoch: 2, Generation: st.Turn.Generation,
			Owner: w.worker, Route: testRoute, Calls: 2, Waited: time.Second, RequestHash: []byte("lost"), BuilderVersion: 1,
			WindowStart: c.Turn.Row(), Options: turns.Options{System: "s"}, DefaultsVersion: 3, Deadline: hour, DisconnectGrace: time.Minute,
			OnAmbiguous: turns.OnAmbiguousRetry, Traceparent: claimTrace},
		Ending:   abandoning(c, 0, turns.ReasonLeaseExpired, whole("lost")),
		Calls:    calls,
		Outcomes: []turns.CallOutcome{*closing(c.Key, calls[0].ID, turns.ClassTransient), *closing(c.Key, calls[1].ID, turns.ClassOK)},
	}
	l.Ending.ResponseID, l.Ending.ProviderCode, l.Ending.RetryAfter = "resp", "code", 3*time.Second
	l.Ending.StopReason = turns.StopEndTurn
	l.Outcomes[1].RequestID, l.Outcomes[1].ResponseID = "req", "resp"
	return l
}

func (w *world) restore(l turns.LostReply) bool {
	w.t.Helper()
	won, err := w.Store.Restore(w.ctx, l)
	require.NoError(w.t, err)
	return won
}

// notRestored spoils a restoration, or the rows that it is about, and asserts that it is then lost.
func (w *world) notRestored(spoil func(turns.Claim, *turns.LostReply)) {
	w.t.Helper()
	_, claim := w.fresh()
	l := w.restoring(claim)
	spoil(claim, &l)
	w.unchanged(func() {
		w.t.Helper()
		require.False(w.t, w.restore(l))
	})
}

func aRestoredReplyIsOver(t *testing.T, w *world) {
	c, claim := w.fresh()
	l := w.restoring(claim)
	require.True(t, w.restore(l))
	got := w.read(c, l.Reply.ID)
	equal(t, turns.Reply{
		Conversation: c.id, ID: l.Reply.ID, Turn: claim.Turn, Status: turns.StatusAbandoned, Reason: turns.ReasonLeaseExpired,
		Attempt: 2, Generation: 1, Epoch: 2, Owner: w.worker, Options: l.Reply.Options, DefaultsVersion: 3, Settled: true,
		DisconnectGrace: time.Minute, Content: []turns.Piece{whole("lost")}, Length: 6, StopReason: turns.StopEndTurn,
		Endpoint: "local", Provider: "anthropic", Model: "demo", Usage: l.Ending.Usage, Calls: 2, Waited: time.Second,
		RequestHash: []byte("lost"), WindowStart: claim.Turn.Row(), ProviderCode: "code", RetryAfter: 3 * time.Second,
		BuilderVersion: 1, ProviderModel: "demo-1", ResponseID: "resp", OnAmbiguous: turns.OnAmbiguousRetry, Traceparent: claimTrace,
	}, got, cmpopts.IgnoreFields(turns.Reply{}, "CreateTime", "EndTime", "Age", "LeaseLeft"))
	require.False(t, got.EndTime.IsZero())
	require.False(t, got.CreateTime.IsZero())
	require.EqualValues(t, 1, w.count(`SELECT count(*) FROM turns WHERE id = %s AND provider_response_id = 'resp' AND seq = 3
		AND provider_model = 'demo-1' AND builder_version = 1 AND deadline_at IS NULL`, l.Reply.ID.UUID))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM turns WHERE id = %s AND parent_id = responds_to", l.Reply.ID.UUID))
}

func aRestoredReplyHasItsCalls(t *testing.T, w *world) {
	_, claim := w.fresh()
	l := w.restoring(claim)
	l.Outcomes[0].ID = newCallID() // it is the place that counts
	require.True(t, w.restore(l))
	for i, where := range []string{
		"number = 1 AND first AND class = 'transient' AND idempotency_key = 'one' AND request_bytes = 40",
		"number = 2 AND NOT first AND class = 'ok' AND idempotency_key = 'two' AND request_bytes = 50 AND provider_request_id = 'req' AND provider_response_id = 'resp'",
	} {
		require.EqualValues(t, 1, w.count(`SELECT count(*) FROM provider_calls WHERE call_id = %s AND end_time IS NOT NULL
			AND phase = 'done' AND http_status = 200 AND input_tokens = 9 AND output_tokens = 4 AND token_source = 'reported'
			AND epoch = 2 AND generation = 1 AND tenant = 'tenant' AND endpoint = 'local' AND provider = 'anthropic'
			AND model = 'demo' AND `+where, l.Calls[i].ID.UUID), where)
	}
	require.EqualValues(t, 2, w.count("SELECT count(*) FROM provider_calls WHERE reply_id = %s AND turn_id = %s", l.Reply.ID.UUID, claim.Turn.UUID))
	require.EqualValues(t, 3, w.count("SELECT count(*) FROM provider_calls"))
	none := w.restoring(claim)
	none.Calls, none.Outcomes = nil, nil
	require.True(t, w.restore(none))
	require.EqualValues(t, 3, w.count("SELECT count(*) FROM provider_calls"))
}

func aRestoredReplyTakesAPlace(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	before, l := w.next(c), w.restoring(claim)
	require.True(t, w.restore(l))
	st := w.lookup(c, claim.Turn)
	require.Equal(t, []any{l.ExpectVersion + 1, l.NextSeq + 1, claim.Reply.ID.Row()}, []any{st.Version, st.NextSeq, st.Leaf})
	require.Equal(t, l.Reply.ID, st.Newest.ID)
	w.lose(before)
	require.Equal(t, l.NextSeq+1, w.win(w.next(c)).NextSeq)
}

func aRestoredReplyLeavesTheSlot(t *testing.T, w *world) {
	c, claim := w.fresh()
	running := w.read(c, claim.Reply.ID)
	require.True(t, w.restore(w.restoring(claim)))
	equal(t, running, w.read(c, claim.Reply.ID), cmpopts.IgnoreFields(turns.Reply{}, "Age", "LeaseLeft"))
	require.Equal(t, claim.Reply.ID, w.lookup(c, claim.Turn).Live.ID)
	w.finish(completing(claim, 0, whole("a")))
	require.True(t, w.restore(w.restoring(claim)), "a complete one too")
	require.Equal(t, claim.Reply.ID, w.lookup(c, claim.Turn).Live.ID)
	replies, err := w.Store.RepliesTo(w.ctx, c.key, claim.Turn, 10)
	require.NoError(t, err)
	require.Len(t, replies, 3)
}

func aRestoredGenerationWasStarted(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	l := w.restoring(claim)
	l.Reply.Generation = 2
	require.True(t, w.restore(l))
	require.EqualValues(t, 2, w.lookup(c, claim.Turn).Turn.Generation)
	require.EqualValues(t, 3, w.win(w.regenerate(c, claim.Turn)).Reply.Generation)
}

func anEarlierGenerationStays(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	newer := w.win(w.regenerate(c, claim.Turn))
	l := w.restoring(claim)
	l.Reply.Generation = 1
	require.True(t, w.restore(l))
	require.EqualValues(t, 2, w.lookup(c, claim.Turn).Turn.Generation)
	require.EqualValues(t, 1, w.read(c, l.Reply.ID).Generation)
	require.Equal(t, newer.Reply.ID, w.lookup(c, claim.Turn).Live.ID)
}

func aRestoredWholeReplyIsChosen(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	l := w.restoring(claim)
	l.Ending.Reason = turns.ReasonSuperseded
	require.True(t, w.restore(l))
	require.True(t, w.choose(w.selection(c, claim.Turn, l.Reply.ID)))
	require.Equal(t, turns.StatusComplete, w.read(c, l.Reply.ID).Status)
}

func aRestoredReplyStays(t *testing.T, w *world) {
	_, claim := w.fresh()
	l := w.restoring(claim)
	require.True(t, w.restore(l))
	w.finish(abandoning(claim, 0, turns.ReasonShutdown))
	f := turns.Fence{Key: l.Key, Reply: l.Reply.ID, Epoch: 2, Owner: w.worker}
	r, e := reviving(claim, w.worker), settling(claim, 6, whole("lost"))
	r.Fence, r.Pieces, r.Length, e.Fence = f, []turns.Piece{whole("lost")}, 6, f
	w.unchanged(func() {
		require.False(t, w.revive(r))
		require.False(t, w.settle(e))
	})
}

func theSameReplyIsRestoredOnce(t *testing.T, w *world) {
	_, claim := w.fresh()
	l := w.restoring(claim)
	require.True(t, w.restore(l))
	w.unchanged(func() { require.False(t, w.restore(l)) })
	again := w.restoring(claim)
	again.Reply.ID = l.Reply.ID
	w.unchanged(func() { require.False(t, w.restore(again), "at the version of now") })
	again.Reply.ID, again.Reply.Attempt = claim.Reply.ID, again.Reply.Attempt+1
	w.unchanged(func() { require.False(t, w.restore(again), "nor over a reply in flight") })
}

func aRestoreLosesToAClaim(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	l := w.restoring(claim)
	w.win(w.next(c))
	w.unchanged(func() { require.False(t, w.restore(l)) })
	st := w.lookup(c, claim.Turn)
	l.ExpectVersion, l.NextSeq = st.Version, st.NextSeq
	require.True(t, w.restore(l))
}

func aRestoreTakesNothing(t *testing.T, w *world) {
	_, claim := w.fresh()
	l := w.restoring(claim)
	l.Reply.Attempt = 1
	w.unchanged(func() { require.False(t, w.restore(l), "attempt") })
	l = w.restoring(claim)
	l.NextSeq--
	w.unchanged(func() { require.False(t, w.restore(l), "place") })
}

func aStoredCallStays(t *testing.T, w *world) {
	_, claim := w.fresh()
	l := w.restoring(claim)
	l.Calls[0].ID = claim.Call.ID
	require.True(t, w.restore(l))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE call_id = %s AND reply_id = %s AND end_time IS NULL",
		claim.Call.ID.UUID, claim.Reply.ID.UUID))
	require.EqualValues(t, 2, w.count("SELECT count(*) FROM provider_calls"))
}

func onlyAbandonedIsRestored(t *testing.T, w *world) {
	_, claim := w.fresh()
	for _, s := range []step{
		{to: turns.StatusComplete}, {to: turns.StatusInFlight}, {to: turns.StatusHeld}, {to: turns.StatusAbandoned},
		{to: turns.StatusComplete, reason: turns.ReasonLeaseExpired}, {reason: turns.ReasonLeaseExpired},
	} {
		l := w.restoring(claim)
		l.Ending.Status, l.Ending.Reason = s.to, s.reason
		w.unchanged(func() {
			won, err := w.Store.Restore(w.ctx, l)
			require.False(t, won)
			require.Equal(t, turns.CodeWrongState, turns.CodeOf(err), s.to)
		})
	}
}

func callsNeedOutcomes(t *testing.T, w *world) {
	_, claim := w.fresh()
	for _, spoil := range []func(*turns.LostReply){
		func(l *turns.LostReply) { l.Outcomes = l.Outcomes[:1] },
		func(l *turns.LostReply) { l.Calls = nil },
		func(l *turns.LostReply) { l.Outcomes[1].Class = "" },
	} {
		l := w.restoring(claim)
		spoil(&l)
		w.unchanged(func() {
			won, err := w.Store.Restore(w.ctx, l)
			require.False(t, won)
			require.Error(t, err)
		})
	}
}

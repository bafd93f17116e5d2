package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func claims() []promise {
	return []promise{
		{"a first claim stores conversation, user turn, reply and call", aFirstClaimStoresAll},
		{"a claimed reply carries what its claim said", aReplyCarriesItsClaim},
		{"a reply begins under its claim's epoch, the first if it says none", aReplyBeginsUnderItsEpoch},
		{"a claim of a conversation that was made before uses it", aClaimUsesAMadeConversation},
		{"two claims that would make the same conversation: one is won", oneMakesTheConversation},
		{"a claim is lost when the version moved", aClaimIsLostWhenTheVersionMoved},
		{"a claim of a conversation that does not exist at a version is lost", aVersionOfNothingIsLost},
		{"a claim is lost when the conversation is deleted", aDeletedConversationTakesNoClaim},
		{"a second live claim is refused whatever the version says", aSecondLiveClaimIsRefused},
		{"a second running reply in a conversation is refused", aSecondRunningReplyIsRefused},
		{"the same claim again is not won, and the row is still mine", theSameClaimAgainIsNotWon},
		{"a dead worker can't claim", aDeadWorkerCantClaim},
		{"an unknown worker can't claim", anUnknownWorkerCantClaim},
		{"a further attempt after an abandoned one keeps the turn", aFurtherAttemptKeepsTheTurn},
		{"an attempt's number is taken once", anAttemptIsTakenOnce},
		{"seq is unique and dense, in the order of claims", seqIsDense},
		{"a parent of another conversation is not found, and nothing is written", aForeignParentIsNotFound},
		{"a further attempt of a turn that is not stored is not found", anUnknownTurnIsNotFound},
		{"items of a batch are answered each, in their order", aBatchIsAnsweredEach},
		{"an item of a batch that breaks a reference is not found, and undoes no other", aBrokenItemUndoesNoOther},
		{"a batch of nothing does nothing", nothingDoesNothing},
	}
}

func aFirstClaimStoresAll(t *testing.T, w *world) {
	c := newConversation()
	claim := w.first(c)
	result := w.claim(claim)
	require.True(t, result.Won)
	require.False(t, result.CreateTime.IsZero())
	for table, rows := range map[string]int64{"conversations": 1, "turns": 2, "provider_calls": 1, "reply_chunks": 0} {
		require.EqualValues(t, rows, w.count("SELECT count(*) FROM "+table), table)
	}
	st := w.lookup(c, claim.Turn)
	require.True(t, st.Exists)
	require.EqualValues(t, 1, st.Version)
	require.EqualValues(t, 3, st.NextSeq)
	require.Equal(t, claim.Reply.ID.Row(), st.Leaf)
	require.Equal(t, claim.Reply.ID, st.Running.ID)
	require.Equal(t, result.CreateTime, st.Running.CreateTime)
}

// claimTrace and takeoverTrace are span contexts, which a store keeps and does not read.
const (
	claimTrace    = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	takeoverTrace = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
)

func aReplyCarriesItsClaim(t *testing.T, w *world) {
	c := newConversation()
	claim := w.first(c)
	claim.Reply.Generation, claim.Reply.Calls, claim.Reply.Waited = 3, 2, 1500*time.Millisecond
	claim.Reply.Traceparent = claimTrace
	result := w.claim(claim)
	equal(t, turns.Reply{
		Conversation: c.id, ID: claim.Reply.ID, Turn: claim.Turn, Status: turns.StatusInFlight, Attempt: 1, Generation: 3,
		Epoch: 1, Owner: w.worker, Endpoint: "local", Provider: "anthropic", Model: "demo", Calls: 2,
		Waited: 1500 * time.Millisecond, RequestHash: []byte("request"), WindowStart: claim.Turn.Row(),
		BuilderVersion: 1, ProviderModel: "demo-1", OnAmbiguous: turns.OnAmbiguousHold, OnPartial: turns.OnPartialContinue,
		Traceparent: claimTrace, CreateTime: result.CreateTime,
	}, w.read(c, claim.Reply.ID), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(turns.Reply{}, "LeaseLeft", "Age"))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM turns WHERE status = 'in_flight' AND provider_model = 'demo-1' AND builder_version = 1"))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE number = 1 AND first AND idempotency_key = 'key' AND request_bytes = 100 AND end_time IS NULL AND class = '' AND provider = 'anthropic' AND model = 'demo' AND generation = 3"))
}

func aReplyBeginsUnderItsEpoch(t *testing.T, w *world) {
	for said, epoch := range map[int64]int64{0: 1, 1: 1, 3: 3} {
		c := newConversation()
		claim := w.first(c)
		claim.Reply.Epoch = said
		w.win(claim)
		require.Equal(t, epoch, w.read(c, claim.Reply.ID).Epoch)
		require.EqualValues(t, epoch, w.count("SELECT epoch FROM provider_calls WHERE call_id = %s", claim.Call.ID.UUID))
		f := fenceOf(claim)
		f.Epoch = epoch
		require.True(t, w.checkpoint(f, 0, opening("a")).Held)
		f.Epoch++
		require.False(t, w.checkpoint(f, 2, more("b")).Held)
	}
}

func aClaimUsesAMadeConversation(t *testing.T, w *world) {
	c := newConversation()
	_, created, err := w.Store.CreateConversation(w.ctx, turns.Conversation{Key: c.key, ID: c.id, Tenant: c.tenant, Subject: "subject"})
	require.NoError(t, err)
	require.True(t, created)
	w.lose(w.first(c))
	claim := w.win(w.next(c))
	require.Equal(t, claim.Reply.ID.Row(), w.lookup(c, claim.Turn).Leaf)
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM conversations"))
}

func oneMakesTheConversation(t *testing.T, w *world) {
	c, _ := w.fresh()
	w.lose(w.first(c))
}

func aClaimIsLostWhenTheVersionMoved(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	stale := w.next(c)
	w.finish(completing(w.win(w.next(c)), 0, whole("b")))
	w.lose(stale)
	early := w.next(c)
	early.ExpectVersion++
	w.lose(early)
}

func aVersionOfNothingIsLost(_ *testing.T, w *world) {
	claim := w.first(newConversation())
	claim.ExpectVersion = 1
	w.lose(claim)
}

func aDeletedConversationTakesNoClaim(_ *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	w.markDeleted(c.key)
	w.lose(w.next(c))
	w.lose(w.first(c))
}

func aSecondLiveClaimIsRefused(_ *testing.T, w *world) {
	c, claim := w.fresh()
	w.lose(w.again(c, claim.Turn))
	w.finish(completing(claim, 0, whole("a")))
	w.lose(w.again(c, claim.Turn))
	_, held := w.fresh()
	w.hold(held.Reply.ID)
	w.lose(w.again(conversationOf(held.Tenant, held.Conversation.UUID), held.Turn))
}

func aSecondRunningReplyIsRefused(_ *testing.T, w *world) {
	c, _ := w.fresh()
	w.lose(w.next(c))
}

func theSameClaimAgainIsNotWon(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.lose(claim)
	require.Equal(t, w.worker, w.read(c, claim.Reply.ID).Owner)
	w.finish(abandoning(claim, 0, turns.ReasonShutdown))
	second := w.win(w.again(c, claim.Turn))
	w.lose(second)
	w.lose(claim)
}

func aDeadWorkerCantClaim(t *testing.T, w *world) {
	w.bury(w.worker)
	w.lose(w.first(newConversation()))
	w.worker = w.register()
	require.True(t, w.claim(w.first(newConversation())).Won)
}

func anUnknownWorkerCantClaim(_ *testing.T, w *world) {
	claim := w.first(newConversation())
	claim.Reply.Owner = turns.WorkerID{UUID: uuid.New()}
	w.lose(claim)
}

func aFurtherAttemptKeepsTheTurn(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(abandoning(claim, 0, turns.ReasonShutdown))
	second := w.again(c, claim.Turn)
	second.Reply.Generation = 2
	w.win(second)
	st := w.lookup(c, claim.Turn)
	require.EqualValues(t, 2, st.Version)
	require.EqualValues(t, 4, st.NextSeq)
	require.EqualValues(t, 2, st.Turn.Generation, "the newest generation of its replies")
	require.Equal(t, second.Reply.ID, st.Live.ID)
	require.EqualValues(t, 2, st.Live.Attempt)
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM turns WHERE role = 'user'"))
}

func anAttemptIsTakenOnce(_ *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(abandoning(claim, 0, turns.ReasonShutdown))
	second := w.again(c, claim.Turn)
	second.Reply.Attempt = 1
	w.lose(second)
}

func seqIsDense(t *testing.T, w *world) {
	c, claim := w.fresh()
	for i := range 5 {
		w.finish(abandoning(claim, 0, turns.ReasonShutdown))
		if i%2 == 0 {
			claim = w.win(w.again(c, claim.Turn))
		} else {
			claim = w.win(w.next(c))
		}
	}
	rows, err := w.Query(w.ctx, "SELECT seq FROM turns ORDER BY seq")
	require.NoError(t, err)
	for i, row := range rows {
		require.EqualValues(t, i+1, row[0])
	}
	require.EqualValues(t, len(rows)+1, w.lookup(c, claim.Turn).NextSeq)
}

func aForeignParentIsNotFound(t *testing.T, w *world) {
	_, other := w.fresh()
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	for _, foreign := range []turns.Claim{w.first(newConversation()), w.next(c)} {
		foreign.NewTurn.Parent = other.Turn.Row()
		w.failsNotFound(foreign)
		foreign.NewTurn.Parent = turns.RowID{UUID: uuid.New()}
		w.failsNotFound(foreign)
	}
	require.True(t, w.claim(w.next(c)).Won, "the store goes on after a failed commit")
}

func (w *world) failsNotFound(claims ...turns.Claim) {
	w.t.Helper()
	w.unchanged(func() {
		_, err := w.Store.Claim(w.ctx, claims)
		require.Error(w.t, err)
		require.Equal(w.t, turns.CodeNotFound, turns.CodeOf(err))
		require.NotErrorIs(w.t, err, turns.ErrUnknownOutcome)
	})
}

func anUnknownTurnIsNotFound(_ *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	w.failsNotFound(w.again(c, newTurnID()))
}

func aBatchIsAnsweredEach(t *testing.T, w *world) {
	taken, _ := w.fresh()
	batch := []turns.Claim{w.first(newConversation()), w.first(taken), w.first(newConversation()), w.first(newConversation())}
	batch[2].Reply.Owner = turns.WorkerID{UUID: uuid.New()}
	results, err := w.Store.Claim(w.ctx, batch)
	require.NoError(t, err)
	require.Len(t, results, 4)
	for i, won := range []bool{true, false, false, true} {
		require.Equal(t, won, results[i].Won, i)
		require.Equal(t, won, !results[i].CreateTime.IsZero(), i)
	}
	require.EqualValues(t, 6, w.count("SELECT count(*) FROM turns"))
}

func aBrokenItemUndoesNoOther(t *testing.T, w *world) {
	broken := w.first(newConversation())
	broken.NewTurn.Parent = turns.RowID{UUID: uuid.New()}
	w.failsNotFound(broken)
	results, err := w.Store.Claim(w.ctx, []turns.Claim{w.first(newConversation()), broken, w.first(newConversation())})
	notFound(t, err)
	require.Len(t, results, 3)
	for i, won := range []bool{true, false, true} {
		require.Equal(t, won, results[i].Won, i)
	}
	require.EqualValues(t, 2, w.count("SELECT count(*) FROM conversations"))
	require.EqualValues(t, 4, w.count("SELECT count(*) FROM turns"))
}

func nothingDoesNothing(t *testing.T, w *world) {
	w.unchanged(func() {
		claimed, err := w.Store.Claim(w.ctx, nil)
		require.NoError(t, err)
		require.Empty(t, claimed)
		permitted, err := w.Store.PermitCalls(w.ctx, nil)
		require.NoError(t, err)
		require.Empty(t, permitted)
		require.NoError(t, w.Store.CloseCalls(w.ctx, nil))
		held, err := w.Store.Checkpoint(w.ctx, nil)
		require.NoError(t, err)
		require.Empty(t, held)
		ended, err := w.Store.End(w.ctx, nil)
		require.NoError(t, err)
		require.Empty(t, ended)
		views, err := w.Store.ReadLogs(w.ctx, nil)
		require.NoError(t, err)
		require.Empty(t, views)
		shown, err := w.Store.Entries(w.ctx, newConversation().key, nil)
		require.NoError(t, err)
		require.Empty(t, shown)
	})
}

package storetest

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// Each condition under which a reply that was ended from outside may come back, broken by itself, must bar it.
func returns() []promise {
	return []promise{
		{"a return under another reply's id changes nothing", func(_ *testing.T, w *world) {
			w.foreclosed(func(_ turns.Claim, f *turns.Fence) { f.Reply = newReplyID() })
		}},
		{"a return under another conversation's key changes nothing", func(_ *testing.T, w *world) {
			w.foreclosed(func(_ turns.Claim, f *turns.Fence) { f.Key = newConversation().key })
		}},
		{"a return under an older epoch changes nothing", func(_ *testing.T, w *world) {
			w.foreclosed(func(_ turns.Claim, f *turns.Fence) { f.Epoch = 0 })
		}},
		{"a return under a newer epoch changes nothing", func(_ *testing.T, w *world) {
			w.foreclosed(func(_ turns.Claim, f *turns.Fence) { f.Epoch = 2 })
		}},
		{"a return by another owner changes nothing", func(_ *testing.T, w *world) {
			w.foreclosed(func(_ turns.Claim, f *turns.Fence) { f.Owner = w.worker })
		}},
		{"a return of a reply that was settled changes nothing", func(t *testing.T, w *world) {
			w.foreclosed(func(c turns.Claim, _ *turns.Fence) { require.True(t, w.settle(settling(c, 3, opening("ab")))) })
		}},
		{"a reply of a generation that was asked to stop does not come back, but settles", func(_ *testing.T, w *world) {
			w.barred(func(c conversation, claim turns.Claim) { w.stop(c, claim.Turn) })
		}},
		{"a reply of an earlier generation does not come back, but settles", func(_ *testing.T, w *world) {
			w.barred(func(c conversation, claim turns.Claim) {
				w.finish(abandoning(w.win(w.regenerate(c, claim.Turn)), 0, turns.ReasonProviderError))
			})
		}},
		{"a reply does not come back once a later turn was started, but settles", func(_ *testing.T, w *world) {
			w.barred(func(c conversation, _ turns.Claim) { w.finish(completing(w.win(w.next(c)), 0, whole("b"))) })
		}},
		{"a reply does not come back into a slot with a complete reply, but settles", func(_ *testing.T, w *world) {
			w.barred(func(c conversation, claim turns.Claim) {
				w.finish(completing(w.win(w.again(c, claim.Turn)), 0, whole("b")))
			})
		}},
		{"a reply does not come back into a slot with a held reply, but settles", func(_ *testing.T, w *world) {
			w.barred(func(c conversation, claim turns.Claim) { w.hold(w.win(w.again(c, claim.Turn)).Reply.ID) })
		}},
		{"a reply does not come back into a slot with a reply in flight, but settles", func(_ *testing.T, w *world) {
			w.barred(func(c conversation, claim turns.Claim) { w.win(w.again(c, claim.Turn)) })
		}},
		{"a reply does not come back into a deleted conversation", func(t *testing.T, w *world) {
			c, claim := w.lost()
			w.markDeleted(c.key)
			w.unchanged(func() {
				require.False(t, w.revive(reviving(claim, w.worker)))
				require.False(t, w.salvage(salvaging(claim)))
			})
		}},
		{"a reply that comes back after another attempt of its turn failed is the leaf again", theLeafComesBack},
		{"a leaf that was put below another turn stays there", aLeafElsewhereStays},
		{"what comes back must extend what is stored", aReturnExtends},
	}
}

// sweepAway stores "ab" of a claim's reply, which is 3 long, and ends it as its worker's death does. Another worker is the
// world's from then on.
func (w *world) sweepAway(claim turns.Claim) {
	w.t.Helper()
	length := w.append(fenceOf(claim), 0, opening("ab"))
	w.bury(claim.Reply.Owner)
	require.True(w.t, w.sweep(sweeping(claim, length, opening("ab"))))
	w.worker = w.register()
}

// lost is a conversation whose first reply was swept away.
func (w *world) lost() (conversation, turns.Claim) {
	w.t.Helper()
	c, claim := w.fresh()
	w.sweepAway(claim)
	return c, claim
}

// reviving brings a reply that was swept away back with one more byte.
func reviving(c turns.Claim, owner turns.WorkerID) turns.Revival {
	return turns.Revival{Fence: fenceOf(c), Owner: owner, Pieces: []turns.Piece{opening("abc")}, Length: 4, Deadline: hour, Call: c.Call.ID}
}

// salvaging completes a reply that was swept away.
func salvaging(c turns.Claim) turns.Ending {
	e := completing(c, 3, whole("abc"))
	e.Verb = turns.VerbSalvage
	return e
}

// settling is what the last owner of a claim knows of a reply of which stored bytes are stored.
func settling(c turns.Claim, stored uint32, pieces ...turns.Piece) turns.Ending {
	e := abandoning(c, stored, turns.ReasonLeaseExpired, pieces...)
	e.Verb = turns.VerbSettle
	return e
}

func (w *world) revive(r turns.Revival) bool {
	w.t.Helper()
	won, err := w.Store.Revive(w.ctx, r)
	require.NoError(w.t, err)
	return won
}

func (w *world) salvage(e turns.Ending) bool {
	w.t.Helper()
	won, err := w.Store.Salvage(w.ctx, e)
	require.NoError(w.t, err)
	return won
}

func (w *world) settle(e turns.Ending) bool {
	w.t.Helper()
	won, err := w.Store.Settle(w.ctx, e)
	require.NoError(w.t, err)
	return won
}

// foreclosed spoils the fence of a lost reply, or its row, and asserts that its owner can do nothing with it any more.
func (w *world) foreclosed(spoil func(turns.Claim, *turns.Fence)) {
	w.t.Helper()
	_, claim := w.lost()
	f := fenceOf(claim)
	spoil(claim, &f)
	r, salvage, settle := reviving(claim, w.worker), salvaging(claim), settling(claim, 3, opening("abc"))
	r.Fence, salvage.Fence, settle.Fence = f, f, f
	w.unchanged(func() {
		w.t.Helper()
		require.False(w.t, w.revive(r), "revive")
		require.False(w.t, w.salvage(salvage), "salvage")
		require.False(w.t, w.settle(settle), "settle")
	})
}

// barred lets something happen after a reply was lost, and asserts that it can't come back, but that its owner can still
// settle it.
func (w *world) barred(meanwhile func(conversation, turns.Claim)) {
	w.t.Helper()
	c, claim := w.lost()
	meanwhile(c, claim)
	w.unchanged(func() {
		w.t.Helper()
		require.False(w.t, w.revive(reviving(claim, w.worker)), "revive")
		require.False(w.t, w.salvage(salvaging(claim)), "salvage")
	})
	require.True(w.t, w.settle(settling(claim, 3, opening("abc"))), "settle")
	require.Equal(w.t, turns.ReasonLeaseExpired, w.read(c, claim.Reply.ID).Reason)
}

// The stored log is "ab" in block 0, still open.
func aReturnExtends(t *testing.T, w *world) {
	_, claim := w.lost()
	for _, pieces := range [][]turns.Piece{
		nil,
		{opening("a")},
		{whole("a")},
		{opening("ac")},
		{opening("xbc")},
		{{Kind: turns.KindThinking, Starts: true, Text: "abc"}},
	} {
		r, salvage, settle := reviving(claim, w.worker), salvaging(claim), settling(claim, 3, pieces...)
		r.Pieces, r.Length = pieces, lengthOf(pieces)
		salvage.Content, salvage.Length = pieces, lengthOf(pieces)
		w.unchanged(func() {
			require.False(t, w.revive(r), "revive %v", pieces)
			require.False(t, w.salvage(salvage), "salvage %v", pieces)
			require.False(t, w.settle(settle), "settle %v", pieces)
		})
	}
}

// eachReturn runs an act for a revival and for a salvage of the reply that it prepares.
func (w *world) eachReturn(act func(comeBack func(turns.Claim))) {
	act(func(c turns.Claim) { require.True(w.t, w.revive(reviving(c, w.worker)), "revive") })
	act(func(c turns.Claim) { require.True(w.t, w.salvage(salvaging(c)), "salvage") })
}

func theLeafComesBack(t *testing.T, w *world) {
	w.eachReturn(func(comeBack func(turns.Claim)) {
		c, lost := w.lost()
		failed := w.win(w.again(c, lost.Turn))
		w.finish(abandoning(failed, 0, turns.ReasonProviderError))
		require.Equal(t, failed.Reply.ID.Row(), w.lookup(c, lost.Turn).Leaf)
		comeBack(lost)
		require.Equal(t, lost.Reply.ID.Row(), w.lookup(c, lost.Turn).Leaf)
	})
}

func aLeafElsewhereStays(t *testing.T, w *world) {
	w.eachReturn(func(comeBack func(turns.Claim)) {
		c, first := w.answered()
		second := w.win(w.next(c))
		w.sweepAway(second)
		elsewhere := w.win(w.regenerate(c, first.Turn))
		w.finish(completing(elsewhere, 0, whole("a")))
		comeBack(second)
		require.Equal(t, elsewhere.Reply.ID.Row(), w.lookup(c, second.Turn).Leaf)
	})
}

func revivals() []promise {
	return []promise{
		{"a revived reply is in flight under the next epoch and its new owner", aRevivedReplyRuns},
		{"a revived reply has its whole log again, and goes on from its end", aRevivedReplyGoesOn},
		{"a reply of which nothing is stored or known yet is revived", anEmptyReplyIsRevived},
		{"the call of a revived reply is open again, and closed once", aRevivedCallIsOpen},
		{"a revival opens no call of another reply", aRevivalOpensItsOwnCall},
		{"a revived reply has a deadline of its own", aRevivedReplyHasADeadline},
		{"a revival moves the conversation's version", aRevivalMovesTheVersion},
		{"a worker that is dead or unknown revives nothing", aDeadWorkerRevivesNothing},
		{"a reply is not revived while another of its conversation runs", aBusyConversationTakesNoRevival},
		{"the same revival again is not won", theSameRevivalIsNotWon},
		{"a revived reply that is lost again is revived again", aReplyIsRevivedTwice},
		{"the owner before a revival writes nothing more", theOwnerBeforeIsFenced},
		{"of a revival and a further attempt at once, one is won", aRevivalOrAnAttempt},
	}
}

// taken is the fence of a reply after its revival.
func taken(r turns.Revival) turns.Fence {
	f := r.Fence
	f.Epoch, f.Owner = f.Epoch+1, r.Owner
	return f
}

func aRevivedReplyRuns(t *testing.T, w *world) {
	c, claim := w.lost()
	before := w.read(c, claim.Reply.ID)
	require.True(t, w.revive(reviving(claim, w.worker)))
	after := w.read(c, claim.Reply.ID)
	require.Positive(t, after.LeaseLeft)
	before.Status, before.Reason, before.Epoch, before.Owner = turns.StatusInFlight, "", 2, w.worker
	before.Content, before.Length = []turns.Piece{opening("abc")}, 4
	before.Usage, before.EndTime, before.Age, before.LeaseLeft = turns.Usage{}, time.Time{}, after.Age, after.LeaseLeft
	equal(t, before, after)
	require.Equal(t, claim.Reply.ID, w.lookup(c, claim.Turn).Running.ID)
}

func aRevivedReplyGoesOn(t *testing.T, w *world) {
	c, claim := w.lost()
	r := reviving(claim, w.worker)
	require.True(t, w.revive(r))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM reply_chunks WHERE start_offset = 0 AND end_offset = 4"))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM turns WHERE id = %s AND content = ''", claim.Reply.ID.UUID))
	w.append(taken(r), 4, more("d"))
	sameLog(t, []turns.Piece{opening("abcd")}, w.read(c, claim.Reply.ID).Content)
	e := completing(claim, 5, whole("abcd"))
	e.Fence = taken(r)
	w.finish(e)
	require.True(t, w.read(c, claim.Reply.ID).Settled)
}

func anEmptyReplyIsRevived(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.bury(w.worker)
	require.True(t, w.sweep(sweeping(claim, 0)))
	r := reviving(claim, w.register())
	r.Pieces, r.Length = nil, 0
	require.True(t, w.revive(r))
	require.Zero(t, w.count("SELECT count(*) FROM reply_chunks"))
	require.Empty(t, w.read(c, claim.Reply.ID).Content)
	w.append(taken(r), 0, opening("a"))
}

func aRevivedCallIsOpen(t *testing.T, w *world) {
	_, claim := w.fresh()
	_, other := w.fresh()
	first := permitFor(claim, 2)
	w.permit(first)
	w.append(fenceOf(claim), 0, opening("ab"))
	w.bury(w.worker)
	s := sweeping(claim, 3, opening("ab"))
	s.Calls[0].Usage.Wasted, s.Calls[0].Usage.CostMicros, s.Calls[0].HTTPStatus = 28, 7, 200
	require.True(t, w.sweep(s))
	require.True(t, w.sweep(sweeping(other, 0)))
	r := reviving(claim, w.register())
	require.True(t, w.revive(r))
	open := func() int64 {
		return w.count(`SELECT count(*) FROM provider_calls WHERE call_id = %s AND class = '' AND phase = '' AND end_time IS NULL
			AND input_tokens = 0 AND output_tokens = 0 AND token_source = '' AND wasted_tokens = 0 AND cost_micros = 0
			AND waste_cause = ''`, claim.Call.ID.UUID)
	}
	require.EqualValues(t, 1, open())
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE end_time IS NULL"), "the others stay closed")
	e := completing(claim, 4, whole("abc"))
	e.Fence = taken(r)
	w.finish(e)
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE call_id = %s AND class = 'ok' AND output_tokens = 4", claim.Call.ID.UUID))
}

func aRevivalOpensItsOwnCall(t *testing.T, w *world) {
	c, claim := w.lost()
	failed := w.win(w.again(c, claim.Turn))
	w.finish(abandoning(failed, 0, turns.ReasonProviderError))
	r := reviving(claim, w.worker)
	r.Call = failed.Call.ID
	_, err := w.Store.Revive(w.ctx, r)
	require.NoError(t, err)
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE call_id = %s AND end_time IS NOT NULL", failed.Call.ID.UUID))
}

func aRevivedReplyHasADeadline(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.passDeadline(claim.Reply.ID)
	require.True(t, w.sweep(expiring(claim, 0)))
	require.True(t, w.revive(reviving(claim, w.worker)))
	require.Empty(t, w.stale(turns.StaleQuery{}))
	require.Equal(t, turns.StatusInFlight, w.read(c, claim.Reply.ID).Status)
	_, late := w.lost()
	r := reviving(late, w.worker)
	r.Deadline = -time.Second
	require.True(t, w.revive(r))
	stale := w.stale(turns.StaleQuery{Key: &late.Key})
	require.Len(t, stale, 1)
	require.True(t, stale[0].DeadlinePassed)
}

func aRevivalMovesTheVersion(t *testing.T, w *world) {
	c, claim := w.lost()
	before := w.next(c)
	r := reviving(claim, w.worker)
	require.True(t, w.revive(r))
	e := completing(claim, 4, whole("abc"))
	e.Fence = taken(r)
	w.finish(e)
	w.lose(before)
	st := w.lookup(c, claim.Turn)
	require.Equal(t, before.ExpectVersion+1, st.Version)
	require.Equal(t, claim.Reply.ID.Row(), st.Leaf)
	w.win(w.next(c))
}

func aDeadWorkerRevivesNothing(t *testing.T, w *world) {
	_, claim := w.lost()
	w.unchanged(func() {
		require.False(t, w.revive(reviving(claim, claim.Reply.Owner)))
		require.False(t, w.revive(reviving(claim, turns.WorkerID{UUID: uuid.New()})))
	})
	require.True(t, w.revive(reviving(claim, w.worker)))
}

func aBusyConversationTakesNoRevival(t *testing.T, w *world) {
	c, first := w.answered()
	second := w.win(w.next(c))
	w.sweepAway(second)
	w.win(w.regenerate(c, first.Turn))
	w.unchanged(func() { require.False(t, w.revive(reviving(second, w.worker))) })
}

func theSameRevivalIsNotWon(t *testing.T, w *world) {
	_, claim := w.lost()
	r := reviving(claim, w.worker)
	require.True(t, w.revive(r))
	w.unchanged(func() { require.False(t, w.revive(r)) })
}

func aReplyIsRevivedTwice(t *testing.T, w *world) {
	c, claim := w.lost()
	r := reviving(claim, w.worker)
	require.True(t, w.revive(r))
	w.bury(w.worker)
	s := sweeping(claim, 4, opening("abc"))
	s.Fence = taken(r)
	require.True(t, w.sweep(s))
	w.unchanged(func() { require.False(t, w.revive(r)) })
	r.Fence, r.Owner = taken(r), w.register()
	require.True(t, w.revive(r))
	require.EqualValues(t, 3, w.read(c, claim.Reply.ID).Epoch)
}

func theOwnerBeforeIsFenced(t *testing.T, w *world) {
	_, claim := w.lost()
	require.True(t, w.revive(reviving(claim, w.worker)))
	w.unchanged(func() {
		require.Zero(t, w.checkpoint(fenceOf(claim), 4, more("d")))
		require.Zero(t, w.end(completing(claim, 4, whole("abc"))))
		require.False(t, w.sweep(sweeping(claim, 4, opening("abc"))))
		require.False(t, w.salvage(salvaging(claim)))
		require.False(t, w.settle(settling(claim, 4, opening("abc"))))
	})
}

func aRevivalOrAnAttempt(t *testing.T, w *world) {
	for range 10 {
		c, lost := w.lost()
		r, again := reviving(lost, w.worker), w.again(c, lost.Turn)
		var revived, claimed bool
		atOnce(2, func(i int) {
			if i == 0 {
				won, err := w.Store.Revive(w.ctx, r)
				revived = err == nil && won
			} else {
				results, err := w.Store.Claim(w.ctx, []turns.Claim{again})
				claimed = err == nil && results[0].Won
			}
		})
		require.NotEqual(t, revived, claimed)
		require.Equal(t, revived, w.lookup(c, lost.Turn).Live.ID == lost.Reply.ID)
	}
}

package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func stops() []promise {
	return []promise{
		{"a stop of an earlier generation changes nothing", aStopOfAnEarlierGenerationChangesNothing},
		{"a stop of an attempt that was abandoned before is seen with it", aStopIsSeenWithTheAttempt},
		{"a stop is told to the owner at its next checkpoint", aStopIsTold},
		{"a stop refuses further calls", aStopRefusesCalls},
		{"a stop asks nothing of another turn's reply", aStopIsOfOneTurn},
		{"a stop of a turn that has its answer changes nothing", aStopOfAnAnswerChangesNothing},
		{"a stop returns the live reply, though it is not the newest", aStopReturnsTheLiveReply},
		{"a held reply is abandoned as cancelled at once", aHeldReplyIsCancelledAtOnce},
		{"a stop of a held reply closes its calls by a guess and adds them to its usage", aStopClosesHeldCalls},
		{"a stop of a held reply beside a newer one marks and returns the held one alone", aStopIsOfTheHeldReply},
		{"a stop of a turn that is not stored is not found", aStopOfNothingIsNotFound},
		{"a stop asked for again is no error and changes nothing", aStopAgainChangesNothing},
		{"a reply that was held after its stop is cancelled by the next", aStopAgainEndsWhatIsHeld},
		{"a claim of a generation that was asked to stop is lost", aStoppedGenerationIsNotClaimed},
		{"a stop before a sweep binds the attempt that would follow", aStopOutlivesItsReply},
		{"a claim that was computed before a stop is lost", aStopMovesTheVersion},
		{"the generation after a stopped one is claimed and runs", theNextGenerationRuns},
		{"a sweep by cancel is won against a living owner once a stop was asked for", aCancelNeedsAStop},
		{"a sweep by another verb needs more than a stop", aStopAloneIsNoSweep},
		{"stopped replies of living owners are stale where that is asked for", stoppedRepliesAreStale},
	}
}

// stop asks for a stop of a turn.
func (w *world) stop(c conversation, turn turns.TurnID) turns.Reply {
	w.t.Helper()
	r, err := w.Store.RequestStop(w.ctx, c.key, turn, 0, turns.TurnID{})
	require.NoError(w.t, err)
	return r
}

// cancelling ends a claim's reply because a stop was asked for.
func cancelling(c turns.Claim, length uint32, pieces ...turns.Piece) turns.Sweeping {
	s := sweeping(c, length, pieces...)
	s.Verb, s.Reason = turns.VerbCancel, turns.ReasonCancelled
	return s
}

func aStopIsSeenWithTheAttempt(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(abandoning(claim, 0, turns.ReasonProviderError))
	again := w.win(w.again(c, claim.Turn))
	w.finish(abandoning(again, 0, turns.ReasonProviderError))
	r := w.stop(c, claim.Turn)
	require.Equal(t, []any{again.Reply.ID, turns.StatusAbandoned, turns.ReasonProviderError, true},
		[]any{r.ID, r.Status, r.Reason, r.CancelRequested})
	require.True(t, w.read(c, again.Reply.ID).CancelRequested)
	w.unchanged(func() { w.stop(c, claim.Turn) })
}

func aStopIsTold(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.append(fenceOf(claim), 0, opening("a"))
	require.False(t, w.read(c, claim.Reply.ID).CancelRequested)
	r := w.stop(c, claim.Turn)
	require.Equal(t, claim.Reply.ID, r.ID)
	require.Equal(t, turns.StatusInFlight, r.Status)
	require.True(t, r.CancelRequested)
	require.Nil(t, r.Content)
	require.EqualValues(t, 1, w.lookup(c, claim.Turn).CancelledGeneration)
	want := turns.CheckpointResult{Held: true, CancelRequested: true}
	require.Equal(t, want, w.checkpoint(fenceOf(claim), 2))
	require.Equal(t, want, w.checkpoint(fenceOf(claim), 2, more("b")))
	require.True(t, w.read(c, claim.Reply.ID).CancelRequested)
	w.finish(abandoning(claim, 3, turns.ReasonCancelled, opening("ab")))
}

func aStopRefusesCalls(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.stop(c, claim.Turn)
	w.unchanged(func() { require.False(t, w.permit(permitFor(claim, 2)).Granted) })
}

func aStopIsOfOneTurn(t *testing.T, w *world) {
	c, first := w.fresh()
	w.finish(abandoning(first, 0, turns.ReasonShutdown))
	second := w.win(w.next(c))
	require.Equal(t, first.Reply.ID, w.stop(c, first.Turn).ID)
	require.False(t, w.read(c, second.Reply.ID).CancelRequested)
	require.Zero(t, w.lookup(c, second.Turn).CancelledGeneration)
}

func aStopOfAnAnswerChangesNothing(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	w.unchanged(func() {
		r := w.stop(c, claim.Turn)
		require.Equal(t, turns.StatusComplete, r.Status)
		require.Equal(t, claim.Reply.ID, r.ID)
	})
}

func aStopReturnsTheLiveReply(t *testing.T, w *world) {
	c, first, _ := w.twoReplies()
	require.True(t, w.choose(w.selection(c, first.Turn, first.Reply.ID)))
	w.unchanged(func() { require.Equal(t, first.Reply.ID, w.stop(c, first.Turn).ID) })
}

func aHeldReplyIsCancelledAtOnce(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.bury(w.worker)
	s := sweeping(claim, 0)
	s.Status, s.Reason = turns.StatusHeld, ""
	require.True(t, w.sweep(s))
	w.worker = w.register()
	r := w.stop(c, claim.Turn)
	require.Equal(t, []any{claim.Reply.ID, turns.StatusAbandoned, turns.ReasonCancelled}, []any{r.ID, r.Status, r.Reason})
	require.False(t, r.EndTime.IsZero())
	require.False(t, r.Settled, "its last owner may still have more of it")
	w.lose(w.again(c, claim.Turn))
	require.True(t, w.settle(settling(claim, 0, opening("a"))))
}

func aStopOfNothingIsNotFound(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.unchanged(func() {
		for _, miss := range []func() (turns.Reply, error){
			func() (turns.Reply, error) { return w.Store.RequestStop(w.ctx, c.key, newTurnID(), 0, turns.TurnID{}) },
			func() (turns.Reply, error) {
				return w.Store.RequestStop(w.ctx, newConversation().key, claim.Turn, 0, turns.TurnID{})
			},
			func() (turns.Reply, error) {
				return w.Store.RequestStop(w.ctx, c.key, turns.TurnID(claim.Reply.ID), 0, turns.TurnID{})
			},
		} {
			r, err := miss()
			notFound(t, err)
			require.Zero(t, r)
		}
	})
}

func aStopAgainChangesNothing(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.stop(c, claim.Turn)
	w.unchanged(func() { require.True(t, w.stop(c, claim.Turn).CancelRequested) })
	w.finish(abandoning(claim, 0, turns.ReasonCancelled, opening("a")))
	w.unchanged(func() { require.Equal(t, claim.Reply.ID, w.stop(c, claim.Turn).ID) })
}

func aStopClosesHeldCalls(t *testing.T, w *world) {
	c, claim := w.fresh()
	require.True(t, w.permit(permitFor(claim, 2)).Granted)
	e := holding(claim, 0, opening("ab"))
	e.Usage = turns.Usage{Input: 5, Output: 1, Source: turns.SourceReported, Calls: 1}
	e.Call = closing(c.key, claim.Call.ID, turns.ClassTransient)
	w.finish(e)
	r := w.stop(c, claim.Turn)
	require.Equal(t, []any{turns.StatusAbandoned, turns.ReasonCancelled}, []any{r.Status, r.Reason})
	require.Equal(t, turns.Usage{Input: 34, Output: 1, Source: turns.SourceEstimated, Wasted: 29, Calls: 2}, r.Usage)
	require.EqualValues(t, 1, w.count(`SELECT count(*) FROM provider_calls WHERE class = 'ambiguous' AND input_tokens = 29
		AND wasted_tokens = 29 AND end_time IS NOT NULL`))
	require.Zero(t, w.count("SELECT count(*) FROM provider_calls WHERE end_time IS NULL"))
	w.due()
	require.Empty(t, w.lookups(10))
	w.unchanged(func() { w.stop(c, claim.Turn) })
}

func aStopIsOfTheHeldReply(t *testing.T, w *world) {
	c, claim := w.held()
	l := w.restoring(claim)
	require.True(t, w.restore(l))
	r := w.stop(c, claim.Turn)
	require.Equal(t, []any{claim.Reply.ID, turns.ReasonCancelled}, []any{r.ID, r.Reason})
	require.False(t, w.read(c, l.Reply.ID).CancelRequested)
}

func aStopAgainEndsWhatIsHeld(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.stop(c, claim.Turn)
	w.hold(claim.Reply.ID)
	require.Equal(t, turns.ReasonCancelled, w.stop(c, claim.Turn).Reason)
}

func aStoppedGenerationIsNotClaimed(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(abandoning(claim, 0, turns.ReasonShutdown))
	r := w.stop(c, claim.Turn)
	require.Equal(t, turns.ReasonShutdown, r.Reason, "what is over stays as it ended")
	w.lose(w.again(c, claim.Turn))
}

func aStopOutlivesItsReply(_ *testing.T, w *world) {
	c, claim := w.fresh()
	w.stop(c, claim.Turn)
	w.sweepAway(claim)
	w.lose(w.again(c, claim.Turn))
}

func aStopMovesTheVersion(_ *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(abandoning(claim, 0, turns.ReasonShutdown))
	before := w.next(c)
	w.stop(c, claim.Turn)
	w.lose(before)
	w.win(w.next(c))
}

func theNextGenerationRuns(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.stop(c, claim.Turn)
	w.finish(abandoning(claim, 0, turns.ReasonCancelled))
	second := w.win(w.regenerate(c, claim.Turn))
	require.EqualValues(t, 1, w.lookup(c, claim.Turn).CancelledGeneration)
	require.Equal(t, turns.CheckpointResult{Held: true}, w.checkpoint(fenceOf(second), 0))
	require.True(t, w.permit(permitFor(second, 2)).Granted)
	w.stop(c, claim.Turn)
	require.EqualValues(t, 2, w.lookup(c, claim.Turn).CancelledGeneration)
}

func aCancelNeedsAStop(t *testing.T, w *world) {
	c, claim := w.fresh()
	length := w.append(fenceOf(claim), 0, opening("a"))
	w.unchanged(func() { require.False(t, w.sweep(cancelling(claim, length, opening("a")))) })
	w.stop(c, claim.Turn)
	w.unchanged(func() { require.False(t, w.sweep(cancelling(claim, 0)), "a checkpoint landed meanwhile") })
	require.True(t, w.sweep(cancelling(claim, length, opening("a"))))
	r := w.read(c, claim.Reply.ID)
	require.Equal(t, turns.ReasonCancelled, r.Reason)
	require.False(t, r.Settled, "the owner may still settle")
	require.True(t, w.settle(settling(claim, length, opening("ab"))))
}

func aStopAloneIsNoSweep(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.stop(c, claim.Turn)
	w.unchanged(func() {
		require.False(t, w.sweep(sweeping(claim, 0)))
		require.False(t, w.sweep(expiring(claim, 0)))
	})
}

func stoppedRepliesAreStale(t *testing.T, w *world) {
	c, claim := w.fresh()
	other, _ := w.fresh()
	require.Empty(t, w.stale(turns.StaleQuery{Stopped: true}))
	w.stop(c, claim.Turn)
	require.Empty(t, w.stale(turns.StaleQuery{}))
	require.Empty(t, w.stale(turns.StaleQuery{Key: &c.key}))
	require.Empty(t, w.stale(turns.StaleQuery{Key: &other.key, Stopped: true}))
	for _, q := range []turns.StaleQuery{{Stopped: true}, {Key: &c.key, Stopped: true}} {
		stale := w.stale(q)
		require.Len(t, stale, 1)
		require.Equal(t, claim.Reply.ID, stale[0].Reply.ID)
		require.Equal(t, []bool{true, false, false}, []bool{stale[0].CancelRequested, stale[0].OwnerDead, stale[0].DeadlinePassed})
	}
}

func aStopOfAnEarlierGenerationChangesNothing(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	second := w.win(w.regenerate(c, claim.Turn))
	w.unchanged(func() {
		reply, err := w.Store.RequestStop(w.ctx, c.key, claim.Turn, 1, turns.TurnID{})
		require.NoError(t, err)
		require.Equal(t, second.Reply.ID, reply.ID)
	})
	_, err := w.Store.RequestStop(w.ctx, c.key, claim.Turn, 2, turns.TurnID{})
	require.NoError(t, err)
	require.True(t, w.read(c, second.Reply.ID).CancelRequested)
}

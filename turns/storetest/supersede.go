package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func supersedes() []promise {
	return []promise{
		{"a regenerate puts a reply of the next generation in the place of the complete one", aRegenerateReplaces},
		{"a superseded reply keeps its content, usage and end", aSupersededReplyKeepsAll},
		{"a claim is lost when what it supersedes is no longer complete", onlyACompleteReplyIsSuperseded},
		{"a claim is lost when what it supersedes answers another turn", onlyItsOwnTurnIsSuperseded},
		{"a regenerate at another version is lost, and the complete reply stays", aLateRegenerateIsLost},
		{"a regenerate by a dead worker is lost, and the complete reply stays", aDeadWorkersRegenerateIsLost},
		{"a regenerate in a busy conversation is lost, and the complete reply stays", aBusyRegenerateIsLost},
		{"the same regenerate again is not won", theSameRegenerateIsNotWon},
		{"a regenerate of what was abandoned supersedes nothing", aRegenerateOfAnAbandonedReply},
		{"a further attempt of a generation moves neither it nor the slot", anAttemptKeepsTheGeneration},
		{"a lost regenerate in a batch undoes nothing of the others", aLostRegenerateUndoesOnlyItself},
		{"options that a generation changed are kept with its reply", optionsAreKept},
		{"of many regenerates of one reply at once, one is won", oneOfManyRegenerates},
	}
}

// slotVersion is how often a turn's live reply was regenerated or chosen.
func (w *world) slotVersion(turn turns.TurnID) int64 {
	w.t.Helper()
	return w.count("SELECT slot_version FROM turns WHERE id = %s", turn.UUID)
}

// answered is a conversation of one turn with a complete reply.
func (w *world) answered() (conversation, turns.Claim) {
	w.t.Helper()
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("first")))
	return c, claim
}

// twoReplies is a turn whose complete reply was regenerated: the first is superseded and the second complete.
func (w *world) twoReplies() (c conversation, first, second turns.Claim) {
	w.t.Helper()
	c, first = w.answered()
	second = w.win(w.regenerate(c, first.Turn))
	w.finish(completing(second, 0, whole("second")))
	return c, first, second
}

func aRegenerateReplaces(t *testing.T, w *world) {
	c, first := w.answered()
	before := w.lookup(c, first.Turn)
	require.Zero(t, w.slotVersion(first.Turn))
	second := w.win(w.regenerate(c, first.Turn))
	st := w.lookup(c, first.Turn)
	require.Equal(t, []any{before.Version + 1, before.NextSeq + 1, second.Reply.ID.Row()}, []any{st.Version, st.NextSeq, st.Leaf})
	require.EqualValues(t, 2, st.Turn.Generation)
	require.EqualValues(t, 1, w.slotVersion(first.Turn))
	require.Equal(t, second.Reply.ID, st.Live.ID)
	require.EqualValues(t, 2, st.Live.Generation)
	old := w.read(c, first.Reply.ID)
	require.Equal(t, []any{turns.StatusAbandoned, turns.ReasonSuperseded}, []any{old.Status, old.Reason})
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM turns WHERE id = %s AND replaced_by = %s", first.Reply.ID.UUID, second.Reply.ID.UUID))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE reply_id = %s AND generation = 2 AND first", second.Reply.ID.UUID))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE reply_id = %s AND class = 'ok'", first.Reply.ID.UUID), "its call stays as it was closed")
}

func aSupersededReplyKeepsAll(t *testing.T, w *world) {
	c, first := w.answered()
	before := w.read(c, first.Reply.ID)
	second := w.win(w.regenerate(c, first.Turn))
	after := w.read(c, first.Reply.ID)
	before.Status, before.Reason, before.ReplacedBy = turns.StatusAbandoned, turns.ReasonSuperseded, second.Reply.ID
	before.Age, after.Age = 0, 0
	equal(t, before, after)
}

func onlyACompleteReplyIsSuperseded(_ *testing.T, w *world) {
	c, first, second := w.twoReplies()
	claim := w.regenerate(c, first.Turn)
	claim.Supersede = first.Reply.ID
	w.lose(claim) // superseded already
	claim.Supersede = newReplyID()
	w.lose(claim) // not stored
	w.hold(second.Reply.ID)
	claim.Supersede = second.Reply.ID
	w.lose(claim) // held
	c, running := w.fresh()
	claim = w.regenerate(c, running.Turn)
	claim.Supersede = running.Reply.ID
	w.lose(claim) // in flight
	w.finish(abandoning(running, 0, turns.ReasonProviderError))
	claim = w.regenerate(c, running.Turn)
	claim.Supersede = running.Reply.ID
	w.lose(claim) // abandoned, so that the slot is free
}

func onlyItsOwnTurnIsSuperseded(_ *testing.T, w *world) {
	c, first := w.answered()
	second := w.win(w.next(c))
	w.finish(abandoning(second, 0, turns.ReasonProviderError))
	claim := w.regenerate(c, second.Turn)
	claim.Supersede = first.Reply.ID
	w.lose(claim)
}

func aLateRegenerateIsLost(_ *testing.T, w *world) {
	c, first := w.answered()
	late := w.regenerate(c, first.Turn)
	w.finish(completing(w.win(w.next(c)), 0, whole("a")))
	w.lose(late)
	w.win(w.regenerate(c, first.Turn))
}

func aDeadWorkersRegenerateIsLost(_ *testing.T, w *world) {
	c, first := w.answered()
	claim := w.regenerate(c, first.Turn)
	w.bury(w.worker)
	w.lose(claim)
}

func aBusyRegenerateIsLost(_ *testing.T, w *world) {
	c, first := w.answered()
	w.win(w.next(c))
	w.lose(w.regenerate(c, first.Turn))
}

func theSameRegenerateIsNotWon(t *testing.T, w *world) {
	c, first := w.answered()
	second := w.win(w.regenerate(c, first.Turn))
	w.lose(second)
	w.finish(completing(second, 0, whole("a")))
	w.lose(second)
	require.Equal(t, turns.StatusComplete, w.read(c, second.Reply.ID).Status)
}

func aRegenerateOfAnAbandonedReply(t *testing.T, w *world) {
	c, first := w.fresh()
	w.finish(abandoning(first, 0, turns.ReasonProviderRefused))
	second := w.win(w.regenerate(c, first.Turn))
	require.EqualValues(t, 2, w.lookup(c, first.Turn).Turn.Generation)
	require.EqualValues(t, 1, w.slotVersion(first.Turn))
	require.Equal(t, turns.ReasonProviderRefused, w.read(c, first.Reply.ID).Reason)
	require.EqualValues(t, 2, w.read(c, second.Reply.ID).Generation)
}

func anAttemptKeepsTheGeneration(t *testing.T, w *world) {
	c, first := w.answered()
	second := w.win(w.regenerate(c, first.Turn))
	w.finish(abandoning(second, 0, turns.ReasonShutdown))
	third := w.win(w.again(c, first.Turn))
	require.EqualValues(t, 2, third.Reply.Generation)
	require.EqualValues(t, 2, w.lookup(c, first.Turn).Turn.Generation)
	require.EqualValues(t, 1, w.slotVersion(first.Turn))
}

func aLostRegenerateUndoesOnlyItself(t *testing.T, w *world) {
	var batch []turns.Claim
	for range 3 {
		c, first := w.answered()
		batch = append(batch, w.regenerate(c, first.Turn))
	}
	batch[1].ExpectVersion++
	results, err := w.Store.Claim(w.ctx, batch)
	require.NoError(t, err)
	for i, won := range []bool{true, false, true} {
		require.Equal(t, won, results[i].Won, i)
		old := w.read(conversation{key: batch[i].Key}, batch[i].Supersede)
		require.Equal(t, won, old.Status == turns.StatusAbandoned, i)
	}
}

func optionsAreKept(t *testing.T, w *world) {
	c, first := w.answered()
	temperature := 0.25
	claim := w.regenerate(c, first.Turn)
	claim.Reply.Options = turns.Options{Model: "other", Temperature: &temperature, StopSequences: []string{"x", "é"}}
	claim.Reply.DefaultsVersion = 7
	w.win(claim)
	equal(t, claim.Reply.Options, w.read(c, claim.Reply.ID).Options)
	require.EqualValues(t, 7, w.read(c, claim.Reply.ID).DefaultsVersion)
	require.EqualValues(t, 7, w.lookup(c, first.Turn).Live.DefaultsVersion)
	equal(t, claim.Reply.Options, w.lookup(c, first.Turn).Live.Options)
	equal(t, claim.Reply.Options, w.path(c, claim.Reply.ID.Row(), 10)[0].Reply.Options)
	require.Zero(t, w.read(c, first.Reply.ID).Options)
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM turns WHERE id = %s AND options = ''", first.Reply.ID.UUID))
	require.Zero(t, w.lookup(c, first.Turn).Turn.Options, "the turn's own stay as they were sent")
}

func oneOfManyRegenerates(t *testing.T, w *world) {
	c, first := w.answered()
	claims := make([]turns.Claim, 8)
	for i := range claims {
		claims[i] = w.regenerate(c, first.Turn)
	}
	require.EqualValues(t, 1, w.tryClaims(claims))
	require.EqualValues(t, 2, w.count("SELECT count(*) FROM turns WHERE role = 'assistant'"))
	require.EqualValues(t, 1, w.slotVersion(first.Turn))
}

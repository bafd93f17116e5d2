package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func selects() []promise {
	return []promise{
		{"a select makes a superseded reply live and supersedes the live one", aSelectSwaps},
		{"a select and its way back leave both replies as they were", aSelectGoesBack},
		{"a select where no reply is live supersedes nothing", aSelectIntoAFreeSlot},
		{"a select at another version is not won", aLateSelectIsNotWon},
		{"a select in a deleted conversation is not won", aDeletedConversationTakesNoSelect},
		{"a select of a reply that never completed is not won", onlyAWholeReplyIsSelected},
		{"a select of another turn's reply is not won", onlyItsOwnTurnIsSelected},
		{"a select that supersedes what is not complete is not won", aSelectNeedsACompleteReply},
		{"a select that supersedes another turn's reply is not won", aSelectSupersedesItsOwnTurn},
		{"a select into a taken slot is not won", aSelectIntoATakenSlot},
		{"a select of the live reply in its own place is not won", aSelectOfTheLiveReply},
		{"the same select again is not won", theSameSelectIsNotWon},
		{"of a select and a regenerate of one version, the first is won", aSelectOrARegenerate},
		{"of a select and a regenerate at once, one is won", aSelectOrARegenerateAtOnce},
	}
}

// selection makes a reply the turn's live one, as the conversation stands now.
func (w *world) selection(c conversation, turn turns.TurnID, reply turns.ReplyID) turns.Selection {
	w.t.Helper()
	st := w.lookup(c, turn)
	s := turns.Selection{Key: c.key, ExpectVersion: st.Version, Turn: turn, Select: reply}
	if st.Live != nil {
		s.Supersede = st.Live.ID
	}
	return s
}

func (w *world) choose(s turns.Selection) bool {
	w.t.Helper()
	won, err := w.Store.Select(w.ctx, s)
	require.NoError(w.t, err)
	return won
}

// passed asserts that a selection is not won and changes nothing.
func (w *world) passed(s turns.Selection) {
	w.t.Helper()
	w.unchanged(func() {
		w.t.Helper()
		require.False(w.t, w.choose(s), "the selection was won")
	})
}

func aSelectSwaps(t *testing.T, w *world) {
	c, first, second := w.twoReplies()
	before := w.lookup(c, first.Turn)
	require.Equal(t, second.Reply.ID.Row(), before.Leaf)
	require.True(t, w.choose(w.selection(c, first.Turn, first.Reply.ID)))
	st := w.lookup(c, first.Turn)
	require.Equal(t, []any{before.Version + 1, before.NextSeq, first.Reply.ID.Row()}, []any{st.Version, st.NextSeq, st.Leaf})
	require.Equal(t, first.Reply.ID, st.Live.ID)
	require.Equal(t, second.Reply.ID, st.Newest.ID)
	require.EqualValues(t, 2, st.Turn.Generation, "a generation is not chosen")
	require.EqualValues(t, 2, w.slotVersion(first.Turn), "one regenerate, one select")
	require.Empty(t, st.Live.Reason)
	require.Equal(t, []any{turns.StatusAbandoned, turns.ReasonSuperseded}, []any{st.Newest.Status, st.Newest.Reason})
	require.Equal(t, first.Reply.ID, w.entries(c, first.Turn)[first.Turn].Reply.ID)
}

func aSelectGoesBack(t *testing.T, w *world) {
	c, first, second := w.twoReplies()
	read := func() (both [2]turns.Reply) {
		both = [2]turns.Reply{w.read(c, first.Reply.ID), w.read(c, second.Reply.ID)}
		both[0].Age, both[1].Age = 0, 0
		return both
	}
	before := read()
	require.True(t, w.choose(w.selection(c, first.Turn, first.Reply.ID)))
	chosen := w.read(c, first.Reply.ID)
	sameLog(t, []turns.Piece{whole("first")}, chosen.Content)
	require.Equal(t, before[0].EndTime, chosen.EndTime)
	require.True(t, w.choose(w.selection(c, first.Turn, second.Reply.ID)))
	equal(t, before, read())
}

func aSelectIntoAFreeSlot(t *testing.T, w *world) {
	c, first := w.answered()
	second := w.win(w.regenerate(c, first.Turn))
	w.finish(abandoning(second, 0, turns.ReasonProviderError))
	require.True(t, w.choose(w.selection(c, first.Turn, first.Reply.ID)))
	require.Equal(t, turns.StatusComplete, w.read(c, first.Reply.ID).Status)
	require.Equal(t, turns.ReasonProviderError, w.read(c, second.Reply.ID).Reason)
}

func aLateSelectIsNotWon(_ *testing.T, w *world) {
	c, first, _ := w.twoReplies()
	late := w.selection(c, first.Turn, first.Reply.ID)
	early := late
	early.ExpectVersion++
	w.passed(early)
	w.finish(completing(w.win(w.next(c)), 0, whole("a")))
	w.passed(late)
}

func aDeletedConversationTakesNoSelect(_ *testing.T, w *world) {
	c, first, _ := w.twoReplies()
	s := w.selection(c, first.Turn, first.Reply.ID)
	w.markDeleted(c.key)
	w.passed(s)
}

func onlyAWholeReplyIsSelected(_ *testing.T, w *world) {
	c, first, _ := w.twoReplies()
	w.passed(w.selection(c, first.Turn, newReplyID()))
	for _, reason := range turns.Reasons {
		if reason != turns.ReasonSuperseded {
			w.exec("UPDATE turns SET reason = '"+string(reason)+"' WHERE id = %s", first.Reply.ID.UUID)
			w.passed(w.selection(c, first.Turn, first.Reply.ID))
		}
	}
}

func onlyItsOwnTurnIsSelected(_ *testing.T, w *world) {
	c, first := w.answered()
	second := w.win(w.next(c))
	w.finish(completing(second, 0, whole("a")))
	third := w.win(w.regenerate(c, second.Turn))
	w.finish(abandoning(third, 0, turns.ReasonProviderError))
	w.passed(w.selection(c, first.Turn, second.Reply.ID))
	s := w.selection(c, first.Turn, second.Reply.ID)
	s.Supersede = turns.ReplyID{}
	w.passed(s)
}

func aSelectNeedsACompleteReply(_ *testing.T, w *world) {
	c, first := w.answered()
	second := w.win(w.regenerate(c, first.Turn))
	w.passed(w.selection(c, first.Turn, first.Reply.ID)) // in flight
	w.finish(abandoning(second, 0, turns.ReasonProviderError))
	s := w.selection(c, first.Turn, first.Reply.ID)
	s.Supersede = second.Reply.ID
	w.passed(s) // abandoned, so that the slot is free
	s.Supersede = newReplyID()
	w.passed(s) // not stored
}

func aSelectSupersedesItsOwnTurn(_ *testing.T, w *world) {
	c, first := w.answered()
	second := w.win(w.regenerate(c, first.Turn))
	w.finish(abandoning(second, 0, turns.ReasonProviderError))
	other := w.win(w.next(c))
	w.finish(completing(other, 0, whole("a")))
	s := w.selection(c, first.Turn, first.Reply.ID)
	s.Supersede = other.Reply.ID
	w.passed(s)
}

func aSelectIntoATakenSlot(_ *testing.T, w *world) {
	c, first, second := w.twoReplies()
	s := w.selection(c, first.Turn, first.Reply.ID)
	s.Supersede = turns.ReplyID{}
	w.passed(s)
	w.hold(second.Reply.ID)
	w.passed(s)
	third, claim := w.answered()
	w.win(w.regenerate(third, claim.Turn))
	s = w.selection(third, claim.Turn, claim.Reply.ID)
	s.Supersede = turns.ReplyID{}
	w.passed(s)
}

func aSelectOfTheLiveReply(_ *testing.T, w *world) {
	c, first := w.answered()
	w.passed(w.selection(c, first.Turn, first.Reply.ID))
}

func theSameSelectIsNotWon(t *testing.T, w *world) {
	c, first, _ := w.twoReplies()
	s := w.selection(c, first.Turn, first.Reply.ID)
	require.True(t, w.choose(s))
	w.passed(s)
}

func aSelectOrARegenerate(t *testing.T, w *world) {
	c, first, _ := w.twoReplies()
	s, claim := w.selection(c, first.Turn, first.Reply.ID), w.regenerate(c, first.Turn)
	require.True(t, w.choose(s))
	w.lose(claim)
	s, claim = w.selection(c, first.Turn, claim.Supersede), w.regenerate(c, first.Turn)
	w.win(claim)
	w.passed(s)
}

func aSelectOrARegenerateAtOnce(t *testing.T, w *world) {
	for range 10 {
		c, first, second := w.twoReplies()
		s, claim := w.selection(c, first.Turn, first.Reply.ID), w.regenerate(c, first.Turn)
		var selected, claimed bool
		atOnce(2, func(i int) {
			if i == 0 {
				won, err := w.Store.Select(w.ctx, s)
				selected = err == nil && won
			} else {
				results, err := w.Store.Claim(w.ctx, []turns.Claim{claim})
				claimed = err == nil && results[0].Won
			}
		})
		require.NotEqual(t, selected, claimed)
		require.Equal(t, turns.ReasonSuperseded, w.read(c, second.Reply.ID).Reason)
		live := w.lookup(c, first.Turn).Live
		require.Equal(t, selected, live.ID == first.Reply.ID)
		require.EqualValues(t, 2, w.slotVersion(first.Turn))
	}
}

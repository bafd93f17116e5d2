package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func salvages() []promise {
	return []promise{
		{"a salvaged reply is complete with all that its owner has of it", aSalvagedReplyIsComplete},
		{"a salvage corrects the call that the sweep had guessed", aSalvageCorrectsItsCall},
		{"a salvage moves the conversation's version and not its leaf", aSalvageMovesTheVersion},
		{"an ending that is not complete is a typed error, and salvages nothing", aSalvageCompletes},
		{"the same salvage again is not won", theSameSalvageIsNotWon},
		{"of a salvage and a further attempt at once, one is won", aSalvageOrAnAttempt},
	}
}

func settlements() []promise {
	return []promise{
		{"a settled reply has the content and usage of its owner, and stays as it ended", aSettledReplyStays},
		{"a reply is settled by its end, or by its owner once", aReplyIsSettledOnce},
		{"a settle corrects the call that the sweep had guessed, once", aSettleCorrectsItsCall},
		{"a settle without a call leaves the ledger as it is", aSettleWithoutACall},
		{"a settle leaves calls of other replies alone", aSettleLeavesOtherCalls},
		{"a settle of what is stored already is one", aSettleOfTheSame},
	}
}

func aSalvagedReplyIsComplete(t *testing.T, w *world) {
	c, claim := w.lost()
	before := w.read(c, claim.Reply.ID)
	require.False(t, before.Settled)
	e := salvaging(claim)
	e.ResponseID = "resp"
	e.Usage = turns.Usage{Input: 7, CacheRead: 2, CacheWrite: 1, Output: 5, Reasoning: 3, Source: turns.SourceReported, CostMicros: 40, Calls: 2}
	require.True(t, w.salvage(e))
	r := w.read(c, claim.Reply.ID)
	require.Equal(t, []any{turns.StatusComplete, turns.Reason(""), turns.StopEndTurn}, []any{r.Status, r.Reason, r.StopReason})
	require.True(t, r.Settled)
	require.EqualValues(t, 1, r.Epoch)
	require.Equal(t, claim.Reply.Owner, r.Owner)
	require.Equal(t, e.Usage, r.Usage)
	require.False(t, r.EndTime.Before(before.EndTime))
	require.EqualValues(t, 5, r.Length)
	sameLog(t, []turns.Piece{whole("abc")}, r.Content)
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM turns WHERE provider_response_id = 'resp'"))
	require.Equal(t, claim.Reply.ID, w.lookup(c, claim.Turn).Live.ID)
}

// guessed counts the calls that are still as the sweep closed them, and known those as their owner does.
func (w *world) guessed(id turns.CallID) int64 {
	return w.count("SELECT count(*) FROM provider_calls WHERE call_id = %s AND class = 'ambiguous' AND input_tokens = 25 AND token_source = 'estimated' AND waste_cause = 'lease_expired'", id.UUID)
}

func (w *world) known(id turns.CallID) int64 {
	return w.count(`SELECT count(*) FROM provider_calls WHERE call_id = %s AND class = 'ok' AND phase = 'done' AND http_status = 200
		AND input_tokens = 9 AND output_tokens = 4 AND token_source = 'reported' AND waste_cause = '' AND end_time IS NOT NULL`, id.UUID)
}

func aSalvageCorrectsItsCall(t *testing.T, w *world) {
	_, claim := w.lost()
	require.EqualValues(t, 1, w.guessed(claim.Call.ID))
	require.True(t, w.salvage(salvaging(claim)))
	require.EqualValues(t, 1, w.known(claim.Call.ID))
	require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{*closing(claim.Key, claim.Call.ID, turns.ClassThrottled)}))
	require.EqualValues(t, 1, w.known(claim.Call.ID), "closed once, corrected once")
}

func aSalvageMovesTheVersion(t *testing.T, w *world) {
	c, claim := w.lost()
	before := w.next(c)
	require.True(t, w.salvage(salvaging(claim)))
	w.lose(before)
	st := w.lookup(c, claim.Turn)
	require.Equal(t, before.ExpectVersion+1, st.Version)
	require.Equal(t, claim.Reply.ID.Row(), st.Leaf)
	w.win(w.next(c))
}

func aSalvageCompletes(t *testing.T, w *world) {
	_, claim := w.lost()
	e := salvaging(claim)
	e.Status, e.Reason = turns.StatusAbandoned, turns.ReasonShutdown
	w.unchanged(func() {
		_, err := w.Store.Salvage(w.ctx, e)
		require.ErrorIs(t, err, &turns.Error{Code: turns.CodeWrongState})
	})
}

func theSameSalvageIsNotWon(t *testing.T, w *world) {
	_, claim := w.lost()
	require.True(t, w.salvage(salvaging(claim)))
	w.unchanged(func() {
		require.False(t, w.salvage(salvaging(claim)))
		require.False(t, w.settle(settling(claim, 5, whole("abc"))))
	})
}

func aSalvageOrAnAttempt(t *testing.T, w *world) {
	for range 10 {
		c, lost := w.lost()
		again := w.again(c, lost.Turn)
		var salvaged, claimed bool
		atOnce(2, func(i int) {
			if i == 0 {
				won, err := w.Store.Salvage(w.ctx, salvaging(lost))
				salvaged = err == nil && won
			} else {
				results, err := w.Store.Claim(w.ctx, []turns.Claim{again})
				claimed = err == nil && results[0].Won
			}
		})
		require.NotEqual(t, salvaged, claimed)
		require.Equal(t, salvaged, w.read(c, lost.Reply.ID).Status == turns.StatusComplete)
	}
}

func aSettledReplyStays(t *testing.T, w *world) {
	c, claim := w.lost()
	before, version := w.read(c, claim.Reply.ID), w.lookup(c, claim.Turn).Version
	e := settling(claim, 3, whole("abc"), turns.Piece{Block: 1, Kind: turns.KindText, Starts: true, Text: "é"})
	e.Usage = turns.Usage{Input: 7, CacheRead: 2, CacheWrite: 1, Output: 5, Reasoning: 3, Source: turns.SourceReported, Wasted: 12, CostMicros: 40, Calls: 2}
	e.ResponseID = "resp"
	require.True(t, w.settle(e))
	after := w.read(c, claim.Reply.ID)
	before.Content, before.Length, before.Usage, before.Settled, before.Age = e.Content, 8, e.Usage, true, after.Age
	before.ResponseID = e.ResponseID
	equal(t, before, after)
	require.Equal(t, version, w.lookup(c, claim.Turn).Version)
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM turns WHERE provider_response_id = 'resp'"))
	w.win(w.again(c, claim.Turn))
}

func aReplyIsSettledOnce(t *testing.T, w *world) {
	_, ended := w.fresh()
	w.finish(abandoning(ended, 0, turns.ReasonShutdown, opening("a")))
	w.unchanged(func() { require.False(t, w.settle(settling(ended, 2, opening("ab")))) })
	_, claim := w.lost()
	require.True(t, w.settle(settling(claim, 3, opening("abc"))))
	w.unchanged(func() {
		require.False(t, w.settle(settling(claim, 4, opening("abcd"))))
		require.False(t, w.settle(settling(claim, 4, opening("abc"))))
	})
}

func aSettleCorrectsItsCall(t *testing.T, w *world) {
	_, claim := w.lost()
	e := settling(claim, 3, opening("abc"))
	e.Call.Class = turns.ClassOK
	require.True(t, w.settle(e))
	require.EqualValues(t, 1, w.known(claim.Call.ID))
	e.Call.Class = turns.ClassTransient
	require.False(t, w.settle(e))
	require.EqualValues(t, 1, w.known(claim.Call.ID))
}

func aSettleWithoutACall(t *testing.T, w *world) {
	_, claim := w.lost()
	e := settling(claim, 3, opening("abc"))
	e.Call = nil
	require.True(t, w.settle(e))
	require.EqualValues(t, 1, w.guessed(claim.Call.ID))
}

func aSettleLeavesOtherCalls(t *testing.T, w *world) {
	c, claim := w.lost()
	second := w.win(w.again(c, claim.Turn))
	e := settling(claim, 3, opening("abc"))
	e.Call.ID = second.Call.ID
	_, err := w.Store.Settle(w.ctx, e)
	require.NoError(t, err)
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE call_id = %s AND end_time IS NULL", second.Call.ID.UUID))
}

func aSettleOfTheSame(t *testing.T, w *world) {
	c, claim := w.lost()
	require.True(t, w.settle(settling(claim, 3, opening("ab"))))
	r := w.read(c, claim.Reply.ID)
	require.True(t, r.Settled)
	require.NotEqual(t, time.Time{}, r.EndTime)
	require.Equal(t, turns.SourceReported, r.Usage.Source)
}

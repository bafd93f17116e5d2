package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func endings() []promise {
	return []promise{
		{"a completed reply has content, length, usage and a closed call in one commit", completingStoresAll},
		{"an abandoned reply has its reason and its partial", abandoningStoresAll},
		{"an ending removes the chunks", anEndingRemovesChunks},
		{"an ending leaves the chunks of others", anEndingLeavesOtherChunks},
		{"a checkpoint that landed meanwhile makes the ending lose", aLongerLogWins},
		{"an ending sent again loses and changes nothing", anEndingAgainLoses},
		{"calls still open are closed with the ending", openCallsAreClosed},
		{"a call that an ending was not told of is estimated from its request", anUntoldCallIsEstimated},
		{"a call that is closed already stays as it was closed", aClosedCallStays},
		{"a reply of no content ends with an empty log", anEmptyReplyEnds},
		{"content is the folded log at every offset", contentIsTheFoldedLog},
		{"endings of a batch are answered each", endingsAreAnsweredEach},
		{"the slot is free after abandoning and taken after completing", theSlotFollowsTheEnding},
	}
}

func completingStoresAll(t *testing.T, w *world) {
	c, claim := w.fresh()
	e := completing(claim, 0, logPieces()...)
	e.Usage = turns.Usage{Input: 7, CacheRead: 2, CacheWrite: 1, Output: 5, Reasoning: 3, Source: turns.SourceReported, CostMicros: 40, Calls: 2}
	e.ResponseID = "resp"
	result := w.end(e)
	require.True(t, result.Won)
	r := w.read(c, claim.Reply.ID)
	sameLog(t, logPieces(), r.Content)
	require.Equal(t, lengthOf(logPieces()), r.Length)
	require.Equal(t, e.Usage, r.Usage)
	require.Equal(t, turns.StatusComplete, r.Status)
	require.Empty(t, r.Reason)
	require.Equal(t, turns.StopEndTurn, r.StopReason)
	require.Equal(t, result.EndTime, r.EndTime)
	require.False(t, r.EndTime.Before(r.CreateTime))
	require.Zero(t, r.LeaseLeft)
	require.False(t, r.OwnerDead)
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM turns WHERE provider_response_id = 'resp'"))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE class = 'ok' AND output_tokens = 4"))
}

func abandoningStoresAll(t *testing.T, w *world) {
	c, claim := w.fresh()
	length := w.append(fenceOf(claim), 0, opening("par"))
	e := abandoning(claim, length, turns.ReasonProviderError, opening("parti"))
	e.ProviderCode, e.RetryAfter, e.Usage.Wasted = "overloaded_error", 2500*time.Millisecond, 13
	w.finish(e)
	r := w.read(c, claim.Reply.ID)
	require.Equal(t, turns.StatusAbandoned, r.Status)
	require.Equal(t, turns.ReasonProviderError, r.Reason)
	require.Equal(t, "overloaded_error", r.ProviderCode)
	require.Equal(t, 2500*time.Millisecond, r.RetryAfter)
	require.EqualValues(t, 13, r.Usage.Wasted)
	sameLog(t, []turns.Piece{opening("parti")}, r.Content)
}

func anEndingRemovesChunks(t *testing.T, w *world) {
	_, claim := w.fresh()
	length := w.append(fenceOf(claim), 0, opening("ab"))
	length = w.append(fenceOf(claim), length, more("cd"))
	w.finish(completing(claim, length, whole("abcd")))
	require.Zero(t, w.count("SELECT count(*) FROM reply_chunks"))
}

func anEndingLeavesOtherChunks(t *testing.T, w *world) {
	_, claim := w.fresh()
	_, other := w.fresh()
	w.append(fenceOf(other), 0, opening("ab"))
	w.finish(completing(claim, 0, whole("abcd")))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM reply_chunks"))
}

func aLongerLogWins(t *testing.T, w *world) {
	_, claim := w.fresh()
	length := w.append(fenceOf(claim), 0, opening("ab"))
	w.unchanged(func() {
		require.Zero(t, w.end(completing(claim, 0, whole("abcd"))))
		require.Zero(t, w.end(completing(claim, length+1, whole("abcd"))))
	})
}

func anEndingAgainLoses(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	w.unchanged(func() {
		require.Zero(t, w.end(completing(claim, 0, whole("a"))))
		require.Zero(t, w.end(abandoning(claim, 1, turns.ReasonCancelled)))
		require.Zero(t, w.end(abandoning(claim, 3, turns.ReasonCancelled)))
	})
}

func openCallsAreClosed(t *testing.T, w *world) {
	_, claim := w.fresh()
	require.True(t, w.permit(permitFor(claim, 2)).Granted)
	e := completing(claim, 0, whole("a"))
	e.Call = nil
	w.finish(e)
	require.Zero(t, w.count("SELECT count(*) FROM provider_calls WHERE end_time IS NULL"))
	require.EqualValues(t, 2, w.count("SELECT count(*) FROM provider_calls WHERE class = 'ambiguous'"))
}

func anUntoldCallIsEstimated(t *testing.T, w *world) {
	for _, bytes := range []int{0, 1, 34, 35, 36, 99, 4096} {
		ended, swept := w.first(newConversation()), w.first(newConversation())
		ended.Call.RequestBytes, swept.Call.RequestBytes = bytes, bytes
		w.win(ended)
		w.win(swept)
		e, s := completing(ended, 0, whole("a")), expiring(swept, 0)
		e.Call, s.Calls = nil, nil
		w.finish(e)
		w.passDeadline(swept.Reply.ID)
		require.True(t, w.sweep(s))
		for _, c := range []turns.Claim{ended, swept} {
			rows, err := w.Query(w.ctx, w.sql(`SELECT class, phase, token_source, waste_cause, input_tokens, output_tokens, wasted_tokens
				FROM provider_calls WHERE call_id = %s`, c.Call.ID.UUID))
			require.NoError(t, err)
			want := turns.EstimateUsage(bytes, 0)
			require.Equal(t, [][]any{{"ambiguous", "written", "estimated", "ambiguous", want.Input, want.Output, want.Total()}}, rows)
		}
	}
}

func aClosedCallStays(t *testing.T, w *world) {
	_, claim := w.fresh()
	require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{*closing(claim.Key, claim.Call.ID, turns.ClassThrottled)}))
	w.finish(completing(claim, 0, whole("a")))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE class = 'throttled'"))
}

func anEmptyReplyEnds(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(abandoning(claim, 0, turns.ReasonEmpty))
	r := w.read(c, claim.Reply.ID)
	require.Empty(t, r.Content)
	require.Zero(t, r.Length)
	require.Empty(t, w.viewFrom(c, claim.Reply.ID, 0).Pieces)
}

func contentIsTheFoldedLog(t *testing.T, w *world) {
	c, claim := w.fresh()
	var ends []uint32
	var length uint32
	for _, p := range logPieces() {
		ends = append(ends, length)
		length = w.append(fenceOf(claim), length, p)
	}
	log, err := turns.LogOf(logPieces())
	require.NoError(t, err)
	folded, _, err := log.From(0, 0)
	require.NoError(t, err)
	w.finish(completing(claim, length, folded...))
	for _, from := range append(ends, length) {
		want, _, err := log.From(from, 0)
		require.NoError(t, err)
		got := w.viewFrom(c, claim.Reply.ID, from)
		require.Len(t, got.Pieces, len(want))
		for i := range want {
			require.Equal(t, want[i], got.Pieces[i], from)
		}
		require.Equal(t, turns.StatusComplete, got.Reply.Status)
	}
}

func endingsAreAnsweredEach(t *testing.T, w *world) {
	var batch []turns.Ending
	for range 3 {
		_, claim := w.fresh()
		batch = append(batch, completing(claim, 0, whole("a")))
	}
	batch[1].Fence.Epoch = 2
	results, err := w.Store.End(w.ctx, batch)
	require.NoError(t, err)
	require.Len(t, results, 3)
	for i, won := range []bool{true, false, true} {
		require.Equal(t, won, results[i].Won, i)
		require.Equal(t, won, !results[i].EndTime.IsZero(), i)
	}
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE end_time IS NULL"), "a lost ending closes no call")
}

func theSlotFollowsTheEnding(_ *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(abandoning(claim, 0, turns.ReasonDeadline))
	second := w.win(w.again(c, claim.Turn))
	w.finish(completing(second, 0, whole("a")))
	w.lose(w.again(c, claim.Turn))
	w.win(w.next(c))
}

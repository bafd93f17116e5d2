package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func calls() []promise {
	return []promise{
		{"closing a call records its outcome", closingRecordsTheOutcome},
		{"a call is closed once, and closing a closed one changes nothing", aCallIsClosedOnce},
		{"a call is closed whatever became of its reply", aCallIsClosedWithoutAFence},
		{"closing an unknown call changes nothing", anUnknownCallChangesNothing},
		{"several calls are closed at once", severalCallsAreClosed},
	}
}

func closingRecordsTheOutcome(t *testing.T, w *world) {
	_, claim := w.fresh()
	require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{{
		Key: claim.Key, ID: claim.Call.ID, Class: turns.ClassThrottled, Phase: turns.PhaseHeaders, HTTPStatus: 429,
		RequestID: "req", ResponseID: "resp", WasteCause: "retried",
		Usage: turns.Usage{Input: 7, CacheRead: 2, CacheWrite: 1, Output: 5, Reasoning: 3, Source: turns.SourceEstimated, Wasted: 12, CostMicros: 40},
	}}))
	require.EqualValues(t, 1, w.count(`SELECT count(*) FROM provider_calls WHERE class = 'throttled' AND phase = 'headers'
		AND http_status = 429 AND provider_request_id = 'req' AND provider_response_id = 'resp' AND waste_cause = 'retried'
		AND input_tokens = 7 AND cache_read_tokens = 2 AND cache_write_tokens = 1 AND output_tokens = 5
		AND reasoning_tokens = 3 AND token_source = 'estimated' AND wasted_tokens = 12 AND cost_micros = 40
		AND end_time >= create_time`))
}

func aCallIsClosedOnce(t *testing.T, w *world) {
	_, claim := w.fresh()
	require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{*closing(claim.Key, claim.Call.ID, turns.ClassOK)}))
	w.unchanged(func() {
		again := []turns.CallOutcome{*closing(claim.Key, claim.Call.ID, turns.ClassAmbiguous)}
		require.NoError(t, w.Store.CloseCalls(w.ctx, again))
	})
	w.finish(completing(claim, 0, whole("a")))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE class = 'ok'"))
}

func aCallIsClosedWithoutAFence(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.bury(w.worker)
	require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{*closing(claim.Key, claim.Call.ID, turns.ClassOK)}))
	require.Zero(t, w.count("SELECT count(*) FROM provider_calls WHERE end_time IS NULL"))
}

func anUnknownCallChangesNothing(t *testing.T, w *world) {
	_, claim := w.fresh()
	_, other := w.fresh()
	w.unchanged(func() {
		require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{*closing(claim.Key, newCallID(), turns.ClassOK)}))
		require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{*closing(claim.Key, other.Call.ID, turns.ClassOK)}))
	})
}

func severalCallsAreClosed(t *testing.T, w *world) {
	_, first := w.fresh()
	_, second := w.fresh()
	require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{
		*closing(first.Key, first.Call.ID, turns.ClassOK), *closing(second.Key, second.Call.ID, turns.ClassNotSent)}))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE class = 'ok'"))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE class = 'not_sent'"))
}

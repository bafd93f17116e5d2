package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// Each condition of a resolution, broken by itself, must bar it.
func resolutions() []promise {
	return []promise{
		{"a held reply that is adopted is complete, with its calls closed as given", anAdoptedReplyIsComplete},
		{"a held reply that is finished by its last owner is complete", aFinishedReplyIsComplete},
		{"a held reply that is released frees its slot", aReleasedReplyFreesItsSlot},
		{"a held reply that is released though a stop was asked for is released", aStoppedReplyIsReleased},
		{"calls that a resolution does not name are closed by a guess", aResolutionClosesAllCalls},
		{"a reply that a sweep held and that is released comes back by its last owner's hand", aReleasedReplyComesBack},
		{"a resolution that the table has not is a typed error", aResolutionOutsideTheTable},
		{"a resolution sent again is not won, and the row says what became of it", theSameResolutionIsNotWon},
		{"of many resolutions at once, one is won", oneOfManyResolutions},
		{"of a resolution and a stop at once, one is seen", aResolutionOrAStop},
		{"a resolution under another epoch changes nothing", func(_ *testing.T, w *world) {
			w.notResolved(func(_ turns.Claim, r *turns.Resolution) { r.Fence.Epoch++ })
		}},
		{"a resolution of another reply changes nothing", func(_ *testing.T, w *world) {
			w.notResolved(func(_ turns.Claim, r *turns.Resolution) { r.Fence.Reply = newReplyID() })
		}},
		{"a resolution under another tenant's key changes nothing", func(_ *testing.T, w *world) {
			w.notResolved(func(c turns.Claim, r *turns.Resolution) {
				r.Fence.Key = foreign(conversationOf(c.Tenant, c.Conversation.UUID)).key
			})
		}},
		{"a finish by another owner changes nothing", func(_ *testing.T, w *world) {
			w.notResolved(func(_ turns.Claim, r *turns.Resolution) { r.Verb, r.Fence.Owner = turns.VerbFinish, w.register() })
		}},
		{"an adoption changes nothing once a stop was asked for", func(_ *testing.T, w *world) {
			w.notResolved(func(c turns.Claim, _ *turns.Resolution) { w.askToStop(c.Reply.ID) })
		}},
		{"a resolution whose content does not extend what is stored changes nothing", func(_ *testing.T, w *world) {
			w.notResolved(func(_ turns.Claim, r *turns.Resolution) {
				r.Content = []turns.Piece{whole("ax")}
				r.Length = lengthOf(r.Content)
			})
		}},
		{"a resolution without the stored content changes nothing", func(_ *testing.T, w *world) {
			w.notResolved(func(_ turns.Claim, r *turns.Resolution) { r.Content, r.Length = nil, 0 })
		}},
		{"a resolution of a reply that is not held changes nothing", func(_ *testing.T, w *world) {
			w.notResolved(func(c turns.Claim, _ *turns.Resolution) {
				w.exec("UPDATE turns SET status = 'in_flight', next_lookup_at = NULL WHERE id = %s", c.Reply.ID.UUID)
			})
		}},
	}
}

// adopting completes a held reply of which "ab" is stored.
func adopting(c turns.Claim) turns.Resolution {
	r := turns.Resolution{
		Fence: fenceOf(c), Verb: turns.VerbAdopt, Status: turns.StatusComplete, Content: []turns.Piece{whole("abc")},
		StopReason: turns.StopEndTurn, Usage: turns.Usage{Input: 9, Output: 4, Source: turns.SourceReported, Calls: 1},
		ResponseID: "resp", Calls: []turns.CallOutcome{*closing(c.Key, c.Call.ID, turns.ClassOK)},
	}
	r.Fence.Owner, r.Length = turns.WorkerID{}, lengthOf(r.Content)
	return r
}

// releasing gives a held reply up of which "ab" is stored.
func releasing(c turns.Claim) turns.Resolution {
	r := adopting(c)
	r.Verb, r.Status, r.Reason, r.StopReason = turns.VerbRelease, turns.StatusAbandoned, turns.ReasonHeldReleased, ""
	r.Content, r.Length = []turns.Piece{opening("ab")}, 3
	return r
}

func (w *world) resolve(r turns.Resolution) bool {
	w.t.Helper()
	result, err := w.Store.ResolveHeld(w.ctx, r)
	require.NoError(w.t, err)
	require.Equal(w.t, result.Won, !result.EndTime.IsZero())
	return result.Won
}

func (w *world) notResolved(spoil func(turns.Claim, *turns.Resolution)) {
	w.t.Helper()
	_, claim := w.held()
	r := adopting(claim)
	spoil(claim, &r)
	w.unchanged(func() {
		w.t.Helper()
		require.False(w.t, w.resolve(r))
	})
}

func anAdoptedReplyIsComplete(t *testing.T, w *world) {
	c, claim := w.held()
	before, version := w.read(c, claim.Reply.ID), w.lookup(c, claim.Turn).Version
	a := adopting(claim)
	require.True(t, w.resolve(a))
	r := w.read(c, claim.Reply.ID)
	sameLog(t, a.Content, r.Content)
	require.False(t, r.EndTime.IsZero())
	before.Status, before.Content, before.Length, before.StopReason, before.Usage = a.Status, r.Content, a.Length, a.StopReason, a.Usage
	before.ResponseID, before.EndTime, before.Age = "resp", r.EndTime, r.Age
	equal(t, before, r)
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE class = 'ok' AND output_tokens = 4"))
	require.Zero(t, w.count("SELECT count(*) FROM turns WHERE next_lookup_at IS NOT NULL"))
	require.Equal(t, version, w.lookup(c, claim.Turn).Version)
	require.Equal(t, claim.Reply.ID, w.lookup(c, claim.Turn).Live.ID)
}

func aFinishedReplyIsComplete(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.append(fenceOf(claim), 0, opening("ab"))
	w.bury(w.worker)
	require.True(t, w.sweep(sweepingAside(claim, 3, opening("ab"))))
	r := adopting(claim)
	r.Verb, r.Fence = turns.VerbFinish, fenceOf(claim)
	require.True(t, w.resolve(r))
	after := w.read(c, claim.Reply.ID)
	require.Equal(t, []any{turns.StatusComplete, true}, []any{after.Status, after.Settled})
}

func aReleasedReplyFreesItsSlot(t *testing.T, w *world) {
	c, claim := w.held()
	require.True(t, w.resolve(releasing(claim)))
	r := w.read(c, claim.Reply.ID)
	require.Equal(t, []any{turns.StatusAbandoned, turns.ReasonHeldReleased}, []any{r.Status, r.Reason})
	w.win(w.again(c, claim.Turn))
}

func aStoppedReplyIsReleased(t *testing.T, w *world) {
	_, claim := w.held()
	w.askToStop(claim.Reply.ID)
	require.True(t, w.resolve(releasing(claim)))
}

func aResolutionClosesAllCalls(t *testing.T, w *world) {
	_, claim := w.held()
	r := releasing(claim)
	r.Calls = nil
	require.True(t, w.resolve(r))
	require.EqualValues(t, 1, w.count(`SELECT count(*) FROM provider_calls WHERE class = 'ambiguous' AND token_source = 'estimated'
		AND input_tokens = 29 AND wasted_tokens = 29 AND end_time IS NOT NULL`))
}

func aReleasedReplyComesBack(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.bury(w.worker)
	require.True(t, w.sweep(sweepingAside(claim, 0)))
	r := releasing(claim)
	r.Content, r.Length = nil, 0
	require.True(t, w.resolve(r))
	require.True(t, w.salvage(salvaging(claim)))
	require.Equal(t, turns.StatusComplete, w.read(c, claim.Reply.ID).Status)
}

func aResolutionOutsideTheTable(t *testing.T, w *world) {
	_, claim := w.held()
	w.unchanged(func() {
		for _, verb := range allVerbs() {
			for _, to := range []turns.Status{turns.StatusInFlight, turns.StatusComplete, turns.StatusHeld, turns.StatusAbandoned} {
				for _, reason := range append([]turns.Reason{""}, turns.Reasons...) {
					if _, ok := turns.Allowed(turns.StatusHeld, "", verb, to, reason); ok && (reason != "") == (to == turns.StatusAbandoned) {
						continue
					}
					r := adopting(claim)
					r.Verb, r.Status, r.Reason = verb, to, reason
					_, err := w.Store.ResolveHeld(w.ctx, r)
					typed(t, err, step{verb, to, reason})
				}
			}
		}
	})
}

func theSameResolutionIsNotWon(t *testing.T, w *world) {
	c, claim := w.held()
	require.True(t, w.resolve(adopting(claim)))
	w.unchanged(func() {
		require.False(t, w.resolve(adopting(claim)))
		require.False(t, w.resolve(releasing(claim)))
	})
	require.Equal(t, turns.StatusComplete, w.read(c, claim.Reply.ID).Status)
}

func oneOfManyResolutions(t *testing.T, w *world) {
	c, claim := w.held()
	var won [6]turns.EndResult
	var errs [6]error
	atOnce(6, func(i int) {
		r := adopting(claim)
		if i%2 == 1 {
			r = releasing(claim)
		}
		won[i], errs[i] = w.Store.ResolveHeld(w.ctx, r)
	})
	winner := -1
	for i := range won {
		require.NoError(t, errs[i])
		if won[i].Won {
			require.Equal(t, -1, winner, "two were won")
			winner = i
		}
	}
	require.GreaterOrEqual(t, winner, 0)
	require.Equal(t, winner%2 == 0, w.read(c, claim.Reply.ID).Status == turns.StatusComplete)
}

func aResolutionOrAStop(t *testing.T, w *world) {
	for range 6 {
		c, claim := w.held()
		var adopted turns.EndResult
		var errs [2]error
		atOnce(2, func(i int) {
			if i == 0 {
				adopted, errs[0] = w.Store.ResolveHeld(w.ctx, adopting(claim))
			} else {
				_, errs[1] = w.Store.RequestStop(w.ctx, c.key, claim.Turn, 0, turns.TurnID{})
			}
		})
		require.Equal(t, [2]error{}, errs)
		r := w.read(c, claim.Reply.ID)
		require.Equal(t, adopted.Won, r.Status == turns.StatusComplete)
		require.Equal(t, !adopted.Won, r.Reason == turns.ReasonCancelled)
	}
	require.Zero(t, w.count("SELECT count(*) FROM provider_calls WHERE end_time IS NULL"))
}

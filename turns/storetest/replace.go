package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// Each condition of a replacement, broken by itself, must bar all of it.
func replaces() []promise {
	return []promise{
		{"a replacement ends the one reply and claims the next in one commit", aReplacementEndsAndClaims},
		{"a reply that is replaced as lease_expired is not settled", aReplacedReplyOfADeadOwnerIsNotSettled},
		{"a replacement that the table has not is a typed error", aReplacementOutsideTheTable},
		{"a replacement by a reply of another turn, or in another's place, is a typed error or changes nothing", aReplacementIsOfItsTurn},
		{"a replacement sent again is not won, and the new row is still there", theSameReplacementIsNotWon},
		{"of many replacements at once, one is won", oneOfManyReplacements},
		{"of a replacement and a sweep at once, one is won", aReplacementOrASweep},
		{"replacements, endings and stops of one conversation at once all end", replacementsBesideOthers},
		{"a replacement under another epoch changes nothing", func(_ *testing.T, w *world) {
			w.notReplaced(func(_ turns.Claim, r *turns.Replacement) { r.Ending.Fence.Epoch++ })
		}},
		{"a replacement by another owner changes nothing", func(_ *testing.T, w *world) {
			w.notReplaced(func(_ turns.Claim, r *turns.Replacement) { r.Ending.Fence.Owner = w.register() })
		}},
		{"a replacement over a log that grew meanwhile changes nothing", func(_ *testing.T, w *world) {
			w.notReplaced(func(_ turns.Claim, r *turns.Replacement) { w.append(r.Ending.Fence, 3, more("c")) })
		}},
		{"a replacement of a reply that is over changes nothing", func(_ *testing.T, w *world) {
			w.notReplaced(func(c turns.Claim, _ *turns.Replacement) {
				w.finish(abandoning(c, 3, turns.ReasonShutdown, opening("ab")))
			})
		}},
		{"a replacement at an earlier version of the conversation changes nothing", func(_ *testing.T, w *world) {
			w.notReplaced(func(_ turns.Claim, r *turns.Replacement) { r.Claim.ExpectVersion-- })
		}},
		{"a replacement in a deleted conversation changes nothing", func(_ *testing.T, w *world) {
			w.notReplaced(func(c turns.Claim, _ *turns.Replacement) { w.markDeleted(c.Key) })
		}},
		{"a replacement of a generation that was asked to stop changes nothing", func(_ *testing.T, w *world) {
			w.notReplaced(func(c turns.Claim, r *turns.Replacement) {
				w.stop(conversationOf(c.Tenant, c.Conversation.UUID), c.Turn)
				r.Claim.ExpectVersion++
			})
		}},
		{"a replacement by a dead worker changes nothing", func(_ *testing.T, w *world) {
			w.notReplaced(func(_ turns.Claim, r *turns.Replacement) {
				r.Claim.Reply.Owner = w.register()
				w.bury(r.Claim.Reply.Owner)
			})
		}},
		{"a replacement with an attempt that is taken changes nothing", func(_ *testing.T, w *world) {
			w.notReplaced(func(_ turns.Claim, r *turns.Replacement) { r.Claim.Reply.Attempt = 1 })
		}},
		{"a replacement of another generation changes nothing", func(_ *testing.T, w *world) {
			w.notReplaced(func(_ turns.Claim, r *turns.Replacement) { r.Claim.Reply.Generation++ })
		}},
	}
}

// replacing puts the next attempt in the place of a claim's reply, of which length is stored.
func (w *world) replacing(c turns.Claim, length uint32, pieces ...turns.Piece) turns.Replacement {
	w.t.Helper()
	e := abandoning(c, length, turns.ReasonAmbiguous, pieces...)
	e.Verb, e.Call.Class = turns.VerbReplace, turns.ClassAmbiguous
	return turns.Replacement{Ending: e, Claim: w.again(conversationOf(c.Tenant, c.Conversation.UUID), c.Turn)}
}

func (w *world) replace(r turns.Replacement) bool {
	w.t.Helper()
	result, err := w.Store.Replace(w.ctx, r)
	require.NoError(w.t, err)
	require.Equal(w.t, result.Won, !result.CreateTime.IsZero())
	return result.Won
}

func (w *world) notReplaced(spoil func(turns.Claim, *turns.Replacement)) {
	w.t.Helper()
	_, claim := w.fresh()
	w.append(fenceOf(claim), 0, opening("ab"))
	r := w.replacing(claim, 3, opening("ab"))
	spoil(claim, &r)
	w.unchanged(func() {
		w.t.Helper()
		require.False(w.t, w.replace(r))
	})
}

func aReplacementEndsAndClaims(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.append(fenceOf(claim), 0, opening("ab"))
	r := w.replacing(claim, 3, opening("abc"))
	require.True(t, w.replace(r))
	old := w.read(c, claim.Reply.ID)
	require.Equal(t, []any{turns.StatusAbandoned, turns.ReasonAmbiguous, r.Claim.Reply.ID, true, r.Ending.Usage},
		[]any{old.Status, old.Reason, old.ReplacedBy, old.Settled, old.Usage})
	sameLog(t, []turns.Piece{opening("abc")}, old.Content)
	fresh := w.read(c, r.Claim.Reply.ID)
	require.Equal(t, []any{turns.StatusInFlight, int32(2), int32(1), 2, turns.ReplyID{}},
		[]any{fresh.Status, fresh.Attempt, fresh.Generation, fresh.Calls, fresh.ReplacedBy})
	st := w.lookup(c, claim.Turn)
	require.Equal(t, []any{int64(2), r.Claim.Reply.ID.Row(), r.Claim.Reply.ID}, []any{st.Version, st.Leaf, st.Running.ID})
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE call_id = %s AND class = 'ambiguous'", claim.Call.ID.UUID))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE call_id = %s AND end_time IS NULL", r.Claim.Call.ID.UUID))
	require.Zero(t, w.count("SELECT count(*) FROM reply_chunks"))
	require.True(t, w.checkpoint(fenceOf(r.Claim), 0, opening("new")).Held)
}

func aReplacedReplyOfADeadOwnerIsNotSettled(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.bury(w.worker)
	w.worker = w.register()
	r := w.replacing(claim, 0)
	r.Ending.Reason = turns.ReasonLeaseExpired
	require.True(t, w.replace(r))
	require.False(t, w.read(c, claim.Reply.ID).Settled)
	require.True(t, w.settle(settling(claim, 0, whole("late"))))
	require.Equal(t, r.Claim.Reply.ID, w.read(c, claim.Reply.ID).ReplacedBy)
}

func aReplacementOutsideTheTable(t *testing.T, w *world) {
	_, claim := w.fresh()
	_, outside := steps(turns.VerbReplace)
	w.unchanged(func() {
		for _, s := range outside {
			r := w.replacing(claim, 0)
			r.Ending.Verb, r.Ending.Status, r.Ending.Reason = s.verb, s.to, s.reason
			_, err := w.Store.Replace(w.ctx, r)
			typed(t, err, s)
		}
	})
}

func aReplacementIsOfItsTurn(t *testing.T, w *world) {
	c, done := w.fresh()
	w.finish(completing(done, 0))
	claim := w.win(w.next(c))
	w.unchanged(func() {
		for _, spoil := range []func(*turns.Replacement){
			func(r *turns.Replacement) { r.Claim.NewTurn = claim.NewTurn },
			func(r *turns.Replacement) { r.Claim.Supersede = done.Reply.ID },
			func(r *turns.Replacement) { r.Claim.Key = newConversation().key },
		} {
			r := w.replacing(claim, 0)
			spoil(&r)
			_, err := w.Store.Replace(w.ctx, r)
			typed(t, err, step{verb: turns.VerbReplace})
		}
		r := w.replacing(claim, 0)
		r.Claim.Turn, r.Claim.Reply.Attempt = done.Turn, 2
		require.False(t, w.replace(r), "the reply answers another turn")
	})
}

func theSameReplacementIsNotWon(t *testing.T, w *world) {
	c, claim := w.fresh()
	r := w.replacing(claim, 0)
	require.True(t, w.replace(r))
	w.unchanged(func() { require.False(t, w.replace(r)) })
	require.Equal(t, turns.StatusInFlight, w.read(c, r.Claim.Reply.ID).Status)
}

func oneOfManyReplacements(t *testing.T, w *world) {
	c, claim := w.fresh()
	many := make([]turns.Replacement, 6)
	for i := range many {
		many[i] = w.replacing(claim, 0)
	}
	var results [6]turns.ClaimResult
	var errs [6]error
	atOnce(len(many), func(i int) { results[i], errs[i] = w.Store.Replace(w.ctx, many[i]) })
	winner := -1
	for i, r := range results {
		require.NoError(t, errs[i])
		if r.Won {
			require.Equal(t, -1, winner, "two replacements were won")
			winner = i
		}
	}
	require.GreaterOrEqual(t, winner, 0)
	require.Equal(t, many[winner].Claim.Reply.ID, w.read(c, claim.Reply.ID).ReplacedBy)
	require.EqualValues(t, 3, w.count("SELECT count(*) FROM turns"))
	require.EqualValues(t, 2, w.count("SELECT count(*) FROM provider_calls"))
}

func aReplacementOrASweep(t *testing.T, w *world) {
	for range 6 {
		c, claim := w.fresh()
		w.passDeadline(claim.Reply.ID)
		r := w.replacing(claim, 0)
		var replaced turns.ClaimResult
		var swept bool
		var errs [2]error
		atOnce(2, func(i int) {
			if i == 0 {
				replaced, errs[0] = w.Store.Replace(w.ctx, r)
			} else {
				swept, errs[1] = w.Store.Sweep(w.ctx, expiring(claim, 0))
			}
		})
		require.Equal(t, [2]error{}, errs)
		require.NotEqual(t, replaced.Won, swept)
		require.Equal(t, replaced.Won, w.lookup(c, claim.Turn).Running != nil)
	}
}

func replacementsBesideOthers(t *testing.T, w *world) {
	for range 6 {
		c, claim := w.fresh()
		r, next := w.replacing(claim, 0), w.next(c)
		var errs [5]error
		atOnce(5, func(i int) {
			switch i {
			case 0:
				_, errs[i] = w.Store.Replace(w.ctx, r)
			case 1:
				_, errs[i] = w.Store.End(w.ctx, []turns.Ending{completing(claim, 0)})
			case 2:
				_, errs[i] = w.Store.RequestStop(w.ctx, c.key, claim.Turn, 0, turns.TurnID{})
			case 3:
				_, errs[i] = w.Store.Claim(w.ctx, []turns.Claim{next})
			case 4:
				_, errs[i] = w.Store.BuryWorkers(w.ctx)
			}
		})
		require.Equal(t, [5]error{}, errs)
	}
}

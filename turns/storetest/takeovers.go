package storetest

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// Each condition of a takeover, broken by itself, must bar it.
func takeovers() []promise {
	return []promise{
		{"a reply that was taken over is in flight under the next epoch and its new owner", aTakenReplyRuns},
		{"a reply that was taken over goes on from the end of its log", aTakenReplyGoesOn},
		{"a takeover closes open calls as given, the others by a guess, and opens its own", aTakeoverKeepsTheLedger},
		{"a takeover moves neither the conversation nor its turn", aTakeoverMovesTheReplyAlone},
		{"a reply of an unknown owner is taken over", aReplyOfAnUnknownOwnerIsTaken},
		{"a takeover says how long the reply still has", aTakeoverSaysWhatIsLeft},
		{"a takeover sent again is not won, and the row is still its owner's", theSameTakeoverIsNotWon},
		{"a reply is taken over until its epoch is at its bound", aReplyIsTakenOverUntilItsBound},
		{"the owner before a takeover writes nothing more", theOwnerBeforeATakeoverIsFenced},
		{"of many takeovers at once, one is won", oneOfManyTakeovers},
		{"a takeover without a call of its own spends nothing and leaves calls open", aTakeoverWithoutACall},
		{"a takeover moves the reply to its call", aTakeoverMovesToItsCall},
		{"of a takeover and a sweep at once, one is won", aTakeoverOrASweep},
		{"a takeover under another reply's id changes nothing", func(_ *testing.T, w *world) {
			w.notTaken(func(_ turns.Claim, v *turns.Takeover) { v.Fence.Reply = newReplyID() })
		}},
		{"a takeover under another conversation's key changes nothing", func(_ *testing.T, w *world) {
			w.notTaken(func(_ turns.Claim, v *turns.Takeover) { v.Fence.Key = newConversation().key })
		}},
		{"a takeover under an older epoch changes nothing", func(_ *testing.T, w *world) {
			w.notTaken(func(_ turns.Claim, v *turns.Takeover) { v.Fence.Epoch = 0 })
		}},
		{"a takeover under a newer epoch changes nothing", func(_ *testing.T, w *world) {
			w.notTaken(func(_ turns.Claim, v *turns.Takeover) { v.Fence.Epoch = 2 })
		}},
		{"a takeover from another owner changes nothing", func(_ *testing.T, w *world) {
			w.notTaken(func(_ turns.Claim, v *turns.Takeover) { v.Fence.Owner = turns.WorkerID{UUID: uuid.New()} })
		}},
		{"a takeover of a user turn's row changes nothing", func(_ *testing.T, w *world) {
			w.notTaken(func(c turns.Claim, v *turns.Takeover) { v.Fence.Reply = turns.ReplyID(c.Turn) })
		}},
		{"a takeover of a log that grew meanwhile changes nothing", func(_ *testing.T, w *world) {
			w.notTaken(func(_ turns.Claim, v *turns.Takeover) { w.append(v.Fence, 3, more("c")) })
		}},
		{"a takeover of a log that is shorter changes nothing", func(_ *testing.T, w *world) {
			w.notTaken(func(_ turns.Claim, v *turns.Takeover) { v.StoredLength++ })
		}},
		{"a takeover from an owner who lives changes nothing", func(_ *testing.T, w *world) {
			w.notTaken(func(c turns.Claim, _ *turns.Takeover) {
				w.exec("UPDATE workers SET dead = false WHERE worker_id = %s", c.Reply.Owner.UUID)
			})
		}},
		{"a takeover by a dead worker changes nothing", func(_ *testing.T, w *world) {
			w.notTaken(func(_ turns.Claim, v *turns.Takeover) { w.bury(v.Owner) })
		}},
		{"a takeover by an unknown worker changes nothing", func(_ *testing.T, w *world) {
			w.notTaken(func(_ turns.Claim, v *turns.Takeover) { v.Owner = turns.WorkerID{UUID: uuid.New()} })
		}},
		{"a takeover of a reply that was asked to stop changes nothing", func(_ *testing.T, w *world) {
			w.notTaken(func(c turns.Claim, _ *turns.Takeover) { w.askToStop(c.Reply.ID) })
		}},
		{"a takeover of a generation that was asked to stop changes nothing", func(_ *testing.T, w *world) {
			w.notTaken(func(c turns.Claim, _ *turns.Takeover) {
				w.exec("UPDATE turns SET cancelled_generation = 1 WHERE id = %s", c.Turn.UUID)
			})
		}},
		{"a takeover of an earlier generation changes nothing", func(_ *testing.T, w *world) {
			w.notTaken(func(c turns.Claim, _ *turns.Takeover) {
				w.exec("UPDATE turns SET generation = 2 WHERE id = %s", c.Turn.UUID)
			})
		}},
		{"a takeover past the reply's deadline changes nothing", func(_ *testing.T, w *world) {
			w.notTaken(func(c turns.Claim, _ *turns.Takeover) { w.passDeadline(c.Reply.ID) })
		}},
		{"a takeover in a deleted conversation changes nothing", func(_ *testing.T, w *world) {
			w.notTaken(func(c turns.Claim, _ *turns.Takeover) { w.markDeleted(c.Key) })
		}},
		{"a takeover changes nothing once the calls are spent", func(_ *testing.T, w *world) {
			w.notTaken(func(_ turns.Claim, v *turns.Takeover) { v.MaxCalls = 1 })
		}},
	}
}

// deserted is a conversation whose first reply is in flight with "ab" stored, which is 3 long, and whose owner is dead.
// Another worker is the world's from then on.
func (w *world) deserted() (conversation, turns.Claim) {
	w.t.Helper()
	c, claim := w.fresh()
	w.append(fenceOf(claim), 0, opening("ab"))
	w.bury(claim.Reply.Owner)
	w.worker = w.register()
	return c, claim
}

// takingOver gives a claim's reply to the world's worker.
func (w *world) takingOver(c turns.Claim, stored uint32) turns.Takeover {
	call := newCall(2)
	call.Key, call.RequestBytes = "next", 70
	return turns.Takeover{
		Fence: fenceOf(c), StoredLength: stored, Owner: w.worker, MaxCalls: 8,
		Closed: []turns.CallOutcome{*closing(c.Key, c.Call.ID, turns.ClassTransient)},
		Call:   call, Traceparent: takeoverTrace,
	}
}

func (w *world) takeOver(v turns.Takeover) turns.TakeoverResult {
	w.t.Helper()
	result, err := w.Store.TakeOver(w.ctx, v)
	require.NoError(w.t, err)
	return result
}

// overtaken is the fence of a reply after a takeover.
func overtaken(v turns.Takeover) turns.Fence {
	f := v.Fence
	f.Epoch, f.Owner = f.Epoch+1, v.Owner
	return f
}

// notTaken spoils a takeover, or the rows that it is about, and asserts that it is then lost.
func (w *world) notTaken(spoil func(turns.Claim, *turns.Takeover)) {
	w.t.Helper()
	_, claim := w.deserted()
	v := w.takingOver(claim, 3)
	spoil(claim, &v)
	w.unchanged(func() {
		w.t.Helper()
		require.Zero(w.t, w.takeOver(v))
	})
}

func aTakenReplyRuns(t *testing.T, w *world) {
	c, claim := w.deserted()
	before := w.read(c, claim.Reply.ID)
	result := w.takeOver(w.takingOver(claim, 3))
	require.True(t, result.Won)
	require.Equal(t, 2, result.Calls)
	after := w.read(c, claim.Reply.ID)
	require.Positive(t, after.LeaseLeft)
	before.Epoch, before.Owner, before.OwnerDead, before.Calls = 2, w.worker, false, 2
	before.Age, before.LeaseLeft, before.Traceparent = after.Age, after.LeaseLeft, takeoverTrace
	equal(t, before, after)
	require.Empty(t, w.stale(turns.StaleQuery{}))
	require.Equal(t, []turns.Fence{overtaken(w.takingOver(claim, 3))}, w.owned(w.worker, 0, 10))
}

func aTakenReplyGoesOn(t *testing.T, w *world) {
	c, claim := w.deserted()
	v := w.takingOver(claim, 3)
	require.True(t, w.takeOver(v).Won)
	length := w.append(overtaken(v), 3, more("c"))
	sameLog(t, []turns.Piece{opening("abc")}, w.read(c, claim.Reply.ID).Content)
	p := permitFor(claim, 3)
	p.Fence = overtaken(v)
	require.Equal(t, turns.PermitResult{Granted: true, Calls: 3}, w.permit(p))
	e := completing(claim, length, whole("abcd"))
	e.Fence = overtaken(v)
	w.finish(e)
	require.Equal(t, turns.StatusComplete, w.read(c, claim.Reply.ID).Status)
}

func aTakeoverKeepsTheLedger(t *testing.T, w *world) {
	c, claim := w.fresh()
	closed, unnamed := permitFor(claim, 2), permitFor(claim, 3)
	require.True(t, w.permit(closed).Granted)
	require.True(t, w.permit(unnamed).Granted)
	require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{*closing(c.key, closed.Call.ID, turns.ClassThrottled)}))
	w.bury(w.worker)
	w.worker = w.register()
	v := w.takingOver(claim, 0)
	v.Call.Number = 4
	v.Closed = append(v.Closed, *closing(c.key, closed.Call.ID, turns.ClassTransient))
	require.Equal(t, 4, w.takeOver(v).Calls)
	for id, where := range map[turns.CallID]string{
		claim.Call.ID:   "class = 'transient' AND output_tokens = 4 AND epoch = 1 AND end_time IS NOT NULL",
		closed.Call.ID:  "class = 'throttled' AND epoch = 1 AND end_time IS NOT NULL",
		unnamed.Call.ID: "class = 'ambiguous' AND token_source = 'estimated' AND epoch = 1 AND end_time IS NOT NULL",
		v.Call.ID: `class = '' AND epoch = 2 AND number = 4 AND NOT first AND end_time IS NULL AND idempotency_key = 'next'
			AND request_bytes = 70 AND provider = 'anthropic' AND endpoint = 'local' AND model = 'demo' AND generation = 1
			AND tenant = 'tenant'`,
	} {
		require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE call_id = %s AND "+where, id.UUID), where)
	}
	require.EqualValues(t, 4, w.count("SELECT count(*) FROM provider_calls WHERE reply_id = %s AND turn_id = %s", claim.Reply.ID.UUID, claim.Turn.UUID))
}

func aTakeoverMovesTheReplyAlone(t *testing.T, w *world) {
	c, claim := w.deserted()
	around := func() (rows [][]any) {
		for _, query := range []string{"SELECT * FROM conversations", "SELECT * FROM turns WHERE role = 'user'", "SELECT * FROM reply_chunks"} {
			some, err := w.Query(w.ctx, query)
			require.NoError(t, err)
			rows = append(rows, some...)
		}
		return rows
	}
	before, version := around(), w.lookup(c, claim.Turn).Version
	require.True(t, w.takeOver(w.takingOver(claim, 3)).Won)
	equal(t, before, around())
	require.Equal(t, version, w.lookup(c, claim.Turn).Version)
}

func aReplyOfAnUnknownOwnerIsTaken(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.exec("DELETE FROM workers")
	w.worker = w.register()
	require.True(t, w.takeOver(w.takingOver(claim, 0)).Won)
}

func aTakeoverSaysWhatIsLeft(t *testing.T, w *world) {
	_, claim := w.deserted()
	result := w.takeOver(w.takingOver(claim, 3))
	require.True(t, result.Won)
	require.Positive(t, result.Left)
	require.LessOrEqual(t, result.Left, claim.Reply.Deadline)
	_, endless := w.deserted()
	w.exec("UPDATE turns SET deadline_at = NULL WHERE id = %s", endless.Reply.ID.UUID)
	result = w.takeOver(w.takingOver(endless, 3))
	require.True(t, result.Won)
	require.Zero(t, result.Left)
}

func theSameTakeoverIsNotWon(t *testing.T, w *world) {
	c, claim := w.deserted()
	v := w.takingOver(claim, 3)
	require.True(t, w.takeOver(v).Won)
	w.unchanged(func() { require.Zero(t, w.takeOver(v)) })
	r := w.read(c, claim.Reply.ID)
	require.Equal(t, overtaken(v), turns.Fence{Key: c.key, Reply: r.ID, Epoch: r.Epoch, Owner: r.Owner})
	require.Equal(t, 2, r.Calls)
}

func aReplyIsTakenOverUntilItsBound(t *testing.T, w *world) {
	c, claim := w.deserted()
	v := w.takingOver(claim, 3)
	for epoch := int64(2); epoch <= turns.MaxEpoch; epoch++ {
		require.True(t, w.takeOver(v).Won)
		require.Equal(t, epoch, w.read(c, claim.Reply.ID).Epoch)
		w.bury(w.worker)
		w.worker = w.register()
		v.Fence, v.Owner, v.Call.ID = overtaken(v), w.worker, newCallID()
	}
	w.unchanged(func() { require.Zero(t, w.takeOver(v)) })
	s := sweeping(claim, 3, opening("ab"))
	s.Fence = v.Fence
	require.True(t, w.sweep(s))
}

func theOwnerBeforeATakeoverIsFenced(t *testing.T, w *world) {
	_, claim := w.deserted()
	require.True(t, w.takeOver(w.takingOver(claim, 3)).Won)
	w.unchanged(func() {
		require.Zero(t, w.checkpoint(fenceOf(claim), 3, more("d")))
		require.Zero(t, w.end(completing(claim, 3, whole("abc"))))
		require.Zero(t, w.permit(permitFor(claim, 2)))
		require.False(t, w.sweep(sweeping(claim, 3, opening("ab"))))
		require.False(t, w.salvage(salvaging(claim)))
		require.False(t, w.settle(settling(claim, 3, opening("abc"))))
		require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{*closing(claim.Key, claim.Call.ID, turns.ClassOK)}))
	})
}

func aTakeoverWithoutACall(t *testing.T, w *world) {
	c, claim := w.fresh()
	p := permitFor(claim, 2)
	require.True(t, w.permit(p).Granted)
	_, err := w.Store.Checkpoint(w.ctx, []turns.Checkpoint{{Fence: fenceOf(claim), ResponseID: "resp"}})
	require.NoError(t, err)
	w.bury(w.worker)
	w.worker = w.register()
	v := w.takingOver(claim, 0)
	v.Call, v.MaxCalls = turns.NewCall{}, 0
	require.Equal(t, 2, w.takeOver(v).Calls)
	r := w.read(c, claim.Reply.ID)
	require.Equal(t, []any{int64(2), w.worker, 2, "local", "resp"}, []any{r.Epoch, r.Owner, r.Calls, r.Endpoint, r.ResponseID})
	require.EqualValues(t, 2, w.count("SELECT count(*) FROM provider_calls"))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE call_id = %s AND class = 'transient'", claim.Call.ID.UUID), "as named")
	require.Equal(t, "resp", w.readCall(claim, p.Call.ID).ResponseID)
	w.unchanged(func() { require.Zero(t, w.takeOver(v)) })
}

func aTakeoverMovesToItsCall(t *testing.T, w *world) {
	c, claim := w.deserted()
	v := w.takingOver(claim, 3)
	v.Call.Route, v.Call.RequestHash = spareRoute, []byte("spare")
	require.True(t, w.takeOver(v).Won)
	r := w.read(c, claim.Reply.ID)
	require.Equal(t, []any{"spare", "openai", "demo-2", []byte("spare")}, []any{r.Endpoint, r.Provider, r.ProviderModel, r.RequestHash})
	equal(t, openOf(v.Call), w.readCall(claim, v.Call.ID), ageless)
}

func oneOfManyTakeovers(t *testing.T, w *world) {
	c, claim := w.deserted()
	many := make([]turns.Takeover, 6)
	for i := range many {
		many[i] = w.takingOver(claim, 3)
		many[i].Owner = w.register()
	}
	var results [6]turns.TakeoverResult
	var errs [6]error
	atOnce(len(many), func(i int) { results[i], errs[i] = w.Store.TakeOver(w.ctx, many[i]) })
	winner := -1
	for i, r := range results {
		require.NoError(t, errs[i])
		if r.Won {
			require.Equal(t, -1, winner, "two takeovers were won")
			winner = i
		}
	}
	require.GreaterOrEqual(t, winner, 0)
	r := w.read(c, claim.Reply.ID)
	require.Equal(t, []any{many[winner].Owner, int64(2), 2}, []any{r.Owner, r.Epoch, r.Calls})
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE end_time IS NULL AND call_id = %s", many[winner].Call.ID.UUID))
	require.EqualValues(t, 2, w.count("SELECT count(*) FROM provider_calls"))
}

func aTakeoverOrASweep(t *testing.T, w *world) {
	for range 10 {
		c, claim := w.deserted()
		v, s := w.takingOver(claim, 3), sweeping(claim, 3, opening("ab"))
		var taken turns.TakeoverResult
		var swept bool
		var errs [2]error
		atOnce(2, func(i int) {
			if i == 0 {
				taken, errs[0] = w.Store.TakeOver(w.ctx, v)
			} else {
				swept, errs[1] = w.Store.Sweep(w.ctx, s)
			}
		})
		require.Equal(t, [2]error{}, errs)
		require.NotEqual(t, taken.Won, swept)
		require.Equal(t, taken.Won, w.read(c, claim.Reply.ID).Status == turns.StatusInFlight)
	}
}

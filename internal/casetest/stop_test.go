package casetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/storetest"
)

const (
	cancelled  = turnsv1.AbandonReason_ABANDON_REASON_CANCELLED
	superseded = turnsv1.AbandonReason_ABANDON_REASON_SUPERSEDED
	complete   = turnsv1.ReplyStatus_REPLY_STATUS_COMPLETE
	abandoned  = turnsv1.ReplyStatus_REPLY_STATUS_ABANDONED
)

func (w *worker) cancelTurn(in *turnsv1.TurnInput) *turnsv1.Reply {
	w.t.Helper()
	got, err := w.turns.CancelReply(w.ctx, &turnsv1.CancelReplyRequest{ConversationId: in.GetConversationId(), Target: &turnsv1.CancelReplyRequest_TurnId{TurnId: in.GetTurnId()}})
	require.NoError(w.t, err)
	return got.GetReply()
}

func TestTheAnswerToATurnSaysHowLongItsWorkersLeaseHolds(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		first, second := gate("", "mid", 8, 1), gate("", "late", 8, 1)
		first.Times = 1
		w.script(first, second)
		in := ask(newID(), newID(), "hi")
		holds := func(r *turnsv1.Reply) {
			left := r.GetLeaseExpireTime().AsTime().Sub(r.GetCreateTime().AsTime())
			require.Greater(t, left, w.settings.Lease/3)
		}
		got, err := s.submit(in)
		require.NoError(t, err)
		holds(got.GetReply())
		require.NoError(t, w.provider.OpenGate("mid"))
		s.turn(in, nil).completes()
		again, err := s.regenerate(in.GetConversationId(), got.GetReply().GetReplyId(), 0)
		require.NoError(t, err)
		holds(again.GetReply())
		require.NoError(t, w.provider.OpenGate("late"))
	})
}

func (w *worker) regenerate(conversation, reply string, expect int32) (*turnsv1.RegenerateReplyResponse, error) {
	return w.turns.RegenerateReply(w.ctx, &turnsv1.RegenerateReplyRequest{ConversationId: conversation, ReplyId: reply, ExpectedGeneration: expect})
}

func (w *worker) choose(conversation, reply string) (*turnsv1.Reply, error) {
	got, err := w.turns.SelectReply(w.ctx, &turnsv1.SelectReplyRequest{ConversationId: conversation, ReplyId: reply})
	return got.GetReply(), err
}

// stoppable is a rule whose provider stops generating when its client leaves, as a test of that needs.
func stoppable(name string, deltas, at int) scripted.Rule {
	r := gate("", name, deltas, at)
	r.Plan.OnClientGone = scripted.ClientGoneStop
	return r
}

func TestC41AndC43CancelStopsTheProviderFromAnyReplicaAndLeavingDoesNot(t *testing.T) {
	for name, owner := range map[string]int{"the owner's replica": 0, "another replica": 1} {
		t.Run(name, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) {
				workers := []*worker{w.serve(), w.serve()}
				w.script(stoppable("mid", 5000, 500))
				in := ask(newID(), newID(), "hi")
				s := workers[0].turn(in, nil)
				s.at(1 + 499*16)
				leaving := workers[1].turn(in, nil)
				leaving.at(1)
				leaving.cancel()
				leaving.end()
				w.stands(map[string]int{qInFlight: 1})
				got := workers[owner].cancelTurn(in)
				require.Equal(t, abandoned, got.GetStatus())
				require.Equal(t, cancelled, got.GetAbandonReason())
				told := s.abandons(cancelled)
				require.Equal(t, turnsv1.RetryAdvice_RETRY_ADVICE_REGENERATE, told.abandoned.GetAdvice())
				require.NoError(t, w.provider.WaitFinished(w.ctx, 1))
				require.NotNil(t, w.provider.Calls()[0].ClientGoneAt, "the provider saw its client go")
				kept := workers[1].read(in.GetConversationId(), in.GetTurnId()).GetReplies()[0]
				require.Equal(t, told.text, stored(kept), "the partial is exact: all that was shown is kept")
				require.Equal(t, told.offset, kept.GetLength())
				require.Equal(t, kept.GetReplyId(), workers[0].cancelTurn(in).GetReplyId(), "again is no error")
				require.Equal(t, replayed, workers[1].turn(in, nil).abandons(cancelled).result)
				w.paid(1, 1)
				w.stands(map[string]int{qOpen: 0, `SELECT count(*) FROM provider_calls WHERE token_source = 'estimated' AND output_tokens > 0`: 1})
			})
		})
	}
}

func TestCancelOfWhatHasEndedChangesNothing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(plain(8))
		in := ask(newID(), newID(), "hi")
		s.turn(in, nil).completes()
		require.Equal(t, complete, s.cancelTurn(in).GetStatus())
		require.Equal(t, replayed, s.turn(in, nil).completes().result)
		_, err := s.turns.CancelReply(w.ctx, &turnsv1.CancelReplyRequest{ConversationId: in.GetConversationId(), Target: &turnsv1.CancelReplyRequest_ReplyId{ReplyId: newID()}})
		w.fails(err, codes.NotFound, "NOT_FOUND", "DO_NOT_RETRY")
	})
}

func TestACancelOfADeadWorkersReplyEndsItAtOnceAndNothingStartsInItAgain(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.settings.Sweep = time.Hour // only those who ask
		dying, die := w.cutOff()
		other := w.serve()
		w.script(gate("", "never", 64, 20))
		in := ask(newID(), newID(), "hi")
		dying.turn(in, nil).at(1 + 19*16)
		die()
		got := other.cancelTurn(in) // silent owner: after the grace; buried: at once
		require.Equal(t, abandoned, got.GetStatus())
		require.Equal(t, cancelled, got.GetAbandonReason())
		require.Equal(t, replayed, other.turn(in, nil).abandons(cancelled).result)
		w.paid(1, 1)
		w.stands(map[string]int{qLive: 0, qOpen: 0})
	})
}

func TestC47RegenerateReplacesOneReplyAndADoubleClickIsOne(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		one, two := w.serve(), w.serve()
		w.script(scripted.Rule{Match: scripted.Match{Nth: 1}, Plan: scripted.Plan{Blocks: []scripted.Block{{Text: "first"}}}},
			scripted.Rule{Match: scripted.Match{Nth: 1}, Plan: scripted.Plan{Blocks: []scripted.Block{{Text: "second"}}}}, plain(4))
		conversation := newID()
		first, second := ask(conversation, newID(), "turn 1"), ask(conversation, newID(), "turn 2")
		r1 := one.turn(first, nil).completes()
		one.turn(second, nil).completes()
		answers := make([]*turnsv1.RegenerateReplyResponse, 2)
		var clicks sync.WaitGroup
		for i, s := range []*worker{one, two} {
			clicks.Go(func() {
				var err error
				answers[i], err = s.regenerate(conversation, r1.reply, 0)
				require.NoError(t, err)
			})
		}
		clicks.Wait()
		require.Equal(t, answers[0].GetReply().GetReplyId(), answers[1].GetReply().GetReplyId())
		require.NotEqual(t, answers[0].GetReplayed(), answers[1].GetReplayed())
		one.follow(conversation, answers[0].GetReply().GetReplyId(), 0).completes()
		late, err := two.regenerate(conversation, r1.reply, 0)
		require.NoError(t, err)
		require.True(t, late.GetReplayed())
		w.paid(3, 3)
		read := one.read(conversation, first.GetTurnId())
		require.Equal(t, int32(2), read.GetTurn().GetGeneration())
		require.Equal(t, superseded, read.GetReplies()[0].GetAbandonReason())
		require.Equal(t, r1.text, stored(read.GetReplies()[0]), "the old text is kept")
		require.Equal(t, complete, read.GetReplies()[1].GetStatus())
		require.Equal(t, r1.reply, one.read(conversation, second.GetTurnId()).GetTurn().GetParentId(), "the later turn stays on its branch")
		w.stands(map[string]int{qLive: 2, qReplies: 3})
		require.Equal(t, read.GetReplies()[1].GetReplyId(), one.turn(first, nil).completes().reply, "the turn sent again gets what is live")
	})
}

func TestSelectBringsBackAFinishedReplyAndAStaleClickMakesNothing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(plain(4))
		in := ask(newID(), newID(), "hi")
		conversation := in.GetConversationId()
		r1 := s.turn(in, nil).completes().reply
		made, err := s.regenerate(conversation, r1, 1)
		require.NoError(t, err)
		r2 := made.GetReply().GetReplyId()
		s.follow(conversation, r2, 0).completes()
		got, err := s.choose(conversation, r1)
		require.NoError(t, err)
		require.Equal(t, complete, got.GetStatus())
		require.Equal(t, r1, s.turn(in, nil).completes().reply)
		stale, err := s.regenerate(conversation, r1, 1) // the second click of the first regenerate, late
		require.NoError(t, err)
		require.True(t, stale.GetReplayed())
		w.paid(2, 2)
		meant, err := s.regenerate(conversation, r1, 2)
		require.NoError(t, err)
		require.False(t, meant.GetReplayed())
		s.follow(conversation, meant.GetReply().GetReplyId(), 0).completes()
		w.paid(3, 3)
		w.stands(map[string]int{qLive: 1, qReplies: 3})
	})
}

func TestWhatCannotBeChosenOrReplacedIsRefused(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(stoppable("mid", 64, 8))
		in := ask(newID(), newID(), "hi")
		conversation := in.GetConversationId()
		running := s.turn(in, nil)
		reply := running.at(1).reply
		_, err := s.regenerate(conversation, reply, 0)
		meta := w.fails(err, codes.FailedPrecondition, "WRONG_STATE", "DO_NOT_RETRY")
		require.Equal(t, "in_flight", meta["status"])
		s.cancelTurn(in)
		running.abandons(cancelled)
		_, err = s.choose(conversation, reply)
		w.fails(err, codes.FailedPrecondition, "WRONG_STATE", "DO_NOT_RETRY")
		for _, id := range []string{newID(), in.GetTurnId()} {
			_, err = s.choose(conversation, id)
			w.fails(err, codes.NotFound, "NOT_FOUND", "DO_NOT_RETRY")
			_, err = s.regenerate(conversation, id, 0)
			w.fails(err, codes.NotFound, "NOT_FOUND", "DO_NOT_RETRY")
		}
		w.script(plain(4))
		again, err := s.regenerate(conversation, reply, 0) // a cancelled turn is tried again only so
		require.NoError(t, err)
		s.follow(conversation, again.GetReply().GetReplyId(), 0).completes()
		_, err = s.regenerate(conversation, reply, 2)
		meta = w.fails(err, codes.FailedPrecondition, "REPLY_CHANGED", "DO_NOT_RETRY")
		require.Equal(t, again.GetReply().GetReplyId(), meta["live_reply_id"])
	})
}

func TestC47CancelAgainstRegenerateLeavesOneLiveReply(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		one, two := w.serve(), w.serve()
		w.script(plain(4))
		in := ask(newID(), newID(), "hi")
		r1 := one.turn(in, nil).completes().reply
		for generation := int32(1); generation <= 5; generation++ {
			var race sync.WaitGroup
			race.Go(func() { _, _ = one.regenerate(in.GetConversationId(), r1, generation) })
			race.Go(func() { two.cancelTurn(in) })
			race.Wait()
			w.eventually(func() bool { return w.number(qInFlight) == 0 })
			require.LessOrEqual(t, w.number(qLive), 1)
			replies := one.read(in.GetConversationId(), in.GetTurnId()).GetReplies()
			r1 = replies[len(replies)-1].GetReplyId()
		}
		w.stands(map[string]int{qOpen: 0})
	})
}

func TestInterruptStopsWhatRunsAndKeepsItsPartial(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		one, two := w.serve(), w.serve()
		w.script(scripted.Rule{Match: scripted.Match{Nth: 1}, Plan: stoppable("mid", 64, 20).Plan}, plain(4))
		conversation := newID()
		first, second := ask(conversation, newID(), "one"), ask(conversation, newID(), "two")
		second.OnBusy = turnsv1.OnBusy_ON_BUSY_INTERRUPT
		running := one.turn(first, nil)
		running.at(1 + 19*16)
		two.turn(second, nil).completes()
		told := running.abandons(cancelled)
		require.Equal(t, told.text, stored(one.read(conversation, first.GetTurnId()).GetReplies()[0]))
		w.paid(2, 2)
		w.stands(map[string]int{qUsers: 2, qLive: 1})
	})
}

// wakes is a worker whose database goes away and comes back.
func (w *world) wakes() (s *worker, down, up func()) {
	faults := storetest.NewFaults(w.store())
	return w.serveOn(faults), func() { faults.Down(turns.Unavailable(errors.New("cut off"))) }, func() { faults.Down(nil) }
}

func TestAWorkerThatComesBackInTheMiddleRevivesItsReply(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		paused, down, up := w.wakes()
		other := w.serve()
		w.script(gate("", "mid", 64, 20))
		in := ask(newID(), newID(), "hi")
		s := paused.turn(in, nil)
		seen := s.at(1 + 19*16)
		down()
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		up()
		w.eventually(func() bool { return w.number(qInFlight) == 1 }) // back, under the next epoch
		require.NoError(t, w.provider.OpenGate("mid"))
		s.completes()
		again := other.turn(in, nil).completes()
		require.Equal(t, replayed, again.result)
		require.Equal(t, seen.reply, again.reply)
		require.Len(t, again.text, 64*16)
		w.paid(1, 1)
		w.stands(map[string]int{qLive: 1, qReplies: 1, qLedger: 1, qOpen: 0, qWasted: 0, qEpochTwo: 1})
	})
}

func TestARevivalWithoutAnAnswerIsReadAgainAndNeverAssumed(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		faults := storetest.NewFaults(w.store())
		paused := w.serveOn(faults)
		w.serve() // which sweeps
		w.script(gate("", "mid", 64, 20))
		in := ask(newID(), newID(), "hi")
		s := paused.turn(in, nil)
		s.at(1 + 19*16)
		faults.Down(turns.Unavailable(errors.New("cut off")))
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		faults.LoseAnswer("Revive")
		faults.Down(nil)
		w.eventually(func() bool { return w.number(qInFlight) == 1 })
		require.NoError(t, w.provider.OpenGate("mid"))
		require.Len(t, s.completes().text, 64*16)
		w.paid(1, 1)
		w.stands(map[string]int{qLive: 1, qReplies: 1, qLedger: 1, qOpen: 0, qWasted: 0, qEpochTwo: 1})
	})
}

func TestAWorkerThatComesBackTooLateKeepsWhatItPaidForAsWaste(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		paused, down, up := w.wakes()
		other := w.serve()
		first := gate("", "mid", 64, 20)
		first.Times = 1
		w.script(first, plain(16))
		in := ask(newID(), newID(), "hi")
		lost := paused.turn(in, nil)
		lost.at(1 + 19*16)
		down()
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		other.turn(in, nil).completes() // the slot is taken
		require.NoError(t, w.provider.OpenGate("mid"))
		require.NoError(t, w.provider.WaitFinished(w.ctx, 2))
		up()
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE settled_at IS NOT NULL`) == 2 })
		replies := other.read(in.GetConversationId(), in.GetTurnId()).GetReplies()
		require.Equal(t, abandoned, replies[0].GetStatus())
		require.Equal(t, complete, replies[1].GetStatus())
		require.Len(t, stored(replies[1]), 16*16, "the live reply is the second one's alone")
		w.paid(2, 2)
		w.stands(map[string]int{qLive: 1, qReplies: 2, qLedger: 2, qOpen: 0})
		require.Positive(t, w.number(qWasted))
	})
}

func TestC53ARetryAfterPartialOutputIsANewReplyThatSaysSo(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(failing(1, scripted.Step{At: scripted.AfterDelta(20), Do: scripted.DoReset}), plain(16))
		in := askOf(model)
		first := s.turn(in, nil).abandons(ambiguous)
		again := s.turn(in, &turnsv1.Cursor{ReplyId: first.reply, Offset: first.offset}).completes()
		require.Equal(t, first.reply, again.restarted.GetPreviousReplyId())
		require.False(t, again.restarted.GetContinues())
		require.Len(t, again.text, 16*16, "the new reply holds one attempt's text")
		require.Positive(t, w.number(qWasted))
	})
}

func TestC54AnAttemptIsStartedOnceForItsFollowers(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(failing(2, scripted.Step{At: scripted.AtAfterHeaders, Do: scripted.DoErrorEvent, Error: "overloaded_error"}), plain(16))
		got := s.turn(askOf(model), nil).completes()
		require.Equal(t, "accepted", got.first)
		require.Len(t, got.text, 16*16)
		w.paid(3, 3)
		w.stands(map[string]int{qReplies: 1})
	})
}

func TestC45AReplyWhoseFollowersStayAwayIsStoppedAndNotBefore(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		one, two := w.serve(), w.serve()
		w.script(stoppable("mid", 64, 20))
		in := ask(newID(), newID(), "hi")
		in.OnDisconnect = turnsv1.OnDisconnect_ON_DISCONNECT_CANCEL
		in.DisconnectGrace = durationpb.New(600 * time.Millisecond)
		here := one.turn(in, nil)
		here.at(1 + 19*16)
		elsewhere := two.follow(in.GetConversationId(), here.at(1).reply, 0)
		elsewhere.at(1 + 19*16)
		here.cancel() // the owner's last follower is gone, and another replica has one
		here.end()
		w.eventually(func() bool {
			return w.number(`SELECT count(*) FROM turns WHERE status = 'in_flight' AND followed_until IS NOT NULL`) == 1
		})
		back := one.turn(in, nil) // within the grace: no interruption
		back.at(1 + 19*16)
		elsewhere.cancel()
		elsewhere.end()
		w.stands(map[string]int{qInFlight: 1})
		back.cancel()
		back.end()
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		got := one.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[0]
		require.Equal(t, turnsv1.AbandonReason_ABANDON_REASON_DISCONNECTED, got.GetAbandonReason())
		require.Equal(t, uint32(1+20*16), got.GetLength())
		require.NoError(t, w.provider.WaitFinished(w.ctx, 1))
		require.NotNil(t, w.provider.Calls()[0].ClientGoneAt)
		w.stands(map[string]int{qOpen: 0, `SELECT count(*) FROM provider_calls WHERE output_tokens > 0`: 1})
	})
}

func TestC19AHungProviderIsEndedByItsLimitsAndTheNextTurnIsToldWhatBlocks(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.limits.Idle = 700 * time.Millisecond
		s := w.serve()
		w.script(failing(1, scripted.Step{At: scripted.AtAfterHeaders, Do: scripted.DoSilence}), plain(4))
		in := ask(newID(), newID(), "hi")
		hung := s.turn(in, nil)
		hung.until(func(s state) bool { return s.reply != "" })
		next := ask(in.GetConversationId(), newID(), "anyone there?")
		_, err := s.submit(next)
		meta := w.fails(err, codes.FailedPrecondition, "CONVERSATION_BUSY", "SAME_ID_AFTER_WAIT")
		require.Equal(t, in.GetTurnId(), meta["turn_id"])
		require.NotEmpty(t, meta["age_ms"])
		require.NotEmpty(t, meta["lease_expires_in_ms"])
		hung.abandons(ambiguous)
		s.turn(next, nil).completes()
	})
}

func TestALateCancelOfOneReplyDoesNotStopTheNextGeneration(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(scripted.Rule{Match: scripted.Match{Nth: 1}, Plan: stoppable("first", 64, 20).Plan}, gate("", "second", 64, 20))
		in := ask(newID(), newID(), "hi")
		running := s.turn(in, nil)
		old := running.at(1 + 19*16).reply
		s.cancelTurn(in)
		running.abandons(cancelled)
		made, err := s.regenerate(in.GetConversationId(), old, 0)
		require.NoError(t, err)
		again := s.turn(in, nil)
		again.at(1 + 19*16)
		cancel := func(reply string) *turnsv1.Reply {
			got, err := s.turns.CancelReply(w.ctx, &turnsv1.CancelReplyRequest{ConversationId: in.GetConversationId(), Target: &turnsv1.CancelReplyRequest_ReplyId{ReplyId: reply}})
			require.NoError(t, err)
			return got.GetReply()
		}
		require.Equal(t, old, cancel(old).GetReplyId(), "the answer is the reply that was named")
		w.stands(map[string]int{qInFlight: 1})
		require.NoError(t, w.provider.OpenGate("second"))
		again.completes()
		next := made.GetReply().GetReplyId()
		other, err := s.regenerate(in.GetConversationId(), next, 0)
		require.NoError(t, err)
		s.follow(in.GetConversationId(), other.GetReply().GetReplyId(), 0).completes()
		_, err = s.choose(in.GetConversationId(), next)
		require.NoError(t, err)
		require.Equal(t, superseded, cancel(other.GetReply().GetReplyId()).GetAbandonReason())
		require.Equal(t, next, s.turn(in, nil).completes().reply)
	})
}

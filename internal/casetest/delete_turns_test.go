package casetest

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/turnd/turnd/internal/tenanttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

func TestADeletedTurnTakesTheReplyThatRunsBelowItAlongAndNothingBesideIt(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		one, two := w.serve(), w.serve()
		w.script(plain(8))
		root := ask(newID(), newID(), "root")
		conversation := root.GetConversationId()
		r1 := one.turn(root, nil).completes().reply
		gone := under(conversation, r1, "a secret")
		r2 := one.turn(gone, nil).completes().reply
		beside := under(conversation, r1, "beside")
		r3 := one.turn(beside, nil).completes()
		w.script(stoppable("mid", 5000, 500))
		deep := under(conversation, r2, "a deep secret")
		running := one.turn(deep, nil)
		r4 := running.at(1 + 499*16).reply
		watching := two.follow(conversation, r4, 0)
		watching.at(1)

		require.EqualValues(t, 2, two.deleteTurn(conversation, gone.GetTurnId()))
		running.abandons(deletedReason)
		watching.abandons(deletedReason)
		w.clientGone(3)
		w.eventually(func() bool { return w.provider.Counts().Running == 0 })
		require.Zero(t, one.deleteTurn(conversation, gone.GetTurnId()), "again is no error")
		require.Zero(t, one.deleteTurn(conversation, deep.GetTurnId()))
		w.stands(map[string]int{qOpen: 0, qLedger: 4, qInFlight: 0, qReplies: 2, qUsers: 4,
			`SELECT count(*) FROM turns WHERE erased AND content = '' AND options = ''`:           2,
			`SELECT count(*) FROM provider_calls WHERE request_body IS NOT NULL`:                  0,
			`SELECT count(*) FROM provider_calls WHERE waste_cause = 'deleted'`:                   1,
			`SELECT count(*) FROM reply_chunks WHERE reply_id NOT IN (SELECT id FROM turns)`:      0,
			`SELECT count(*) FROM turns WHERE content LIKE '%secret%' OR options LIKE '%secret%'`: 0,
		})
		require.NotContains(t, w.archived(), "secret")
		w.refusesTurn(two, gone, r2)
		w.refusesTurn(one, deep, r4)
		_, err := two.turns.DeleteTurn(w.as("stranger"), &turnsv1.DeleteTurnRequest{ConversationId: conversation, TurnId: gone.GetTurnId()})
		w.fails(err, codes.NotFound, "NOT_FOUND", "DO_NOT_RETRY")

		entries := one.wayTo(conversation, r3.reply)
		require.Equal(t, beside.GetTurnId(), entries[0].GetTurn().GetTurnId())
		require.NotContains(t, entries[0].GetSiblingTurnIds(), gone.GetTurnId())
		got, err := one.convs.GetConversation(w.ctx, &turnsv1.GetConversationRequest{ConversationId: conversation})
		require.NoError(t, err)
		require.Equal(t, r1, got.GetConversation().GetLeafId(), "the leaf is what the turn hung below")
		again := two.turn(beside, nil).completes()
		require.Equal(t, replayed, again.result)
		require.Equal(t, r3.text, again.text)
		w.paid(4, 4)

		w.script(plain(4))
		next := ask(conversation, newID(), "on")
		two.turn(next, nil).completes()
		require.Equal(t, []string{"root", "on"}, one.history(conversation))
		one.turn(under(conversation, r3.reply, "further"), nil).completes()
		require.Equal(t, []string{"root", "beside", "further"}, one.history(conversation))
		made, err := one.regenerate(conversation, r3.reply, 0)
		require.NoError(t, err)
		one.follow(conversation, made.GetReply().GetReplyId(), 0).completes()
		w.paid(7, 7)
	})
}

// wayTo is the turns on the way to a leaf, newest first.
func (s *worker) wayTo(conversation, leaf string) []*turnsv1.TurnEntry {
	s.t.Helper()
	list, err := s.turns.ListTurns(s.ctx, &turnsv1.ListTurnsRequest{ConversationId: conversation, LeafId: leaf})
	require.NoError(s.t, err)
	return list.GetEntries()
}

// refusesTurn demands that every method says that a turn was deleted.
func (w *world) refusesTurn(s *worker, in *turnsv1.TurnInput, reply string) {
	w.t.Helper()
	conversation := in.GetConversationId()
	for _, method := range s.methods("TurnService.") {
		if method.String() != "TurnService.DeleteTurn" {
			w.t.Log(method)
			err := s.plainly(method, tenanttest.IDs{Conversation: conversation, Turn: in.GetTurnId(), Reply: reply})
			w.fails(err, codes.FailedPrecondition, "TURN_DELETED", "DO_NOT_RETRY")
		}
	}
	_, err := s.submit(in)
	w.fails(err, codes.FailedPrecondition, "TURN_DELETED", "DO_NOT_RETRY")
	w.fails(s.turn(in, &turnsv1.Cursor{ReplyId: reply, Offset: 3}).end().err, codes.FailedPrecondition, "TURN_DELETED", "DO_NOT_RETRY")
	for _, parent := range []string{in.GetTurnId(), reply} {
		_, err = s.submit(under(conversation, parent, "below it"))
		w.fails(err, codes.FailedPrecondition, "TURN_DELETED", "DO_NOT_RETRY")
	}
	w.fails(s.followTurn(in).end().err, codes.FailedPrecondition, "TURN_DELETED", "DO_NOT_RETRY")
}

func TestADeletedTurnInLineIsTakenOutAndThoseBehindItGoOn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		one, two := w.serve(), w.serve()
		w.script(gate("first", "mid", 8, 2), plain(8))
		first, running := one.busyAt()
		conversation := first.GetConversationId()
		second, third := enqueuing(conversation, "second"), enqueuing(conversation, "third")
		a := one.turn(second, nil)
		a.waits(0)
		b := two.turn(third, nil)
		b.waits(1)
		require.EqualValues(t, 1, two.deleteTurn(conversation, second.GetTurnId()))
		w.fails(a.end().err, codes.FailedPrecondition, "TURN_DELETED", "DO_NOT_RETRY")
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		b.completes()
		require.Equal(t, []string{"first", "third"}, one.history(conversation))
		w.paid(2, 2)
		w.stands(map[string]int{qInLine: 0, qOpen: 0})
	})
}

func TestATurnWithAHeldReplyIsDeleted(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		in, r := s.hold()
		require.EqualValues(t, 1, s.deleteTurn(in.GetConversationId(), in.GetTurnId()))
		w.stands(map[string]int{qHeld: 0, qOpen: 0, qClosed: 1, qReplies: 0})
		w.refusesTurn(s, in, r.GetReplyId())
		_, err := s.release(r, r.GetEpoch())
		w.fails(err, codes.FailedPrecondition, "TURN_DELETED", "DO_NOT_RETRY")
		s.turn(ask(in.GetConversationId(), newID(), "the conversation is free"), nil).completes()
		w.paid(2, 2)
	})
}

// raceRounds is how often each race is run.
const raceRounds = 5

func TestADeletionAndAClaimAtOnceLeaveNothingInFlightAndNoContent(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		one, two := w.serve(), w.serve()
		w.script(plain(8))
		for range raceRounds {
			in := ask(newID(), newID(), "hi")
			one.turn(in, nil).completes()
			next := ask(in.GetConversationId(), newID(), "a secret")
			var race sync.WaitGroup
			race.Go(func() { one.turn(next, nil).end() })
			race.Go(func() { two.deleteConversation(in.GetConversationId()) })
			race.Wait()
			w.isErased(in.GetConversationId(), w.number(`SELECT count(*) FROM provider_calls WHERE`+w.ofKey(in.GetConversationId())))
			one.refusesAll(next, newID())
		}
		for range raceRounds {
			in := ask(newID(), newID(), "hi")
			reply := one.turn(in, nil).completes().reply
			next := under(in.GetConversationId(), reply, "a secret")
			var race sync.WaitGroup
			race.Go(func() { one.turn(next, nil).end() })
			race.Go(func() { two.deleteTurn(in.GetConversationId(), in.GetTurnId()) })
			race.Wait()
			w.nothingIsLeftRunning(in.GetConversationId())
		}
	})
}

// nothingIsLeftRunning demands that all turns of a conversation were erased.
func (w *world) nothingIsLeftRunning(conversation string) {
	w.t.Helper()
	w.eventually(func() bool { return w.number(qInFlight) == 0 && w.number(qOpen) == 0 })
	of := ` WHERE` + w.ofKey(conversation)
	w.stands(map[string]int{
		`SELECT count(*) FROM turns` + of + ` AND (role = 'assistant' OR content <> '' OR options <> '' OR NOT erased)`: 0,
		`SELECT count(*) FROM reply_chunks` + of:                                     0,
		`SELECT count(*) FROM provider_calls` + of + ` AND request_body IS NOT NULL`: 0,
	})
}

func TestADeletionAndARegenerateAtOnceLeaveNothingInFlightAndNoContent(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		one, two := w.serve(), w.serve()
		w.script(plain(8))
		for range raceRounds {
			in := ask(newID(), newID(), "hi")
			reply := one.turn(in, nil).completes().reply
			var race sync.WaitGroup
			race.Go(func() { _, _ = one.regenerate(in.GetConversationId(), reply, 0) })
			race.Go(func() { two.deleteTurn(in.GetConversationId(), in.GetTurnId()) })
			race.Wait()
			w.nothingIsLeftRunning(in.GetConversationId())
			w.refusesTurn(one, in, reply)

			in = ask(newID(), newID(), "hi")
			reply = one.turn(in, nil).completes().reply
			race.Go(func() { _, _ = one.regenerate(in.GetConversationId(), reply, 0) })
			race.Go(func() { two.deleteConversation(in.GetConversationId()) })
			race.Wait()
			w.isErased(in.GetConversationId(), w.number(`SELECT count(*) FROM provider_calls WHERE`+w.ofKey(in.GetConversationId())))
		}
		w.eventually(func() bool { return w.number(qInFlight) == 0 && w.number(qOpen) == 0 })
	})
}

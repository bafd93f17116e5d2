package casetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/storetest"
)

const (
	queued  = turnsv1.DeliveryResult_DELIVERY_RESULT_QUEUED
	refused = turnsv1.AbandonReason_ABANDON_REASON_PROVIDER_REFUSED

	qInLine = `SELECT count(*) FROM turns WHERE waiting <> ''`
)

// enqueuing is a turn that waits where it finds its conversation busy.
func enqueuing(conversation, text string) *turnsv1.TurnInput {
	in := ask(conversation, newID(), text)
	in.OnBusy = turnsv1.OnBusy_ON_BUSY_ENQUEUE
	return in
}

// waits demands that a stream stands at a place of its line.
func (s *stream) waits(place int32) state {
	s.w.t.Helper()
	return s.until(func(s state) bool { return len(s.places) > 0 && s.places[len(s.places)-1] == place })
}

// followTurn follows whatever reply a turn has or will have.
func (w *worker) followTurn(in *turnsv1.TurnInput) *stream {
	ctx, cancel := context.WithCancel(w.ctx)
	s := &stream{w: w, cancel: cancel, done: make(chan struct{}), changed: make(chan struct{})}
	rpc, err := w.turns.FollowReply(ctx, &turnsv1.FollowReplyRequest{ConversationId: in.GetConversationId(),
		Target: &turnsv1.FollowReplyRequest_TurnId{TurnId: in.GetTurnId()}})
	require.NoError(w.t, err)
	s.start(nil, func() (*turnsv1.Event, error) {
		m, err := rpc.Recv()
		return m.GetEvent(), err
	})
	return s
}

// busyAt is a conversation whose reply waits at a gate "mid".
func (s *worker) busyAt() (*turnsv1.TurnInput, *stream) {
	first := ask(newID(), newID(), "first")
	running := s.turn(first, nil)
	running.at(1)
	return first, running
}

// madeFrom demands that a call's prompt had the words of these texts and no others.
func (w *world) madeFrom(call int, texts ...string) {
	w.t.Helper()
	require.Equal(w.t, len(strings.Fields(strings.Join(texts, " "))), w.provider.Calls()[call-1].InputTokens, "call %d", call)
}

// history is the texts of the conversation's user turns, oldest first.
func (s *worker) history(conversation string) (texts []string) {
	s.t.Helper()
	list, err := s.turns.ListTurns(s.ctx, &turnsv1.ListTurnsRequest{ConversationId: conversation})
	require.NoError(s.t, err)
	for _, e := range list.GetEntries() {
		texts = append([]string{e.GetTurn().GetContent()[0].GetText().GetText()}, texts...)
	}
	return texts
}

func TestC26TurnsThatWaitStartInTheirOrderEachFromAWholeHistory(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		workers := []*worker{w.serve(), w.serve()}
		w.script(gate("first", "mid", 8, 2), plain(8))
		first, running := workers[0].busyAt()
		conversation := first.GetConversationId()
		second, third := enqueuing(conversation, "second"), enqueuing(conversation, "third")
		a := workers[0].turn(second, nil)
		require.Equal(t, queued, a.waits(0).result)
		b := workers[1].turn(third, nil)
		require.Equal(t, queued, b.waits(1).result)
		w.stands(map[string]int{qInLine: 2, qReplies: 1, qInFlight: 1, qUsers: 3})
		require.Equal(t, []string{"first"}, workers[1].history(conversation), "what waits is no part of the history")
		require.Empty(t, workers[1].read(conversation, second.GetTurnId()).GetReplies())
		require.NoError(t, w.provider.OpenGate("mid"))
		one, two := running.completes(), a.completes()
		require.Equal(t, "accepted", two.first)
		require.Equal(t, int32(1), b.completes().places[0])
		require.Equal(t, []string{"first", "second", "third"}, workers[0].history(conversation))
		w.paid(3, 3)
		w.madeFrom(2, "first", one.text, "second")
		w.madeFrom(3, "first", one.text, "second", two.text, "third")
		w.stands(map[string]int{qInLine: 0, qLive: 3, qReplies: 3, qOpen: 0})
	})
}

func TestC09TwoTurnsAtTheSameInstantAreBothAnsweredInTheServersOrder(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		workers := []*worker{w.serve(), w.serve()}
		w.script(plain(8))
		conversation := newID()
		first := workers[0].turn(ask(conversation, newID(), "first"), nil).completes()
		var tabs sync.WaitGroup
		got := make([]state, 2)
		for i := range got {
			tabs.Go(func() { got[i] = workers[i].turn(enqueuing(conversation, fmt.Sprint("tab ", i)), nil).end() })
		}
		tabs.Wait()
		for _, s := range got {
			require.NoError(t, s.err)
			require.NotNil(t, s.completed, "%+v", s)
		}
		texts := workers[0].history(conversation)
		require.Len(t, texts, 3)
		require.ElementsMatch(t, []string{"first", "tab 0", "tab 1"}, texts)
		w.paid(3, 3)
		w.madeFrom(2, "first", first.text, texts[1])
		w.madeFrom(3, "first", first.text, texts[1], got[texts[1][4]-'0'].text, texts[2])
	})
}

func TestC09TheSameTurnTwiceInLineIsOneTurn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		workers := []*worker{w.serve(), w.serve()}
		w.script(gate("first", "mid", 8, 2), plain(8))
		first, running := workers[0].busyAt()
		second := enqueuing(first.GetConversationId(), "second")
		got, err := workers[0].submit(second)
		require.NoError(t, err)
		require.Equal(t, queued, got.GetResult())
		require.Nil(t, got.GetReply())
		require.Equal(t, int64(3), got.GetTurn().GetSeq())
		require.Zero(t, w.counted("turnd.duplicates", "layer", "client"))
		twice := []*stream{workers[0].turn(second, nil), workers[1].turn(second, nil), workers[1].followTurn(second)}
		for _, s := range twice {
			s.waits(0)
		}
		require.EqualValues(t, 2, w.counted("turnd.duplicates", "layer", "client"))
		require.EqualValues(t, 3, w.counted("turnd.submissions", "result", "queued"))
		other := enqueuing(first.GetConversationId(), "something else")
		other.TurnId = second.GetTurnId()
		_, err = workers[1].submit(other)
		w.fails(err, codes.AlreadyExists, "TURN_ID_REUSED", "NEW_ID")
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		for i, s := range twice {
			got := s.completes()
			require.Equal(t, twice[0].state.text, got.text)
			require.Equal(t, []string{"accepted", "accepted", "queued"}[i], got.first)
		}
		w.paid(2, 2)
		require.Equal(t, replayed, workers[1].turn(second, nil).completes().result)
	})
}

func TestALineOutlivesItsWorkers(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		dying, die := w.cutOff()
		w.script(scripted.Rule{Match: scripted.Match{Text: "first"}, Times: 1, Plan: gate("first", "never", 8, 2).Plan}, plain(8))
		first, _ := dying.busyAt()
		var line []*turnsv1.TurnInput
		for _, text := range []string{"second", "third", "fourth"} {
			in := enqueuing(first.GetConversationId(), text)
			_, err := dying.submit(in)
			require.NoError(t, err)
			line = append(line, in)
		}
		die()
		other := w.serve()
		told := []string{"first"}
		for _, in := range line {
			told = append(told, in.GetContent()[0].GetText().GetText(), other.followTurn(in).completes().text)
		}
		require.Equal(t, []string{"first", "second", "third", "fourth"}, other.history(first.GetConversationId()))
		w.stands(map[string]int{qInLine: 0, qLive: 3, qReplies: 4, qUsers: 4})
		for i := range line {
			w.madeFrom(i+2, told[:2+2*i]...)
		}
	})
}

func TestATurnInLineIsTakenOutOfIt(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		workers := []*worker{w.serve(), w.serve()}
		w.script(gate("first", "mid", 8, 2), plain(8))
		first, running := workers[0].busyAt()
		second, third := enqueuing(first.GetConversationId(), "second"), enqueuing(first.GetConversationId(), "third")
		a, b := workers[0].turn(second, nil), workers[0].turn(third, nil)
		a.until(func(s state) bool { return len(s.places) > 0 })
		b.until(func(s state) bool { return len(s.places) > 0 })
		got := workers[1].cancelTurn(second)
		require.Equal(t, abandoned, got.GetStatus())
		require.Equal(t, cancelled, got.GetAbandonReason())
		require.Equal(t, turnsv1.RetryAdvice_RETRY_ADVICE_REGENERATE, a.abandons(cancelled).abandoned.GetAdvice())
		require.Equal(t, got.GetReplyId(), workers[0].cancelTurn(second).GetReplyId(), "again is no error")
		require.Equal(t, replayed, workers[0].turn(second, nil).abandons(cancelled).result)
		b.waits(0)
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		b.completes()
		require.Equal(t, []string{"first", "third"}, workers[0].history(first.GetConversationId()))
		w.paid(2, 2)
		w.stands(map[string]int{qInLine: 0, qLedger: 2})
		again, err := workers[0].regenerate(first.GetConversationId(), got.GetReplyId(), 0)
		require.NoError(t, err)
		workers[0].follow(first.GetConversationId(), again.GetReply().GetReplyId(), 0).completes()
	})
}

func TestALineIsBounded(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.MaxWaiting = 2
		s := w.serve()
		w.script(gate("first", "mid", 8, 2), plain(8))
		first, running := s.busyAt()
		var line []*turnsv1.TurnInput
		for range 2 {
			in := enqueuing(first.GetConversationId(), "next")
			_, err := s.submit(in)
			require.NoError(t, err)
			line = append(line, in)
		}
		_, err := s.submit(enqueuing(first.GetConversationId(), "one more"))
		meta := w.fails(err, codes.ResourceExhausted, "OVERLOADED", "SAME_ID_AFTER_WAIT")
		require.Equal(t, "2", meta["limit"])
		got, err := s.submit(line[1])
		require.NoError(t, err)
		require.Equal(t, queued, got.GetResult(), "who is in line stays there")
		w.stands(map[string]int{qInLine: 2, qUsers: 3})
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		s.followTurn(line[1]).completes()
	})
}

func TestWhatCouldNeverStartIsNotEnqueued(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.limits.WindowTokens = 1000
		s := w.serve()
		w.script(gate("first", "mid", 8, 2), plain(8))
		first, running := s.busyAt()
		unknown := enqueuing(first.GetConversationId(), "x")
		unknown.Options = &turnsv1.GenerationOptions{Model: "nope"}
		_, err := s.submit(unknown)
		w.fails(err, codes.InvalidArgument, "UNKNOWN_MODEL", "DO_NOT_RETRY")
		_, err = s.submit(enqueuing(first.GetConversationId(), strings.Repeat("long ", 2000)))
		w.fails(err, codes.InvalidArgument, "PROMPT_TOO_LARGE", "DO_NOT_RETRY")
		lost := enqueuing(first.GetConversationId(), "x")
		lost.Parent = &turnsv1.TurnInput_ParentId{ParentId: newID()}
		_, err = s.submit(lost)
		w.fails(err, codes.NotFound, "NOT_FOUND", "DO_NOT_RETRY")
		w.stands(map[string]int{qInLine: 0, qUsers: 1})
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
	})
}

func TestATurnThatCantStartDoesNotKeepThoseBehindIt(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(gate("first", "mid", 8, 2), plain(8))
		first, running := s.busyAt()
		bad := enqueuing(first.GetConversationId(), "")
		bad.Content = []*turnsv1.Block{resultOf("no such call", "42")}
		good := enqueuing(first.GetConversationId(), "good")
		a, b := s.turn(bad, nil), s.turn(good, nil)
		a.until(func(s state) bool { return len(s.places) > 0 })
		b.until(func(s state) bool { return len(s.places) > 0 })
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		got := a.abandons(refused)
		require.Equal(t, "INVALID_TOOL_RESULT", got.abandoned.GetProviderCode())
		b.completes()
		w.paid(2, 2)
		require.Equal(t, []string{"first", "good"}, s.history(first.GetConversationId()))
		require.Equal(t, replayed, s.turn(bad, nil).abandons(refused).result)
	})
}

func TestAPlainTurnFindsALineBusyAndAnInterruptGoesAheadOfIt(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Sweep = time.Hour
		s := w.serve()
		w.script(gate("two", "two", 8, 2), gate("first", "mid", 64, 20), plain(8))
		first, running := s.busyAt()
		line := enqueuing(first.GetConversationId(), "later")
		waiting := s.turn(line, nil)
		waiting.waits(0)
		now := s.turn(interrupting(first.GetConversationId()), nil)
		running.abandons(cancelled)
		now.at(1)
		require.Len(t, waiting.until(func(state) bool { return true }).places, 1, "it waits on")
		_, err := s.submit(ask(first.GetConversationId(), newID(), "plain"))
		w.fails(err, codes.FailedPrecondition, "CONVERSATION_BUSY", "SAME_ID_AFTER_WAIT")
		require.NoError(t, w.provider.OpenGate("two"))
		now.completes()
		waiting.completes()
		require.Equal(t, []string{"first", "two", "later"}, s.history(first.GetConversationId()))
		w.paid(3, 3)
	})
}

func TestATurnIsEnqueuedWhileTheReplyBeforeItEnds(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Sweep = time.Hour // no sweep makes up for what was missed
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		for i := range 2 {
			mid := fmt.Sprint("mid", i)
			w.script(gate("first", mid, 8, 2), plain(8))
			first, running := s.busyAt()
			in := enqueuing(first.GetConversationId(), "next")
			// What comes second waits in the store's door until the other is through.
			arrived, open := faults.Gate([]string{"End", "Enqueue"}[i])
			var waiting *stream
			if i == 0 {
				require.NoError(t, w.provider.OpenGate(mid))
				<-arrived
				waiting = s.turn(in, nil)
				waiting.waits(0)
				open()
				running.completes()
			} else {
				waiting = s.turn(in, nil)
				<-arrived
				require.NoError(t, w.provider.OpenGate(mid))
				running.completes()
				open()
			}
			waiting.completes()
		}
		w.stands(map[string]int{qInLine: 0, qLive: 4})
	})
}

func TestALineWaitsForAPlaceAndForTheDatabase(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.MaxInFlight, w.settings.MaxQueue, w.settings.Sweep = 1, 0, 200*time.Millisecond
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		w.script(gate("first", "mid", 8, 2), plain(8))
		first, running := s.busyAt()
		waiting := s.turn(enqueuing(first.GetConversationId(), "next"), nil)
		waiting.waits(0)
		faults.FailNext("Claim", turns.Unavailable(errors.New("away")))
		faults.FailNext("Claim", turns.Unavailable(errors.New("away")))
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		waiting.completes()
	})
}

func TestADrainLetsGoOfThoseWhoWaitAndAnotherWorkerStartsThem(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Sweep = 100 * time.Millisecond
		leaving := w.serve()
		w.script(gate("first", "mid", 8, 2), plain(8))
		first, running := leaving.busyAt()
		in := enqueuing(first.GetConversationId(), "next")
		waiting := leaving.turn(in, nil)
		waiting.waits(0)
		leaving.hub.Drain()
		w.fails(waiting.end().err, codes.Unavailable, "DRAINING", "SAME_ID_NOW")
		other := w.serve()
		again := other.turn(in, nil)
		require.Equal(t, queued, again.waits(0).result)
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		again.completes()
		w.paid(2, 2)
	})
}

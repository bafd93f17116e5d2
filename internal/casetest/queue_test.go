package casetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// crowded is a worker with one place and a queue for one, and a reply that holds the place at a gate.
func (w *world) crowded() (*worker, *stream) {
	w.settings.MaxInFlight, w.settings.MaxQueue = 1, 1
	s := w.serve()
	w.script(gate("first", "mid", 64, 20), plain(16))
	first := s.turn(ask(newID(), newID(), "first"), nil)
	first.at(1)
	return s, first
}

// queues delivers a turn that waits for a place.
func (s *worker) queues(text string) *stream {
	s.t.Helper()
	waiting := s.turn(ask(newID(), newID(), text), nil)
	s.eventually(func() bool { return s.service.Queued() == 1 })
	return waiting
}

func TestATurnWaitsForAPlaceAndTheOneAfterItIsToldToComeLater(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s, first := w.crowded()
		waiting := s.queues("second")
		w.stands(map[string]int{qReplies: 1, qUsers: 1, qConvs: 1})
		refused := s.turn(ask(newID(), newID(), "third"), nil).end()
		w.fails(refused.err, codes.ResourceExhausted, "OVERLOADED", "SAME_ID_AFTER_WAIT")
		require.NoError(t, w.provider.OpenGate("mid"))
		first.completes()
		waiting.completes()
		w.paid(2, 2)
		w.stands(map[string]int{qReplies: 2, qOpen: 0})
	})
}

func TestWhoOnlyListensWaitsForNoPlace(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.MaxInFlight, w.settings.MaxQueue = 1, 0
		s := w.serve()
		w.script(gate("first", "mid", 64, 20), plain(16))
		done, running := ask(newID(), newID(), "before"), ask(newID(), newID(), "first")
		w.serve().turn(done, nil).completes() // elsewhere, so that the one place here is surely free
		first := s.turn(running, nil)
		first.at(1)
		require.Equal(t, replayed, s.turn(done, nil).completes().result)
		repeat := s.turn(running, nil)
		require.Equal(t, attached, repeat.at(1).result)
		w.fails(s.turn(ask(newID(), newID(), "second"), nil).end().err, codes.ResourceExhausted, "OVERLOADED", "SAME_ID_AFTER_WAIT")
		require.NoError(t, w.provider.OpenGate("mid"))
		first.completes()
		repeat.completes()
	})
}

func TestATurnThatHasWaitedLooksAgain(t *testing.T) {
	w := postgresWorld(t)
	s, first := w.crowded()
	w.settings.MaxInFlight, w.settings.MaxQueue = 8, 8
	other := w.serve()
	in := ask(newID(), newID(), "second")
	waiting := s.turn(in, nil)
	w.eventually(func() bool { return s.service.Queued() == 1 })
	other.turn(in, nil).completes() // the same turn, sent to another worker meanwhile
	require.NoError(t, w.provider.OpenGate("mid"))
	first.completes()
	require.Equal(t, replayed, waiting.completes().result)
	w.paid(2, 2)
}

func TestADrainSendsAwayTurnsThatWaitForAPlace(t *testing.T) {
	w := sqliteWorld(t)
	s, first := w.crowded()
	waiting := s.queues("second")
	drained := make(chan error, 1)
	go func() { drained <- s.service.Drain(context.WithoutCancel(w.ctx), patience) }()
	w.fails(waiting.end().err, codes.Unavailable, "DRAINING", "SAME_ID_NOW")
	require.NoError(t, w.provider.OpenGate("mid"))
	first.completes()
	require.NoError(t, <-drained)
	w.stands(map[string]int{qReplies: 1})
}

func TestAReplyThatIsOverAndNotStoredKeepsItsPlace(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.MaxInFlight, w.settings.MaxQueue = 1, 0
		s, faults := w.losing()
		w.finishWithout(faults, s, ask(newID(), newID(), "hi"))
		faults.Down(nil)
		arrived, open := faults.Gate("End")
		<-arrived
		require.Zero(t, w.provider.Counts().Running)
		require.Equal(t, 1, s.service.InFlight())
		next := ask(newID(), newID(), "next")
		w.fails(s.turn(next, nil).end().err, codes.ResourceExhausted, "OVERLOADED", "SAME_ID_AFTER_WAIT")
		open()
		w.eventually(func() bool { return s.service.InFlight() == 0 })
		s.turn(next, nil).completes()
		w.stands(map[string]int{qLive: 2, qOpen: 0})
	})
}

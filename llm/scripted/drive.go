package scripted

import (
	"context"
	"errors"
)

// errClosed ends waits when the server is closed.
var errClosed = errors.New("scripted provider is closed")

// SetScript replaces the script; counts of rules start anew. Calls that run keep their plans, and records, gates and
// stored generations stay.
func (s *Server) SetScript(script Script) error {
	if err := script.Validate(); err != nil {
		return err
	}
	s.current().played.Store(newProgram(script))
	return nil
}

// Reset cuts what runs, waits for it, and begins anew: the script given to New, no calls, all gates shut.
func (s *Server) Reset() {
	s.mu.Lock()
	old := s.era
	if !s.closed {
		s.era = newEra(s.initial, s.options.Now)
	}
	s.mu.Unlock()
	old.end()
}

// OpenGate lets those at the gate, and later ones, pass. It fails only when more gates are named than the server keeps.
func (s *Server) OpenGate(name string) error { return s.current().book.openGate(name) }

// Calls returns the records that are kept, oldest first.
func (s *Server) Calls() []Call { return s.current().book.page(0, "", maxCalls).Calls }

// CallsAfter returns up to 10,000 records after call n, of one idempotency key unless that is empty.
func (s *Server) CallsAfter(n int, key string) CallPage {
	return s.current().book.page(n, key, maxPageSize)
}

// Counts returns the sums since the last reset.
func (s *Server) Counts() Counts { return s.current().book.sums() }

// WaitRequests returns when n requests were read since the last reset. All Wait methods survive a Reset, and fail only when
// the context ends, with its cause, or when the server is closed.
func (s *Server) WaitRequests(ctx context.Context, n int) error {
	return s.await(ctx, func(b *book) bool { return b.counts.Requests >= n })
}

// WaitFinished returns when n calls have ended, however they did.
func (s *Server) WaitFinished(ctx context.Context, n int) error {
	return s.await(ctx, func(b *book) bool { return b.finished >= n })
}

// WaitGate returns when n arrivals at a gate were announced, whether or not it is open.
func (s *Server) WaitGate(ctx context.Context, gate string, n int) error {
	return s.await(ctx, func(b *book) bool { return b.hasArrived(gate, n) })
}

// WaitDeltas returns when n deltas of a call are on the socket, or, once its connection is over, when n were produced.
func (s *Server) WaitDeltas(ctx context.Context, call, n int) error {
	return s.await(ctx, func(b *book) bool { return b.hasDeltas(call, n) })
}

// await asks the current book, and the next one after each reset.
func (s *Server) await(ctx context.Context, holds func(*book) bool) error {
	for {
		e := s.current()
		wait, cancel := context.WithCancelCause(ctx)
		stop := context.AfterFunc(e.ctx, func() { cancel(errClosed) })
		err := e.book.await(wait, func() bool { return holds(e.book) })
		stop()
		cancel(nil)
		if errors.Is(err, errClosed) && s.current() != e {
			continue
		}
		return err
	}
}

package client

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// flushTimeout bounds a write of the record that is made after the caller has left.
const flushTimeout = 5 * time.Second

// slot is the place for the one turn that the store holds. A stream whose turn has been replaced by a later one can no
// longer write to it, so that an old stream never overwrites the record of a new one.
type slot struct {
	store RecordStore
	every time.Duration
	now   func() time.Time
	log   *slog.Logger

	mu    sync.Mutex
	held  *Record // what the store holds or will hold; nil if nothing of this client's
	dirty bool
	saved time.Time
}

// begin writes the record of a turn that is about to be sent. Without it nothing may be sent.
func (s *slot) begin(ctx context.Context, r *Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.store.Save(ctx, r.clone()); err != nil {
		return err
	}
	s.held, s.dirty, s.saved = r.clone(), false, s.now()
	return nil
}

// load returns the record of a turn to go on with, or nil. One that is too old or corrupt is dropped.
func (s *slot) load(ctx context.Context) (*Record, *turnsv1.TurnInput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.store.Load(ctx)
	var in *turnsv1.TurnInput
	if err == nil && r != nil {
		in, err = r.input()
	}
	switch {
	case errors.Is(err, ErrRecordCorrupt):
		s.log.WarnContext(ctx, "record dropped", "error", err)
		return nil, nil, s.store.Clear(ctx)
	case err != nil || r == nil:
		return nil, nil, err
	case r.stale(s.now()):
		s.log.InfoContext(ctx, "record dropped as too old", "turn_id", r.TurnID)
		return nil, nil, s.store.Clear(ctx)
	}
	s.held, s.dirty, s.saved = r.clone(), false, s.now()
	return r, in, nil
}

// note changes the record of a turn. It is written now if it matters much, else when the last write is long enough ago
// or at the next flush: a cursor that lags costs a few events that are read again.
func (s *slot) note(ctx context.Context, turn string, now bool, change func(*Record)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil || s.held.TurnID != turn {
		return
	}
	change(s.held)
	s.dirty = true
	if now || s.now().Sub(s.saved) >= s.every {
		s.write(ctx)
	}
}

// flush writes what a note has left unwritten, even if the caller's context has ended.
func (s *slot) flush(ctx context.Context, turn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil || s.held.TurnID != turn || !s.dirty {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	s.write(ctx)
}

// end clears the record of a turn that is over.
func (s *slot) end(ctx context.Context, turn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil || s.held.TurnID != turn {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	s.held, s.dirty = nil, false
	if err := s.store.Clear(ctx); err != nil {
		s.log.WarnContext(ctx, "record not cleared", "turn_id", turn, "error", err)
	}
}

func (s *slot) write(ctx context.Context) {
	s.saved = s.now() // also if it fails, so that a full disk is not asked again with each event
	if err := s.store.Save(ctx, s.held.clone()); err != nil {
		s.log.WarnContext(ctx, "cursor not recorded", "turn_id", s.held.TurnID, "error", err)
		return
	}
	s.dirty = false
}

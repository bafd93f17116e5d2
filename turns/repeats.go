package turns

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// maxRepeats bounds the turns and layers whose repeats are counted here before they are stored; those of further turns
	// are counted in the metrics alone.
	maxRepeats = 16384
	// repeatsBatch bounds one write of them.
	repeatsBatch = 500
)

// repeatCounts counts repeated deliveries by turn and layer until they are stored, so that a repeat itself writes nothing. The
// zero value is ready.
type repeatCounts struct {
	mu     sync.Mutex
	counts map[repeatOf]repeated
	// missed are the repeats that found no room.
	missed int64
}

type repeatOf struct {
	key   ConversationKey
	turn  TurnID
	layer Layer
}

type repeated struct {
	count       int64
	first, last time.Time
}

func (r *repeatCounts) note(key ConversationKey, turn TurnID, layer Layer, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(repeatOf{key, turn, layer}, repeated{1, at, at})
}

// add counts repeats where there is room for them.
func (r *repeatCounts) add(of repeatOf, more repeated) {
	had, known := r.counts[of]
	switch {
	case !known && len(r.counts) >= maxRepeats:
		r.missed += more.count
		return
	case !known:
		had.first, had.last = more.first, more.last
	}
	if r.counts == nil {
		r.counts = map[repeatOf]repeated{}
	}
	had.count += more.count
	if more.first.Before(had.first) {
		had.first = more.first
	}
	if more.last.After(had.last) {
		had.last = more.last
	}
	r.counts[of] = had
}

// take empties the counts, in the order of their keys, and says how many repeats were missed since.
func (r *repeatCounts) take() (taken []repeatOf, counts map[repeatOf]repeated, missed int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts, missed = r.counts, r.missed
	r.counts, r.missed = nil, 0
	for of := range counts {
		taken = append(taken, of)
	}
	slices.SortFunc(taken, func(a, b repeatOf) int {
		return cmp.Or(bytes.Compare(a.key[:], b.key[:]), bytes.Compare(a.turn.UUID[:], b.turn.UUID[:]), cmp.Compare(a.layer, b.layer))
	})
	return taken, counts, missed
}

// putBack keeps counts that were not stored for the next time.
func (r *repeatCounts) putBack(left []repeatOf, counts map[repeatOf]repeated) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range left {
		r.add(of, counts[of])
	}
}

// storeRepeats stores what was counted. A write of unknown outcome is not sent again: a repeat is rather missed than counted
// twice.
func (s *Service) storeRepeats(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, max(s.set.Sweep, time.Second))
	defer cancel()
	left, counts, missed := s.repeats.take()
	if missed > 0 {
		s.logger.Warn("repeated deliveries of very many turns were not counted by turn", "deliveries", missed)
	}
	for len(left) > 0 {
		batch := left[:min(len(left), repeatsBatch)]
		err := s.store.AddRepeats(ctx, asRepeats(batch, counts, time.Now()))
		if err != nil && !errors.Is(err, ErrUnknownOutcome) {
			s.repeats.putBack(left, counts)
			s.logger.Warn("counts of repeated deliveries not stored yet", "turns", len(left), "err", err)
			return
		}
		left = left[len(batch):]
	}
}

func asRepeats(batch []repeatOf, counts map[repeatOf]repeated, now time.Time) []Repeats {
	rows := make([]Repeats, len(batch))
	for i, of := range batch {
		c := counts[of]
		rows[i] = Repeats{Key: of.key, Turn: of.turn, Layer: of.layer, Count: c.count, FirstAge: max(0, now.Sub(c.first)), LastAge: max(0, now.Sub(c.last))}
	}
	return rows
}

// storeLastRepeats stores what was counted up to the end of this worker's life.
func (s *Service) storeLastRepeats(ctx context.Context, hard time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hard)
	defer cancel()
	s.storeRepeats(ctx)
}

package turns

import (
	"context"
	"time"
)

// Gauge is the part of a Store by which people see from afar whether replies wait that should not.
type Gauge interface {
	// Backlog reads what is not over, over all tenants. It counts held replies up to most.
	Backlog(ctx context.Context, most int) (Backlog, error)
}

// Backlog is what is not over in a database.
type Backlog struct {
	Held int
	// OldestClaim is the age of the reply that has been in flight for longest; zero if none is.
	OldestClaim time.Duration
}

// backlogMost bounds how many held replies are counted: past it their number says no more.
const backlogMost = 10_000

// measure looks how much waits in the database, for the gauges. A look that fails leaves the one before.
func (s *Service) measure(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, max(s.set.Sweep, time.Second))
	defer cancel()
	backlog, err := s.store.Backlog(ctx, backlogMost)
	if err != nil {
		s.logger.DebugContext(ctx, "backlog not measured", "err", err)
		return
	}
	s.backlog.Store(&backlog)
}

// Backlog is what waited in the database at the last look, which is at most a sweep ago while the database answers.
func (s *Service) Backlog() Backlog {
	if b := s.backlog.Load(); b != nil {
		return *b
	}
	return Backlog{}
}

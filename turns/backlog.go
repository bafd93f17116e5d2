package turns

import (
	"context"
	"time"
)

// Gauge is the part of a Store by which people see from afar whether replies wait that should not, and whether the database
// is as it must be.
type Gauge interface {
	// Backlog reads what is not over, over all tenants, and what can be seen of broken promises. It counts up to most of each.
	Backlog(ctx context.Context, most int) (Backlog, error)
}

// Backlog is what is not over in a database.
type Backlog struct {
	Held int
	// InLine are turns that wait behind a reply of their conversation.
	InLine int
	// OldestClaim is the age of the reply that has been in flight for longest; zero if none is.
	OldestClaim time.Duration
	// Doubled are user turns with more than one live reply, among those whose replies run: there must never be one.
	Doubled int
	// GuardsBroken are the unique indexes that promises rest on and that are missing or not as the migrations made them.
	GuardsBroken int
	// Now is the database's clock.
	Now time.Time
}

// Measured is what the last look found, which is at most a sweep ago while the database answers.
type Measured struct {
	Backlog
	// ClockSkew is how far the database's clock is before this worker's.
	ClockSkew time.Duration
	// Spooled are finished replies that lie in this worker's spool.
	Spooled int
}

// backlogMost bounds how much is counted of each: past it the number says no more.
const backlogMost = 10_000

// measure looks how much waits in the database and in the spool, for the gauges. A look that fails leaves the one before.
func (s *Service) measure(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, max(s.set.Sweep, time.Second))
	defer cancel()
	next := s.Measured()
	if spooled, err := s.inSpool(ctx); err != nil {
		s.logger.DebugContext(ctx, "spool not measured", "err", err)
	} else {
		next.Spooled = len(spooled)
	}
	begun := time.Now()
	backlog, err := s.store.Backlog(ctx, backlogMost)
	if err != nil {
		s.logger.DebugContext(ctx, "backlog not measured", "err", err)
	} else {
		took := time.Since(begun)
		next.Backlog, next.ClockSkew = backlog, backlog.Now.Sub(begun.Add(took/2).Round(0))
	}
	s.measured.Store(&next)
}

// Measured is what the last look found.
func (s *Service) Measured() Measured {
	if m := s.measured.Load(); m != nil {
		return *m
	}
	return Measured{}
}

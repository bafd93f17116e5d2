package limiter

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/turnd/turnd/turns"
)

// Suspensions asks a turns.Suspensions and remembers what it said for a while. It may be used by many goroutines.
type Suspensions struct {
	ask   turns.Suspensions
	good  time.Duration
	known *lru.Cache[turns.Caller, answer]
}

// answer is what was said of a subject, and until when that is good.
type answer struct {
	suspended bool
	until     time.Time
}

// NewSuspensions remembers an answer for a time, which begins when it was asked for: so a subject that is suspended is
// refused once that has passed. A time of zero or less asks each time.
func NewSuspensions(ask turns.Suspensions, good time.Duration, subjects int) (*Suspensions, error) {
	if subjects == 0 {
		subjects = DefaultSubjects
	}
	known, err := lru.New[turns.Caller, answer](subjects)
	if err != nil {
		return nil, err
	}
	return &Suspensions{ask: ask, good: good, known: known}, nil
}

// Suspended implements turns.Suspensions. What could not be found out is not remembered.
func (s *Suspensions) Suspended(ctx context.Context, tenant, subject string) (bool, error) {
	who, now := turns.Caller{Tenant: turns.Tenant(tenant), Subject: subject}, time.Now()
	if a, ok := s.known.Get(who); ok && now.Before(a.until) {
		return a.suspended, nil
	}
	suspended, err := s.ask.Suspended(ctx, tenant, subject)
	if err == nil && s.good > 0 {
		s.known.Add(who, answer{suspended, now.Add(s.good)})
	}
	return suspended, err
}

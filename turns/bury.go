package turns

import (
	"context"
	"sync"
	"time"
)

// burials lets those who look for dead workers at the same time share one look. However many requests meet the replies of
// a worker that died, the connection that renews the lease is asked by one of them at a time. The zero value is ready.
type burials struct {
	once  sync.Once
	place chan struct{}
	// begun is when the last look that succeeded was begun. Who holds the place may touch it.
	begun time.Time
}

// enter waits for the place of the one who looks; leave must follow.
func (b *burials) enter(ctx context.Context) error {
	b.once.Do(func() { b.place = make(chan struct{}, 1) })
	select {
	case b.place <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (b *burials) leave() { <-b.place }

// bury declares workers dead whose lease has run out, if this one may condemn. A look that was begun after this one was
// asked for serves it too.
func (s *Service) bury(ctx context.Context) error {
	came := time.Now()
	if err := s.burials.enter(ctx); err != nil {
		return err
	}
	defer s.burials.leave()
	if s.burials.begun.After(came) {
		return nil
	}
	begun := time.Now()
	if s.lease.mayCondemn(ctx) {
		buried, err := s.store.BuryWorkers(ctx, s.lease.worker())
		if err != nil {
			return err
		}
		for _, id := range buried {
			s.logger.WarnContext(ctx, "worker declared dead", "worker_id", id.String())
		}
	}
	s.burials.begun = begun
	return nil
}

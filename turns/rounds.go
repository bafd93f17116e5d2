package turns

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Names of the loops whose rounds are noted: each call in them has a time limit well below a lease or a sweep, so that one
// that does not come round stands still for a reason that no outage explains.
const (
	leaseRounds      = "lease"
	checkpointRounds = "checkpoints"
	sweepRounds      = "sweeps"
)

// stuckLeast is how long a loop may be away before it counts as stuck, whatever the settings say.
const stuckLeast = time.Minute

// rounds notes when loops last came round.
type rounds struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (r *rounds) note(loop string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[string]time.Time{}
	}
	r.last[loop] = time.Now()
}

// noted is f with a note behind each call.
func (r *rounds) noted(loop string, f func(context.Context)) func(context.Context) {
	r.note(loop)
	return func(ctx context.Context) {
		f(ctx)
		r.note(loop)
	}
}

// longest is the loop that has been away for longest.
func (r *rounds) longest() (loop string, away time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, at := range r.last {
		if since := time.Since(at); since > away {
			loop, away = name, since
		}
	}
	return loop, away
}

// Stuck is an error if a loop of Run stands still and only a new process goes on: it has not come round for a minute, and
// for four leases and four sweeps. An outage of the database does not do that, since each statement has a time limit.
func (s *Service) Stuck() error {
	loop, away := s.rounds.longest()
	if away < max(stuckLeast, 4*s.set.Lease, 4*s.set.Sweep) {
		return nil
	}
	return fmt.Errorf("the loop of %s has not come round for %s", loop, away.Round(time.Second))
}

// HoldsLease reports whether this worker may start replies: its lease was renewed in time.
func (s *Service) HoldsLease() bool { return s.lease.holds(s.lease.worker()) }

package turns

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// lease keeps this worker's row alive and knows, by its own monotonic clock, how long it may trust it.
//
// The database decides who is dead. Local time decides only that this worker must hold back: it sends nothing once its
// lease might have run out, and it condemns nobody until it has itself been in touch for a whole lease, since after an
// outage every lease looks expired.
type lease struct {
	store  Leases
	name   string
	ttl    time.Duration
	logger *slog.Logger

	mu sync.Mutex
	id WorkerID
	// retired says that this worker has buried itself: it does not come back.
	retired bool
	// good is when the last renewal that succeeded was begun.
	good time.Time
	// steady is when the unbroken row of renewals began; zero while it is broken.
	steady time.Time
}

// margin is how long before its end a lease is no longer trusted: time for a request to leave.
func (l *lease) margin() time.Duration { return min(2*time.Second, l.ttl/5) }

// register takes a new id. A restart, and a worker that was declared dead, never go on under the old one.
func (l *lease) register(ctx context.Context) error {
	id := WorkerID{newID()}
	begun := time.Now()
	if err := l.store.RegisterWorker(ctx, Worker{ID: id, Name: l.name}, l.ttl); err != nil {
		return err
	}
	server, err := l.store.Server(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.id, l.good, l.steady = id, begun, begun
	if server.Uptime >= l.ttl {
		// The database has answered for a whole lease. What is left to wait for is that every living worker renews, which
		// each does within a third of a lease.
		l.steady = begun.Add(-l.ttl / 3)
	}
	return nil
}

func (l *lease) worker() WorkerID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

// holds reports whether a claim of this owner may still be acted on.
func (l *lease) holds(owner WorkerID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return owner == l.id && time.Since(l.good) < l.ttl-l.margin()
}

// mayCondemn reports whether this worker has been in touch without a gap for a whole lease.
func (l *lease) mayCondemn() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.steady.IsZero() && time.Since(l.steady) >= l.ttl && time.Since(l.good) < l.ttl
}

// retire buries this worker.
func (l *lease) retire(ctx context.Context) error {
	l.mu.Lock()
	l.retired = true
	l.mu.Unlock()
	return l.store.RetireWorker(ctx, l.worker())
}

func (l *lease) isRetired() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.retired
}

// renew is called each third of the lease.
func (l *lease) renew(ctx context.Context) {
	if l.isRetired() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.ttl/3)
	defer cancel()
	begun := time.Now()
	err := l.store.RenewLease(ctx, l.worker(), l.ttl)
	switch {
	case err == nil:
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.steady.IsZero() || begun.Sub(l.good) >= l.ttl {
			l.steady = begun // this process may have stood still for longer than a lease
		}
		l.good = begun
	case errors.Is(err, ErrBuried) && l.isRetired():
	case errors.Is(err, ErrBuried):
		l.logger.Warn("worker was declared dead, taking a new id", "worker_id", l.worker().String())
		if err := l.register(ctx); err != nil {
			l.broken(err)
		}
	case ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded):
		l.broken(err)
	}
}

func (l *lease) broken(err error) {
	l.logger.Warn("lease not renewed", "err", err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steady = time.Time{}
}

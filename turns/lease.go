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
	// count is told of each renewal how it went; nil: nobody is.
	count func(ctx context.Context, result string)

	mu sync.Mutex
	id WorkerID
	// retired says that this worker has buried itself: it does not come back.
	retired bool
	// good is when the last renewal that succeeded was begun.
	good time.Time
	// steady is when the unbroken row of renewals began; zero while it is broken.
	steady time.Time
	// server is the life of the database's server that answered last.
	server string
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
	first := l.server == ""
	l.id, l.good, l.steady, l.server = id, begun, begun, server.Name
	if first && server.Uptime >= l.ttl {
		// The database has answered for a whole lease. What is left to wait for is that every living worker renews, which
		// each does within a third of a lease. A worker that comes back waits for all of it: it may be the first that does.
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

// left is how long the lease still holds at least, never below zero.
func (l *lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, l.ttl-time.Since(l.good))
}

// mayCondemn reports whether this worker has been in touch without a gap for a whole lease, with the same server that
// answers now. A failover that no renewal has seen yet is seen here: the clock of another server may be hours ahead, and
// then every lease looks expired.
func (l *lease) mayCondemn(ctx context.Context) bool {
	if !l.isSteady() {
		return false
	}
	l.meet(ctx, time.Now())
	return l.isSteady()
}

func (l *lease) isSteady() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.steady.IsZero() && time.Since(l.steady) >= l.ttl && time.Since(l.good) < l.ttl
}

// meet asks which server answers. With another one, or with no answer, the row of renewals begins anew.
func (l *lease) meet(ctx context.Context, begun time.Time) {
	server, err := l.store.Server(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.steady = time.Time{}
	case server.Name != l.server:
		l.logger.WarnContext(ctx, "another life of the database server answers", "server", server.Name)
		l.server, l.steady = server.Name, begun
	}
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
		l.counted(ctx, l.punctual())
		l.renewed(begun)
		l.meet(ctx, begun)
	case errors.Is(err, ErrBuried) && l.isRetired():
	case errors.Is(err, ErrBuried):
		l.counted(ctx, renewalLost)
		l.logger.WarnContext(ctx, "worker was declared dead, taking a new id", "worker_id", l.worker().String())
		if err := l.register(ctx); err != nil {
			l.broken(ctx, err)
		}
	case ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded):
		l.counted(ctx, renewalFailed)
		l.broken(ctx, err)
	}
}

// Results of a renewal.
const (
	renewalOnTime = "on_time"
	renewalLate   = "late"
	renewalFailed = "failed"
	renewalLost   = "lost"
)

// punctual says of a renewal that succeeded whether half of the lease had passed before it.
func (l *lease) punctual() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.good) > l.ttl/2 {
		return renewalLate
	}
	return renewalOnTime
}

func (l *lease) counted(ctx context.Context, result string) {
	if l.count != nil {
		l.count(ctx, result)
	}
}

func (l *lease) renewed(begun time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.steady.IsZero() || begun.Sub(l.good) >= l.ttl {
		l.steady = begun // this process may have stood still for longer than a lease
	}
	l.good = begun
}

func (l *lease) broken(ctx context.Context, err error) {
	l.logger.WarnContext(ctx, "lease not renewed", "err", err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steady = time.Time{}
}

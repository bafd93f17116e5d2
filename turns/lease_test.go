package turns

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// leaseStore keeps leases by a clock of its own, as one server of a database does.
type leaseStore struct {
	Store
	mu     sync.Mutex
	server string
	begun  time.Time
	ahead  time.Duration // of the clock
	down   error
	until  map[WorkerID]time.Time
	buried map[WorkerID]time.Time
}

func newLeaseStore() *leaseStore {
	return &leaseStore{server: "one", begun: time.Now().Add(-time.Hour), until: map[WorkerID]time.Time{}, buried: map[WorkerID]time.Time{}}
}

func (s *leaseStore) now() time.Time { return time.Now().Add(s.ahead) }

// failover lets another server answer, whose clock is ahead.
func (s *leaseStore) failover(ahead time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server, s.ahead = s.server+"+", ahead
}

func (s *leaseStore) away(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

func (s *leaseStore) do(f func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down == nil {
		f()
	}
	return s.down
}

func (s *leaseStore) RegisterWorker(_ context.Context, w Worker, ttl time.Duration) error {
	return s.do(func() { s.until[w.ID] = s.now().Add(ttl) })
}

func (s *leaseStore) RenewLease(_ context.Context, id WorkerID, ttl time.Duration) (err error) {
	down := s.do(func() {
		if _, dead := s.buried[id]; dead {
			err = ErrBuried
			return
		}
		s.until[id] = s.now().Add(ttl)
	})
	return errors.Join(down, err)
}

func (s *leaseStore) BuryWorkers(_ context.Context, except ...WorkerID) (ids []WorkerID, err error) {
	err = s.do(func() {
		for id, until := range s.until {
			if _, dead := s.buried[id]; !dead && id != except[0] && until.Before(s.now()) {
				s.buried[id] = time.Now()
				ids = append(ids, id)
			}
		}
	})
	return ids, err
}

func (s *leaseStore) Server(context.Context) (life ServerLife, err error) {
	err = s.do(func() { life = ServerLife{Name: s.server, Uptime: s.now().Sub(s.begun)} })
	return life, err
}

func (s *leaseStore) StaleReplies(context.Context, StaleQuery) ([]StaleReply, error) { return nil, nil }

// buriedAt is when each worker was buried.
func (s *leaseStore) buriedAt(id WorkerID) (at time.Time, dead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, dead = s.buried[id]
	return at, dead
}

const testLease = 15 * time.Second

// leaseWorker renews its lease and sweeps until it is stopped.
func leaseWorker(t *testing.T, store *leaseStore) (s *Service, stop func()) {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	s = &Service{store: store, logger: logger, lease: &lease{store: store, ttl: testLease, logger: logger}}
	require.NoError(t, s.lease.register(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { every(ctx, testLease/3, s.lease.renew) })
	wg.Go(func() { every(ctx, 5*time.Second, func(ctx context.Context) { _ = s.sweep(ctx, StaleQuery{}) }) })
	return s, func() { cancel(); wg.Wait() }
}

// TestAfterAnOutageOnlyWorkersThatStoppedRenewingAreBuriedAndNobodyWithinALease plays what makes every lease look expired.
func TestAfterAnOutageOnlyWorkersThatStoppedRenewingAreBuriedAndNobodyWithinALease(t *testing.T) {
	for name, strike := range map[string]func(*leaseStore){
		"the database was away": func(s *leaseStore) {
			s.away(errors.New("away"))
			time.Sleep(2 * testLease)
			s.away(nil)
		},
		"a server that starts again": func(s *leaseStore) { s.failover(0) },
		"a server with its clock ahead": func(s *leaseStore) {
			s.away(errors.New("away"))
			time.Sleep(testLease / 2)
			s.failover(5 * time.Hour)
			s.away(nil)
		},
		"a switch that no renewal saw":   func(s *leaseStore) { s.failover(5 * time.Hour) },
		"a server with its clock behind": func(s *leaseStore) { s.failover(-5 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newLeaseStore()
				one, stopOne := leaseWorker(t, store)
				two, stopTwo := leaseWorker(t, store)
				three, die := leaseWorker(t, store)
				defer stopOne()
				defer stopTwo()
				time.Sleep(time.Minute + time.Second)
				dead := three.lease.worker()
				die()
				strike(store)
				struck := time.Now()
				time.Sleep(testLease - time.Millisecond)
				for _, s := range []*Service{one, two, three} {
					_, buried := store.buriedAt(s.lease.worker())
					require.False(t, buried, "within a lease")
				}
				if store.ahead < 0 {
					return // its lease is good for hours by that clock
				}
				time.Sleep(2 * testLease)
				for _, s := range []*Service{one, two} {
					_, buried := store.buriedAt(s.lease.worker())
					require.False(t, buried, "it renews")
				}
				at, buried := store.buriedAt(dead)
				require.True(t, buried, "it does not")
				require.LessOrEqual(t, at.Sub(struck), testLease+testLease/3+2*5*time.Second)
			})
		})
	}
}

func TestAWorkerThatComesBackAfterItWasBuriedHoldsBackForAWholeLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newLeaseStore()
		l := &lease{store: store, ttl: testLease, logger: slog.New(slog.DiscardHandler)}
		require.NoError(t, l.register(t.Context()))
		time.Sleep(2 * testLease)
		_, err := store.BuryWorkers(t.Context(), WorkerID{newID()})
		require.NoError(t, err)
		old := l.worker()
		l.renew(t.Context())
		require.NotEqual(t, old, l.worker())
		for range 3 {
			require.False(t, l.mayCondemn(t.Context()))
			time.Sleep(testLease / 3)
			l.renew(t.Context())
		}
		require.True(t, l.mayCondemn(t.Context()))
	})
}

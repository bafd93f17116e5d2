package oidc

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/turnd/turnd/turns"
)

const (
	// betweenReads is the least time from one read of the keys to one that a token asks for. Who names an unknown key waits so
	// long, so that a key's first token is not refused because somebody else's made the keys be read just before it was there.
	betweenReads = time.Second
	// firstRetry is the wait after a first failed read; it doubles up to longestRetry.
	firstRetry   = time.Second
	longestRetry = 10 * time.Second
)

// keySet keeps the issuer's keys. One goroutine reads them, so there is never more than one request on its way.
type keySet struct {
	source   func(context.Context) ([]key, error)
	lifetime time.Duration
	grace    time.Duration
	log      *slog.Logger

	wake  chan struct{}
	stop  context.CancelFunc
	ended chan struct{}

	mu      sync.Mutex
	keys    []key
	readAt  time.Time     // zero before the first read
	failed  int           // reads that failed since the last good one
	begun   time.Time     // of the last read
	nextAt  time.Time     // when the goroutine reads again by itself
	pending chan struct{} // closed at the end of the read that runs or was asked for; nil if there is none
}

func newKeySet(cfg Config, source func(context.Context) ([]key, error)) *keySet {
	ctx, stop := context.WithCancel(context.Background())
	s := &keySet{
		source: source, lifetime: cfg.KeysLifetime, grace: cfg.KeysGrace, log: cfg.Logger,
		wake: make(chan struct{}, 1), stop: stop, ended: make(chan struct{}), pending: make(chan struct{}),
	}
	go s.run(ctx)
	return s
}

// close ends reading, and waits until it has ended.
func (s *keySet) close() {
	s.stop()
	<-s.ended
}

func (s *keySet) run(ctx context.Context) {
	defer close(s.ended)
	for {
		s.begin()
		keys, err := s.source(ctx)
		if ctx.Err() != nil {
			return
		}
		timer := time.NewTimer(s.finish(ctx, keys, err))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-s.wake:
			timer.Reset(s.untilDue())
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

func (s *keySet) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = time.Now()
	if s.pending == nil {
		s.pending = make(chan struct{})
	}
	// A wish for a read is met by this one, also if it came while the timer was ending.
	select {
	case <-s.wake:
	default:
	}
}

// untilDue is how long a read that a token asks for has still to wait.
func (s *keySet) untilDue() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return betweenReads - time.Since(s.begun)
}

// finish takes in what was read, lets those who wait for it go on, and says when to read again. A quarter of the lifetime is left
// for the next read to end in.
func (s *keySet) finish(ctx context.Context, keys []key, err error) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.pending)
	s.pending = nil
	wait := s.lifetime - s.lifetime/4
	if err != nil {
		wait = min(firstRetry<<min(s.failed, 10), longestRetry)
		s.fail(ctx, err)
	} else {
		if s.failed > 0 || s.readAt.IsZero() {
			s.log.InfoContext(ctx, "the issuer's keys are read", "keys", len(keys))
		}
		// What was read is as old as the request for it.
		s.keys, s.readAt, s.failed = keys, s.begun, 0
	}
	s.nextAt = time.Now().Add(wait)
	return wait
}

// fail counts a failed read. The log hears of the first one in a row, and of the end of the keys there were.
func (s *keySet) fail(ctx context.Context, err error) {
	s.failed++
	if s.failed == 1 {
		s.log.WarnContext(ctx, "the issuer's keys can't be read", "error", err, "keys", len(s.keys))
	}
	if len(s.keys) > 0 && time.Since(s.readAt) >= s.grace {
		s.log.ErrorContext(ctx, "the issuer's keys are too old to go by; callers wait until they can be read", "error", err)
		s.keys = nil
	}
}

// current are the keys that are good now, of which some could be missing, and false if there are none to go by.
func (s *keySet) current() ([]key, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readAt.IsZero() || time.Since(s.readAt) >= s.grace {
		return nil, false
	}
	return s.keys, true
}

// has reports whether a key is still good.
func (s *keySet) has(print thumbprint) bool {
	keys, _ := s.current()
	for _, k := range keys {
		if k.print == print {
			return true
		}
	}
	return false
}

// refresh waits for a read of the keys that may find what is missing. It asks for none where the last one failed: the next
// is due by itself. A caller that leaves ends its own wait, and not the read.
func (s *keySet) refresh(ctx context.Context) error {
	pending := s.ask()
	if pending == nil {
		return nil
	}
	select {
	case <-pending:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ended:
		return s.unavailable()
	}
}

func (s *keySet) ask() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil && s.failed == 0 {
		s.pending = make(chan struct{})
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return s.pending
}

// stale reports whether the issuer has not been heard since the keys were read, so that a key missing in them says nothing.
func (s *keySet) stale() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed > 0
}

// unavailable says that nothing can be said, and when to ask again.
func (s *keySet) unavailable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &turns.Error{Code: turns.CodeIdentityUnavailable, RetryAfter: max(time.Until(s.nextAt), time.Second),
		Problem: "the keys of the tokens' issuer can't be read now; send the same request again"}
}

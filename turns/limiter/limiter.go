package limiter

import (
	"math"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/turnd/turnd/turns"
)

// Defaults of a Config's zero fields.
const (
	// DefaultSubjects take some tens of megabytes at most.
	DefaultSubjects = 1 << 16
	// DefaultAtOnce is more than a backend sends at one moment for one of its users, and less than would fill the queue of a
	// pool of connections for long.
	DefaultAtOnce = 64
)

// busyPause is when to come again for a subject that has as many looks under way as it may: each takes a statement or two.
const busyPause = time.Second

// Config says what a Limiter lets in.
type Config struct {
	// Submissions are a minute and subject; 0 bounds nothing. As many may come at once after a minute of silence.
	Submissions int64
	// Lookups are the same for looks; without a bound of them those at once have none either.
	Lookups int64
	// AtOnce are the looks of a subject that may be under way together; 0 is DefaultAtOnce.
	AtOnce int
	// Subjects is how many subjects are known at the same time; 0 is DefaultSubjects.
	Subjects int
}

// Limiter is turns.Limiter in memory. It may be used by many goroutines.
type Limiter struct {
	cfg      Config
	subjects *lru.Cache[turns.Caller, *subject]
}

// subject is what is known of one subject.
type subject struct {
	mu          sync.Mutex // makes a refusal and the wait that it names one
	submissions *rate.Limiter
	lookups     *rate.Limiter
	looking     int
}

// New makes a limiter. It fails for a size below zero alone.
func New(cfg Config) (*Limiter, error) {
	if cfg.AtOnce == 0 {
		cfg.AtOnce = DefaultAtOnce
	}
	if cfg.Subjects == 0 {
		cfg.Subjects = DefaultSubjects
	}
	subjects, err := lru.New[turns.Caller, *subject](cfg.Subjects)
	if err != nil {
		return nil, err
	}
	return &Limiter{cfg: cfg, subjects: subjects}, nil
}

// of finds what is known of a subject, or begins to know it.
func (l *Limiter) of(c turns.Caller) *subject {
	if s, ok := l.subjects.Get(c); ok {
		return s
	}
	fresh := &subject{submissions: perMinute(l.cfg.Submissions), lookups: perMinute(l.cfg.Lookups)}
	if s, ok, _ := l.subjects.PeekOrAdd(c, fresh); ok { // another was quicker
		return s
	}
	return fresh
}

// perMinute is a bucket that holds a minute's worth; nil if there is no bound.
func perMinute(n int64) *rate.Limiter {
	if n <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(float64(n)/60), int(min(n, math.MaxInt32)))
}

// take takes one from a bucket, or says how long until it has one.
func take(b *rate.Limiter) (wait time.Duration) {
	now := time.Now()
	if b == nil || b.AllowN(now, 1) {
		return 0
	}
	missing := (1 - b.TokensAt(now)) / float64(b.Limit())
	return max(time.Duration(math.Ceil(missing*float64(time.Second))), 1)
}

// Submit implements turns.Limiter.
func (l *Limiter) Submit(c turns.Caller) (wait time.Duration) {
	s := l.of(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	return take(s.submissions)
}

// GiveBack implements turns.Limiter.
func (l *Limiter) GiveBack(c turns.Caller) {
	s := l.of(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.submissions != nil {
		s.submissions.AllowN(time.Now(), -1) // the bucket holds no more than a minute's worth all the same
	}
}

// Look implements turns.Limiter.
func (l *Limiter) Look(c turns.Caller) (done func(), wait time.Duration) {
	if l.cfg.Lookups <= 0 {
		return func() {}, 0
	}
	s := l.of(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looking >= l.cfg.AtOnce {
		return nil, busyPause
	}
	if wait := take(s.lookups); wait > 0 {
		return nil, wait
	}
	s.looking++
	return sync.OnceFunc(s.looked), 0
}

func (s *subject) looked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looking--
}

package turns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Settings are the limits and intervals of a Service. DefaultSettings fills them all.
type Settings struct {
	// Lease is how long a worker's claims are good after a renewal; it is renewed each third.
	Lease time.Duration
	// Sweep is how often stale claims are looked for.
	Sweep time.Duration
	// Checkpoint is how often the tails of running replies are stored.
	Checkpoint time.Duration
	// MaxCalls and MaxWait are the budget of a turn and generation, Backoff its base.
	MaxCalls int
	MaxWait  time.Duration
	Backoff  time.Duration
	// MaxContentBytes bounds a user turn, MaxOutputBytes a reply's log.
	MaxContentBytes int
	MaxOutputBytes  int
	// MaxInFlight bounds the replies this worker runs at once, those that are over and not stored yet among them.
	// MaxQueue bounds the deliveries that wait for a place; 0 refuses them at once.
	MaxInFlight int
	MaxQueue    int
	// MaxWaiting bounds the turns in line in one conversation. ToolWait is how long they wait for the results of tool calls.
	MaxWaiting int
	ToolWait   time.Duration
	// ConversationCaps and TenantCaps bound what one conversation, and all of a tenant together, may spend.
	ConversationCaps Caps
	TenantCaps       Caps
	// Submissions bound what one subject, and all of a tenant together, may submit, as all workers count it.
	Submissions SubmissionLimits
	// MaxSubjectInFlight bounds the replies of one subject that this worker runs, together with its deliveries that wait for
	// a place here; 0 bounds nothing.
	MaxSubjectInFlight int
	// OnAmbiguous and OnPartial are the policies where neither a delivery nor an endpoint says otherwise; empty is to abandon
	// and to discard.
	OnAmbiguous OnAmbiguous
	OnPartial   OnPartial
}

// DefaultSettings are the settings of a service whose flags are all unset.
func DefaultSettings() Settings {
	return Settings{
		Lease: 15 * time.Second, Sweep: 5 * time.Second, Checkpoint: 250 * time.Millisecond,
		MaxCalls: 5, MaxWait: 30 * time.Second, Backoff: time.Second,
		MaxContentBytes: 4 << 20, MaxOutputBytes: 8 << 20, MaxInFlight: 1024, MaxQueue: 1024,
		MaxWaiting: 32, ToolWait: 10 * time.Minute,
		OnAmbiguous: OnAmbiguousAbandon, OnPartial: OnPartialDiscard,
	}
}

// Config makes a Service. All fields must be set, apart from Limiter and Suspensions.
type Config struct {
	Store     Store
	Generator Generator
	Logs      Logs
	// Spool takes endings that the store does not; NoSpool is none.
	Spool Spool
	// Limiter keeps this worker's own limits; nil refuses nothing.
	Limiter Limiter
	// Suspensions says who may make nothing new; nil is nobody.
	Suspensions Suspensions
	Logger      *slog.Logger
	Meter       metric.Meter
	// Tracer makes spans; nil traces nothing.
	Tracer trace.Tracer
	// WorkerName is a label for people.
	WorkerName string
	Settings   Settings
}

// Service owns turns on one worker. Start it once, then Run it; its methods may be called by many goroutines.
type Service struct {
	store       Store
	generator   Generator
	logs        Logs
	spool       Spool
	limiter     Limiter
	suspensions Suspensions
	logger      *slog.Logger
	metrics     *Metrics
	tracer      tracer
	set         Settings
	lease       *lease
	rounds      rounds
	random      func() float64
	admission   *admission

	// life is the context of everything that outlives a request; stop ends it with a cause. last ends later, with the
	// hard limit of Drain: until then the endings of stopped replies are still stored.
	life     context.Context
	stop     context.CancelCauseFunc
	last     context.Context
	stopLast context.CancelFunc

	nudges    nudges
	repeats   repeatCounts
	takeovers takeovers
	burials   burials
	lines     lines
	estimates estimator
	settling  settling
	looks     quotaLooks
	woken     chan struct{} // a held reply was woken
	measured  atomic.Pointer[Measured]

	mu   sync.Mutex
	runs map[ReplyID]*run
	// spooled and lost count endings that the store did not take from their runs, and that the spool did or did not.
	spooled, lost int

	// replaying belongs to the loop that replays the spool.
	replaying replaying
}

// New makes a service. It does nothing until Start.
func New(cfg Config) (*Service, error) {
	metrics, err := NewMetrics(cfg.Meter)
	if err != nil {
		return nil, err
	}
	if cfg.Limiter == nil {
		cfg.Limiter = noLimiter{}
	}
	if cfg.Suspensions == nil {
		cfg.Suspensions = nobody{}
	}
	life, stop := context.WithCancelCause(context.Background())
	last, stopLast := context.WithCancel(context.Background())
	return &Service{
		store: cfg.Store, generator: cfg.Generator, logs: cfg.Logs, spool: cfg.Spool, logger: cfg.Logger,
		metrics: metrics, tracer: tracer{cfg.Tracer}, set: cfg.Settings, limiter: cfg.Limiter, suspensions: cfg.Suspensions,
		lease:     &lease{store: cfg.Store, name: cfg.WorkerName, ttl: cfg.Settings.Lease, logger: cfg.Logger, count: metrics.renewal},
		admission: &admission{places: cfg.Settings.MaxInFlight, room: cfg.Settings.MaxQueue, each: cfg.Settings.MaxSubjectInFlight},
		random:    rand.Float64, life: life, stop: stop, last: last, stopLast: stopLast, runs: map[ReplyID]*run{}, woken: make(chan struct{}, 1),
	}, nil
}

// Start registers this worker. Submit works from then on.
func (s *Service) Start(ctx context.Context) error { return s.lease.register(ctx) }

// Run keeps the lease, stores checkpoints, replays the spool and sweeps until ctx ends. It must run for as long as replies
// do: Drain comes first, then the end of ctx.
func (s *Service) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { every(ctx, s.lease.ttl/3, s.rounds.noted(leaseRounds, s.lease.renew)) })
	wg.Go(func() { s.keepStored(ctx) })
	wg.Go(func() {
		s.replay(ctx) // at once: what this worker knows of a reply should come before anybody's sweep of it
		every(ctx, s.set.Sweep, s.replay)
	})
	wg.Go(func() { every(ctx, s.set.Sweep, s.rounds.noted(sweepRounds, s.tidy)) })
	wg.Go(func() { every(ctx, s.set.Sweep, s.eraseDeleted) })
	wg.Go(func() { every(ctx, s.set.Sweep, s.storeRepeats) })
	wg.Go(func() { s.keepSettled(ctx) })
	wg.Go(func() { every(ctx, s.set.Sweep, s.tidyQuotas) })
	wg.Go(func() { s.keepReconciled(ctx) })
	wg.Go(func() { s.keepLines(ctx) })
	wg.Go(func() {
		s.measure(ctx)
		every(ctx, s.set.Sweep, s.measure)
	})
	wg.Wait()
	return nil
}

// WorkerID is this process life's id; it changes only if the worker was declared dead.
func (s *Service) WorkerID() WorkerID { return s.lease.worker() }

// Draining reports whether new attempts are refused.
func (s *Service) Draining() bool { return s.admission.isClosed() }

// Queued is the number of deliveries that wait for a place.
func (s *Service) Queued() int { return s.admission.queued() }

// InFlight is the number of replies this worker runs.
func (s *Service) InFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs)
}

// lostEndings says how many replies ended here and were neither stored nor spooled.
func (s *Service) lostEndings() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spooled > 0 {
		s.logger.Warn("endings spooled, to be stored by the next start with this spool", "replies", s.spooled)
	}
	if s.lost == 0 {
		return nil
	}
	return fmt.Errorf("%d replies have ended and could be neither stored nor spooled", s.lost)
}

// causes of a run's end that are not the provider's doing.
var (
	errShutdown  = errors.New("worker shuts down")
	errDeadline  = errors.New("reply's deadline has passed")
	errRequested = errors.New("a stop was asked for")
	errLeft      = errors.New("the last follower has left")
	errLost      = errors.New("the reply is no longer this worker's")
	errDeleted   = errors.New("the reply was deleted")
)

// Drain refuses new attempts, waits for running replies until ctx ends, then abandons the rest as shutdown and waits
// for that within hard. Last it buries this worker, so that what is left is swept at once.
func (s *Service) Drain(ctx context.Context, hard time.Duration) error {
	s.admission.close()
	done := make(chan struct{})
	go func() {
		s.admission.held.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.stop(errShutdown)
		select {
		case <-done:
		case <-time.After(hard):
			s.stopLast()
			<-done // every statement of a run has a time limit
		}
	}
	s.stop(errShutdown)
	s.stopLast()
	s.settleDue(context.Background())
	s.storeLastRepeats(ctx, hard)
	retire, cancel := context.WithTimeout(context.WithoutCancel(ctx), hard)
	defer cancel()
	err := s.lease.retire(retire)
	if err != nil && !answered(err) {
		// The lease runs out by itself; nothing is lost but that time.
		s.logger.WarnContext(ctx, "worker not retired", "worker_id", s.WorkerID().String(), "err", err)
		err = nil
	}
	return errors.Join(s.lostEndings(), err)
}

// Advice says what a client may do about a reply as it stands.
func (s *Service) Advice(r Reply) (Advice, time.Duration) { return AdviceFor(r, s.set.MaxCalls) }

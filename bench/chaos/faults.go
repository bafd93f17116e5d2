package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/turnd/turnd/bench/rig"
)

// fault is one thing that is to go wrong.
type fault struct {
	at     time.Duration // since the run began
	kind   string
	worker int
	hold   time.Duration
}

func (f fault) String() string {
	target := fmt.Sprintf("w%d", f.worker+1)
	if strings.HasPrefix(f.kind, "database_") {
		target = "database"
	}
	return fmt.Sprintf("%s %s for %s", f.kind, target, f.hold.Round(10*time.Millisecond))
}

// faultKinds are all kinds of faults of workers, links and the database; those of the provider are in its script. The
// first word is what is struck: a worker's process, or its link to its clients, to the store, to the hints or to the
// provider.
var faultKinds = []string{
	"worker_killed", "worker_paused", "worker_rolled", "worker_blinked", "all_rolled",
	"client_cut", "client_refused", "client_stalled", "client_one_way", "client_slow",
	"store_cut", "store_refused", "store_stalled", "store_one_way", "store_slow", "answer_lost", "answer_lost",
	"hints_cut", "hints_refused", "hints_one_way",
	"provider_cut", "provider_refused", "provider_stalled", "provider_slow",
	"database_restarted", "database_locked", "database_hung_up", "database_cancelled",
}

// planFaults draws a timeline. Every kind comes before any comes again, and the failover comes once, in the middle.
func planFaults(random *rand.Rand, length time.Duration, kinds []string, gap time.Duration, failover bool) []fault {
	var plan []fault
	var deck []string
	for at := time.Second + gap/2; at < length-2*time.Second; at += gap/2 + time.Duration(random.Int64N(int64(gap))) {
		if len(deck) == 0 {
			deck = append(deck, kinds...)
			random.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		f := fault{at: at, kind: deck[0], worker: random.IntN(workerCount), hold: 300*time.Millisecond + time.Duration(random.Int64N(int64(2500*time.Millisecond)))}
		if f.kind == "worker_paused" {
			f.hold = lease + time.Second + time.Duration(random.Int64N(int64(2*time.Second)))
		}
		deck = deck[1:]
		plan = append(plan, f)
	}
	if failover {
		plan = append(plan, fault{at: length*2/5 + time.Duration(random.Int64N(int64(length/5))), kind: "database_failover"})
		sort.SliceStable(plan, func(i, j int) bool { return plan[i].at < plan[j].at })
	}
	return plan
}

// storm plays a timeline on a cluster.
type storm struct {
	cluster  *cluster
	rec      *recorder
	inFlight func() int

	database sync.Mutex // one fault of the database at a time

	mu       sync.Mutex
	struck   map[string]int
	caught   int // replies in flight, summed over the faults
	timeline []string
	troubled int // faults under way that keep sweeps from their work
	down     int // workers whose process is in trouble
	calm     time.Time
	failed   error
	spans    []span
	// storeSpans are the times in which the database, or a way to it, was in trouble.
	storeSpans []span
}

// span is a time in which a worker's process, or its way to the provider, was in trouble.
type span struct {
	worker     int
	begin, end time.Time
}

// everybody stands for all workers in a span.
const everybody = -1

// stutter is how late a tick may come; a machine that is later was not at work, and nor were its processes.
const stutter = 400 * time.Millisecond

// watchMachine notes when the machine itself was at fault, until ctx ends.
func (s *storm) watchMachine(ctx context.Context) {
	const tick = 50 * time.Millisecond
	for last := time.Now(); sleep(ctx, tick); last = time.Now() {
		if late := time.Since(last) - tick; late > stutter {
			s.rec.count("machine_stutters")
			s.mu.Lock()
			s.spans = append(s.spans, span{everybody, last, time.Now()})
			s.mu.Unlock()
		}
	}
}

// inTrouble notes a span around a fault.
func (s *storm) inTrouble(worker int, do func()) {
	begin := time.Now()
	do()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans = append(s.spans, span{worker, begin, time.Now()})
}

// play strikes each fault at its time, until ctx ends, and returns when all have been healed.
func (s *storm) play(ctx context.Context, plan []fault) {
	var under sync.WaitGroup
	defer under.Wait()
	for _, f := range plan {
		if !sleep(ctx, f.at-time.Since(s.rec.begun)) {
			return
		}
		under.Go(func() { s.strike(ctx, f) })
	}
}

func (s *storm) strike(ctx context.Context, f fault) {
	w := s.cluster.workers[f.worker]
	release, ok := s.take(f, w)
	if !ok {
		return // its target is in trouble already
	}
	defer release()
	s.note(f)
	var err error
	switch name, what, _ := strings.Cut(f.kind, "_"); name {
	case "worker":
		s.inTrouble(f.worker, func() { err = s.process(ctx, f, w) })
	case "all":
		for n, w := range s.cluster.workers {
			w.busy.Lock()
			s.inTrouble(n, func() { err = errors.Join(err, s.process(ctx, f, w)) })
			w.busy.Unlock()
		}
	case "client":
		disturb(ctx, what, f.hold, w.front)
	case "store":
		s.disturbing(func() { disturb(ctx, what, f.hold, w.toDatabase...) })
	case "hints":
		disturb(ctx, what, f.hold, w.toHints...)
	case "answer":
		s.loseAnswer(ctx, w, f.hold)
	case "provider":
		s.inTrouble(f.worker, func() { disturb(ctx, what, f.hold, w.toProvider) })
	case "database":
		s.disturbing(func() { err = s.strikeDatabase(ctx, f) })
	}
	if err != nil && ctx.Err() == nil {
		s.mu.Lock()
		s.failed = fmt.Errorf("%s: %w", f, err)
		s.mu.Unlock()
	}
}

// take reserves the target of a fault.
func (s *storm) take(f fault, w *worker) (release func(), ok bool) {
	switch {
	case f.kind == "all_rolled":
		return func() {}, true
	case f.kind == "database_failover":
		s.database.Lock()
		return s.database.Unlock, true
	case strings.HasPrefix(f.kind, "worker_"):
		return w.busy.Unlock, w.busy.TryLock()
	case strings.HasPrefix(f.kind, "database_"):
		return s.database.Unlock, s.database.TryLock()
	}
	return func() {}, true
}

// note puts a fault into the timeline with what it strikes.
func (s *storm) note(f fault) {
	n := s.inFlight()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.struck[f.kind]++
	s.caught += n
	line := fmt.Sprintf("%7.2fs %s in_flight=%d", time.Since(s.rec.begun).Seconds(), f, n)
	s.timeline = append(s.timeline, line)
	fmt.Println(line)
}

// disturbing runs a fault during which sweeps can't be expected.
func (s *storm) disturbing(do func()) {
	begin := time.Now()
	s.mu.Lock()
	s.troubled++
	s.mu.Unlock()
	do()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubled--
	s.calm = time.Now()
	s.storeSpans = append(s.storeSpans, span{everybody, begin, s.calm})
}

// calmSince is since when sweeps could do their work: a lease after the last trouble, which sweepers hold back.
func (s *storm) calmSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.troubled > 0 || s.down >= workerCount {
		return time.Now()
	}
	return s.calm.Add(lease)
}

// process does something to a worker's process.
func (s *storm) process(ctx context.Context, f fault, w *worker) error {
	s.countDown(1)
	defer s.countDown(-1)
	switch f.kind {
	case "worker_killed":
		_ = w.end(syscall.SIGKILL)
		sleep(ctx, f.hold)
		return w.startAgain(ctx)
	case "worker_paused", "worker_blinked":
		if err := w.signal(syscall.SIGSTOP); err != nil {
			return err
		}
		sleep(ctx, f.hold)
		return w.signal(syscall.SIGCONT)
	}
	switch err := w.end(syscall.SIGTERM); {
	case errors.Is(err, rig.ErrStubborn):
		s.rec.broke("P11", "%v", err)
	case err != nil:
		s.rec.count("drains_not_clean")
	}
	return w.startAgain(ctx)
}

func (s *storm) countDown(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down >= workerCount {
		s.calm = time.Now()
	}
	s.down += by
}

// disturb lets links fail in one way for a while.
func disturb(ctx context.Context, what string, hold time.Duration, links ...*rig.Link) {
	for _, l := range links {
		switch what {
		case "cut":
			l.Cut()
		case "refused":
			l.Refuse()
		case "stalled":
			l.Stall(rig.Up, rig.Down)
		case "one_way":
			l.Stall(rig.Down)
		case "slow":
			l.Slow(40 * time.Millisecond)
		}
	}
	if what == "cut" {
		return
	}
	sleep(ctx, hold)
	for _, l := range links {
		l.Heal()
	}
}

// loseAnswer loses the answer to something that a worker tells the database at length, which is seldom a read.
func (s *storm) loseAnswer(ctx context.Context, w *worker, hold time.Duration) {
	before := 0
	for _, l := range w.toDatabase {
		before += l.Losses()
		l.LoseAnswer(func(b []byte) bool { return len(b) > 500 })
	}
	sleep(ctx, hold)
	for _, l := range w.toDatabase {
		before -= l.Losses()
		l.Heal()
	}
	if before < 0 {
		s.rec.count("answers_lost")
	}
}

func (s *storm) strikeDatabase(ctx context.Context, f fault) error {
	d := s.cluster.database
	switch f.kind {
	case "database_restarted":
		return d.restart(ctx, f.hold/3)
	case "database_failover":
		return d.fail(ctx)
	case "database_hung_up":
		return execute(ctx, d.dsn(), everySession("pg_terminate_backend"))
	case "database_cancelled":
		return execute(ctx, d.dsn(), everySession("pg_cancel_backend"))
	}
	return lock(ctx, d.dsn(), f.hold)
}

// everySession does something to all sessions of the database but its own.
func everySession(function string) string {
	return "SELECT " + function + "(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
}

// lock keeps everybody from the turns for a while, so that connections pile up in statements that wait.
func lock(ctx context.Context, dsn string, hold time.Duration) error {
	return session(ctx, dsn, func(conn *pgx.Conn) error {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		if _, err := tx.Exec(ctx, `LOCK TABLE turns IN ACCESS EXCLUSIVE MODE`); err != nil {
			return err
		}
		sleep(ctx, hold)
		return nil
	})
}

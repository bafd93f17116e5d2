package server

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// askTime bounds asking all checks once.
	askTime = 2 * time.Second
	// keepTime is how long the outcome of a check that costs something is kept, and how often health looks.
	keepTime = time.Second
)

// Check is one condition of readiness, such as the database's or that no drain is under way.
type Check struct {
	// Name is shown; the error of Ready is only logged, since it may name hosts.
	Name  string
	Ready func(context.Context) error
	// Costs says that asking is work for somebody, such as a statement for the database. Such a check is asked once a second
	// at most, however many probes there are; others are asked by each.
	Costs bool
	// Expected says that it does not hold at the start and the end of each process, which is not worth a line of the log.
	Expected bool
	// Services are the gRPC services that can't be without it. Default: all.
	Services []string
}

// concerns reports whether a service needs the check to hold. The server as a whole, which is "", needs all.
func (c Check) concerns(service string) bool {
	return service == "" || len(c.Services) == 0 || slices.Contains(c.Services, service)
}

// Outcome is what became of a check.
type Outcome struct {
	Check Check
	// Err is nil if the check holds.
	Err error
	// Since is when it began to be so, and Asked when it was asked last.
	Since, Asked time.Time
}

// Readiness asks checks for whoever wants to know whether to send work here: probes, and clients of gRPC's health. Make it
// by NewReadiness; it may be used by many at once. A check that changes is logged once.
type Readiness struct {
	checks []Check
	log    *slog.Logger
	nudged chan struct{}

	mu       sync.Mutex
	outcomes []Outcome
	// asked is when those that cost something were asked last, and asking is closed once they are being asked no more; nil
	// while nobody asks.
	asked  time.Time
	asking chan struct{}
}

// NewReadiness makes a Readiness. Without checks everything is ready.
func NewReadiness(log *slog.Logger, checks ...Check) *Readiness {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := &Readiness{checks: checks, log: log, nudged: make(chan struct{}, 1)}
	for _, c := range checks {
		r.outcomes = append(r.outcomes, Outcome{Check: c})
	}
	return r
}

// Ask gives the outcome of every check, in their order. It takes two seconds at most, or until ctx ends if that is earlier;
// then those that cost something are as they were when last asked.
func (r *Readiness) Ask(ctx context.Context) []Outcome {
	r.askDear(ctx)
	r.askAll(ctx, false)
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.outcomes)
}

// askDear sees to it that the checks which cost something have been asked lately, by whoever comes first.
func (r *Readiness) askDear(ctx context.Context) {
	for ctx.Err() == nil {
		r.mu.Lock()
		if !r.asked.IsZero() && time.Since(r.asked) < keepTime {
			r.mu.Unlock()
			return
		}
		if asking := r.asking; asking != nil {
			r.mu.Unlock()
			select {
			case <-asking:
			case <-ctx.Done():
			}
			continue
		}
		r.asking = make(chan struct{})
		r.mu.Unlock()
		// Others wait for this too, so it goes on though who asked first may have left.
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
		r.askAll(within, true)
		cancel()
		r.mu.Lock()
		r.asked = time.Now()
		close(r.asking)
		r.asking = nil
		r.mu.Unlock()
	}
}

// askAll asks the checks that cost something, or those that do not, beside each other.
func (r *Readiness) askAll(ctx context.Context, costs bool) {
	var all sync.WaitGroup
	for i, c := range r.checks {
		if c.Costs != costs {
			continue
		}
		all.Go(func() { r.note(i, c.Ready(ctx)) })
	}
	all.Wait()
}

// note keeps an outcome and logs what is new about it.
func (r *Readiness) note(i int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, now := &r.outcomes[i], time.Now()
	first, changed := o.Asked.IsZero(), (o.Err == nil) != (err == nil)
	o.Err, o.Asked = err, now
	if first || changed {
		o.Since = now
	}
	switch {
	case o.Check.Expected:
	case err != nil && (first || changed):
		r.log.Warn("not ready", "check", o.Check.Name, "error", err)
	case err == nil && changed:
		r.log.Info("ready again", "check", o.Check.Name)
	}
}

// Nudge has those who watch look at once, because something has changed.
func (r *Readiness) Nudge() {
	select {
	case r.nudged <- struct{}{}:
	default:
	}
}

// watch tells each second how things stand, until ctx ends. There may be one watch.
func (r *Readiness) watch(ctx context.Context, tell func([]Outcome)) {
	ticker := time.NewTicker(keepTime)
	defer ticker.Stop()
	for {
		if all := r.Ask(ctx); ctx.Err() == nil {
			tell(all)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-r.nudged:
		}
	}
}

// isReady reports whether all checks hold that concern a service; "" is the server as a whole.
func isReady(all []Outcome, service string) bool {
	return !slices.ContainsFunc(all, func(o Outcome) bool { return o.Err != nil && o.Check.concerns(service) })
}

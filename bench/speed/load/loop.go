package load

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// client does one turn. It returns when the turn's first piece came, or the zero time where none comes first.
type client func(ctx context.Context) (first time.Time, err error)

// samples are what one client found inside the window.
type samples struct{ turns, firsts []time.Duration }

// run lets all clients loop until the window is over, and then lets each finish the turn it is in: a turn that was begun is
// not cut off, so that nothing is left behind for the next load.
func run(ctx context.Context, s Spec, clients []client) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var measuring, over atomic.Bool
	found := make([]samples, len(clients))
	var wg sync.WaitGroup
	for i, turn := range clients {
		wg.Go(func() {
			for n := 0; (s.Most == 0 || n < s.Most) && !over.Load() && ctx.Err() == nil; n++ {
				began := time.Now()
				first, err := turn(ctx)
				if err != nil {
					cancel(err)
					return
				}
				if measuring.Load() {
					found[i].add(began, first)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	cpu, seconds, err := window(ctx, s, &measuring, done)
	over.Store(true)
	if err != nil {
		cancel(err)
	}
	<-done
	if err := context.Cause(ctx); err != nil {
		return Result{}, err
	}
	return sum(found, cpu, seconds), nil
}

// window waits for the warm-up, measures until all clients are done or the time is over, and returns what was used.
func window(ctx context.Context, s Spec, measuring *atomic.Bool, done <-chan struct{}) (map[string]time.Duration, float64, error) {
	watch := map[string]int{"load": os.Getpid()}
	for name, pid := range s.Watch {
		watch[name] = pid
	}
	if err := pause(ctx, s.Warm, nil); err != nil {
		return nil, 0, err
	}
	before, err := cpuOf(watch)
	if err != nil {
		return nil, 0, err
	}
	opened := time.Now()
	measuring.Store(true)
	err = pause(ctx, s.Window, done)
	measuring.Store(false)
	seconds := time.Since(opened).Seconds()
	if err != nil {
		return nil, 0, err
	}
	after, err := cpuOf(watch)
	for name := range after {
		after[name] -= before[name]
	}
	return after, seconds, err
}

// pause waits for some time, or until all is done.
func pause(ctx context.Context, d time.Duration, done <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-done:
		return context.Cause(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *samples) add(began, first time.Time) {
	s.turns = append(s.turns, time.Since(began))
	if !first.IsZero() {
		s.firsts = append(s.firsts, first.Sub(began))
	}
}

func sum(found []samples, cpu map[string]time.Duration, seconds float64) Result {
	var turns, firsts []time.Duration
	for _, f := range found {
		turns, firsts = append(turns, f.turns...), append(firsts, f.firsts...)
	}
	r := Result{Turns: len(turns), Seconds: seconds, P50: quantile(turns, 0.5), P99: quantile(turns, 0.99), First: quantile(firsts, 0.5)}
	r.CPU = map[string]float64{}
	for name, used := range cpu {
		r.CPU[name] = milliseconds(used) / float64(max(1, len(turns)))
	}
	return r
}

func quantile(of []time.Duration, q float64) float64 {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return milliseconds(of[int(q*float64(len(of)-1))])
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// sized says that a reply has not the size it must have.
func sized(got, want int) error {
	if got != want {
		return fmt.Errorf("a reply has %d bytes instead of %d", got, want)
	}
	return nil
}

package main

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnd/turnd/bench/history/arrays"
	"github.com/turnd/turnd/turns"
)

// run is one run of the check.
type run struct {
	seed, builds int64
	// only is the one history to play; -1 plays all.
	only int64
	// each goes on after a failure, to find one of each kind.
	each  bool
	begun time.Time

	next atomic.Int64 // the number of the next history
	done atomic.Int64 // builds
	stop atomic.Bool  // a failure was found

	mu       sync.Mutex
	sum      tally
	failures map[string]*failure // by what is wrong, that of the lowest number
	planted  int
}

// tally sums up builds.
type tally struct {
	histories, windows, builds, bodies int64
	codes                              map[string]int64
	kinds                              map[string]int
	healed                             map[turns.Healing]int64 // bodies by what was put right in them
	findings                           map[string]int64
}

func newTally() tally {
	return tally{codes: make(map[string]int64), kinds: make(map[string]int), healed: make(map[turns.Healing]int64), findings: make(map[string]int64)}
}

func (t *tally) add(u tally) {
	t.histories, t.windows, t.builds, t.bodies = t.histories+u.histories, t.windows+u.windows, t.builds+u.builds, t.bodies+u.bodies
	for k, n := range u.codes {
		t.codes[k] += n
	}
	for k, n := range u.kinds {
		t.kinds[k] += n
	}
	for k, n := range u.healed {
		t.healed[k] += n
	}
	for k, n := range u.findings {
		t.findings[k] += n
	}
}

// failure is a history that something is wrong with.
type failure struct {
	h       *history
	subject subject
	window  window
	kinds   []string
	o       outcome
}

// play checks the validator, then builds. It says what is wrong, or nothing.
func (r *run) play() string {
	plants := arrays.Plants()
	for _, p := range plants {
		if missed := p.Missed(); missed != "" {
			return "a planted error was not caught: " + missed
		}
	}
	r.planted, r.sum, r.failures = len(plants), newTally(), make(map[string]*failure)
	fmt.Printf("seed %d: %d planted errors caught, %d builds\n", r.seed, r.planted, r.builds)
	stop := r.progress()
	var wg sync.WaitGroup
	for range max(1, runtime.NumCPU()) {
		wg.Go(r.worker)
	}
	wg.Wait()
	stop()
	if len(r.failures) > 0 {
		return r.report()
	}
	if r.only < 0 {
		return r.missing()
	}
	return ""
}

// progress says now and then how far the run is, until it is stopped.
func (r *run) progress() (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(10 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				fmt.Printf("%s: %d of %d builds\n", time.Since(r.begun).Round(time.Second), r.done.Load(), r.builds)
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// worker takes one history after the other.
func (r *run) worker() {
	sum := newTally()
	all := subjects()
	for r.done.Load() < r.builds && !r.stop.Load() {
		n := r.next.Add(1) - 1
		if r.only >= 0 && n > 0 {
			break
		}
		if r.only >= 0 {
			n = r.only
		}
		r.history(n, all, &sum)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.add(sum)
}

// history plays one history: each of its windows for each wire, through one of the wire's endpoints.
func (r *run) history(n int64, all []subject, sum *tally) {
	m := newMaker(r.seed, n)
	h, err1 := m.history(n).stored()
	stored, err2 := h.stored()
	if err1 != nil || err2 != nil {
		r.fail(&failure{h: &history{number: n}, kinds: []string{problemStorage}})
		return
	}
	sum.histories++
	for kind, n := range m.seen {
		sum.kinds[kind] += n
	}
	variant := int(n % 2)
	for i, w := range h.windows {
		sum.windows++
		for at := variant; at < len(all); at += 2 {
			s := all[at]
			s.route.ProviderModel = models[int(n/2)%2]
			if s.wire == arrays.Wire(h.home.wire) && i == 0 {
				s.route.ProviderModel = h.home.model
			}
			o := s.check(h, stored, w)
			sum.take(o)
			r.done.Add(1)
			if len(o.findings) > 0 {
				r.fail(&failure{h: h, subject: s, window: w, kinds: o.kinds(), o: o})
			}
		}
	}
}

func (t *tally) take(o outcome) {
	t.builds++
	for _, kind := range o.kinds() {
		t.findings[kind]++
	}
	if o.code != "" {
		t.codes[string(o.code)]++
		return
	}
	t.bodies++
	for kind, n := range o.healed {
		if n > 0 {
			t.healed[kind]++
		}
	}
}

// fail keeps the failure of the lowest number, of each kind.
func (r *run) fail(f *failure) {
	if !r.each {
		r.stop.Store(true)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kind := string(f.subject.wire) + " " + strings.Join(f.kinds, " ")
	if known := r.failures[kind]; known == nil || f.h.number < known.h.number {
		r.failures[kind] = f
	}
}

// figures is the line of verdict of a run in which all was well.
func (r *run) figures() string {
	var typed int64
	for _, n := range r.sum.codes {
		typed += n
	}
	var shares []string
	for _, kind := range slices.Sorted(maps.Keys(r.sum.healed)) {
		shares = append(shares, fmt.Sprintf("%s:%.4f", kind, float64(r.sum.healed[kind])/float64(max(r.sum.bodies, 1))))
	}
	if len(shares) == 0 {
		shares = []string{"none"}
	}
	return fmt.Sprintf("seed=%d builds=%d histories=%d windows=%d vendors=%d invalid=0 typed_errors=%d rebuilt_differently=0 healed_share=%s planted=%d caught=%d kinds=%d seconds=%.1f",
		r.seed, r.sum.builds, r.sum.histories, r.sum.windows, len(arrays.Wires), typed, strings.Join(shares, ","), r.planted, r.planted,
		len(r.sum.kinds), time.Since(r.begun).Seconds())
}

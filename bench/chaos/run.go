package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/turnd/turnd/llm/scripted"
)

// game is what is played in one run.
type game struct {
	seed     int64
	length   time.Duration
	clients  int
	mix      mix
	kinds    []string
	gap      time.Duration // between faults, on average
	failover bool
	need     int // replies in flight under faults, at least
	// plan, if set, is played instead of one drawn from the seed.
	plan []fault
	// after, if set, is done to the database once its tables are there.
	after func(ctx context.Context, c *cluster) error
}

// usualGame is what make chaos plays.
func usualGame(seed int64, short bool) game {
	g := game{seed: seed, length: 3 * time.Minute, clients: 20, mix: usualMix, kinds: faultKinds, gap: 4 * time.Second, failover: true, need: 50}
	if short {
		g.length, g.gap, g.need = 35*time.Second, 1600*time.Millisecond, 25
	}
	return g
}

// finishTime is how long clients may take to finish what they have once all is healed, quietTime how long the service may
// take after that.
const (
	finishTime = 90 * time.Second
	quietTime  = 45 * time.Second
)

// result is what a run came to.
type result struct {
	seed      int64
	begun     time.Time
	broken    []breach
	timeline  []string
	struck    map[string]int
	caught    int
	figures   map[string]int
	wasted    map[string]int64
	turns     int
	endings   map[string]int
	requests  int
	generated int
	samples   int
	histories int
	undecided int
	evidence  []string
}

// play plays one game in a folder. The error is one of the equipment, not of the service.
func play(ctx context.Context, g game, dir, bin string) (*result, error) {
	told := newStories(rand.New(rand.NewPCG(uint64(g.seed), 1)))
	c, err := startCluster(ctx, dir, bin, told)
	defer c.stop()
	if err != nil {
		return nil, err
	}
	if g.after != nil {
		if err := g.after(ctx, c); err != nil {
			return nil, err
		}
	}
	rec := newRecorder()
	s := &storm{cluster: c, rec: rec, struck: map[string]int{}, calm: time.Now()}
	watch := newSampler(rec, c.database.dsn, s.calmSince)
	s.inFlight = watch.inFlight
	watching, endWatch := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { watch.run(watching) })
	watcher.Go(func() { s.watchMachine(watching) })
	err = playClients(ctx, g, c, rec, s)
	if err == nil {
		err = settle(ctx, c, rec)
	}
	endWatch()
	watcher.Wait()
	if err = errors.Join(err, s.failed); err != nil {
		return nil, err
	}
	e, err := gather(ctx, c, rec, told, s)
	if err != nil {
		return nil, err
	}
	r := conclude(g, e, s, watch)
	return r, keepEvidence(dir, r.evidence)
}

// playClients lets clients live while the storm goes on, heals everything, and lets them finish.
func playClients(ctx context.Context, g game, c *cluster, rec *recorder, s *storm) error {
	open, shut := context.WithCancel(ctx)
	defer shut()
	until, give := context.WithCancel(ctx)
	defer give()
	var all sync.WaitGroup
	for n := range g.clients {
		cl, err := newClient(n, g.seed, c.fronts(), rec, g.mix)
		if err != nil {
			return err
		}
		all.Go(func() {
			defer cl.close()
			cl.live(open, until)
		})
	}
	plan := g.plan
	if plan == nil {
		plan = planFaults(rand.New(rand.NewPCG(uint64(g.seed), 2)), g.length, g.kinds, g.gap, g.failover)
	}
	s.play(ctx, plan)
	sleep(ctx, g.length-time.Since(rec.begun))
	shut()
	for _, w := range c.workers {
		for _, l := range w.links() {
			l.Heal()
		}
	}
	timer := time.AfterFunc(finishTime, give)
	defer timer.Stop()
	all.Wait()
	return ctx.Err()
}

// settle waits until nothing is in flight and no call is open, at the provider either, and then sends turns that have
// ended once more: that costs nothing.
func settle(ctx context.Context, c *cluster, rec *recorder) error {
	quiet, cancel := context.WithTimeout(ctx, quietTime)
	defer cancel()
	for {
		n, err := number(quiet, c.database.dsn(), `SELECT (SELECT count(*) FROM turns WHERE status = 'in_flight') + (SELECT count(*) FROM provider_calls WHERE class = '')`)
		counts, errProvider := c.provider.Counts(quiet)
		if err == nil && errProvider == nil && n == 0 && counts.Running == 0 {
			break
		}
		if !sleep(quiet, 100*time.Millisecond) {
			rec.broke("P11", "%d replies and calls are open %s after everything was healed", n, quietTime)
			break
		}
	}
	return replayAll(ctx, c, rec)
}

// replayAll sends some finished turns again to every worker, and counts that the provider hears nothing of it.
func replayAll(ctx context.Context, c *cluster, rec *recorder) error {
	before, err := c.provider.Counts(ctx)
	if err != nil {
		return err
	}
	sent := 0
	for i, tenant := range []string{tenantOne, tenantTwo} {
		cl, err := newClient(10_000+i, 0, c.fronts(), rec, mix{classes: classes})
		if err != nil {
			return err
		}
		cl.tenant = tenant
		for _, t := range rec.turns {
			if t.tenant == tenant && t.settled == endCompleted && sent < 60 {
				var at place
				cl.deliver(ctx, t, sent%workerCount, &at)
				sent++
			}
		}
		cl.close()
	}
	after, err := c.provider.Counts(ctx)
	if err == nil && after.Requests != before.Requests {
		rec.broke("P9", "%d finished turns were sent again, and the provider had %d more requests", sent, after.Requests-before.Requests)
	}
	return err
}

// gather reads what is stored and what the provider counted.
func gather(ctx context.Context, c *cluster, rec *recorder, told *stories, s *storm) (*evidence, error) {
	st, err := readStored(ctx, c.database.dsn())
	if err != nil {
		return nil, err
	}
	journal, err := c.provider.Calls(ctx)
	if err != nil {
		return nil, err
	}
	e := newEvidence(rec, st, journal, told)
	e.spans, e.storeSpans = s.spans, s.storeSpans
	for id, w := range st.workers {
		e.ownerOf[id] = slices.IndexFunc(c.workers, func(o *worker) bool { return o.name == w.Name })
	}
	return e, nil
}

// conclude judges the evidence and adds everything up.
func conclude(g game, e *evidence, s *storm, watch *sampler) *result {
	r := &result{
		seed: g.seed, begun: e.rec.begun, timeline: s.timeline, struck: s.struck, caught: s.caught, wasted: map[string]int64{},
		endings: map[string]int{}, turns: len(e.rec.turns), requests: len(e.journal), samples: watch.samples, evidence: e.lines(),
	}
	e.judge()
	r.histories, r.undecided = e.claimsAreOrdered()
	for _, c := range e.stored.calls {
		if c.Wasted > 0 {
			r.wasted[c.Waste] += c.Wasted
		}
	}
	for _, c := range e.journal {
		if c.DeltasGenerated > 0 || c.End != scripted.EndStatus {
			r.generated++
		}
	}
	for _, t := range e.rec.turns {
		r.endings[t.settled]++
	}
	r.figures = maps.Clone(e.rec.figures)
	r.broken = e.rec.broken
	if s.caught < g.need {
		r.broken = append(r.broken, breach{"run", fmt.Sprintf("the faults struck %d replies in flight, %d are needed for the run to show anything", s.caught, g.need), time.Now()})
	}
	return r
}

package main

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/turnd/turnd/bench/rig"
	"github.com/turnd/turnd/bench/speed/demand"
	"github.com/turnd/turnd/bench/speed/load"
)

const (
	mostWorkers = 3
	// modelError is how far what the model foretells of several workers may be from what is measured.
	modelError = 0.25
	// idleFor is how long a worker with nothing to do is watched.
	idleFor, idleForShort = 10 * time.Second, 3 * time.Second
	topStatements         = 8
)

// workers measures one to three workers on one Postgres, says what stops them, and holds a model made of one worker to the others.
func workers(s *stage) error {
	w := &crew{bench: &bench{stage: s, report: s.newReport()}}
	if err := w.setUp(); err != nil {
		return err
	}
	machine := demand.Machine{Cores: float64(runtime.NumCPU())}
	var err error
	if machine.Syncs, err = syncRate(s.dir, s.short); err != nil {
		return err
	}
	if machine.Idle, err = w.idle(); err != nil {
		return err
	}
	fmt.Printf("machine: %.0f cores; its disk flushes %.0f times a second; a worker with nothing to do takes %.4f cores\n",
		machine.Cores, machine.Syncs, machine.Idle)
	for _, scene := range []struct {
		name, shape string
		clients     int
		provider    *rig.Provider
	}{{"streamed", load.Turn, streamClients, w.many}, {"submitted", load.Submit, submitClients, w.once}} {
		points, err := w.scene(scene.name, scene.shape, scene.clients, scene.provider)
		if err != nil {
			return err
		}
		w.judge(scene.name, machine, points)
	}
	return w.report.close(s, "bench-workers")
}

// crew is a bench of several workers.
type crew struct{ *bench }

// idle is how many cores a worker takes that has nothing to do, with what it has Postgres do.
func (w *crew) idle() (float64, error) {
	turnd, err := w.service(w.many.Addr, nil)
	if err != nil {
		return 0, err
	}
	span := idleFor
	if w.short {
		span = idleForShort
	}
	pids := map[string]int{"turnd": turnd.PID(), "postgres": w.pg.server.PID()}
	used, err := load.CPU(w.ctx, pids, span)
	if err != nil {
		return 0, err
	}
	return (used["turnd"] + used["postgres"]).Seconds() / span.Seconds(), turnd.End(syscall.SIGTERM, time.Minute)
}

// scene measures one to three workers in rounds, each number of them on a database of its own, and returns the median points. All
// run all the time, so that each has its plans when it is measured; what those take that rest is little, and is known.
func (w *crew) scene(name, shape string, clients int, provider *rig.Provider) (points []demand.Point, err error) {
	fmt.Printf("--- %s\n", name)
	p := w.pace()
	p.warm *= 2 // several workers have several times as many connections, each of which has plans of its own to make
	if clients > streamClients {
		p.window = max(p.window, crowdWindow)
	}
	var teams []*team
	for n := range mostWorkers {
		t, err := w.team(n+1, shape, clients, provider)
		if err != nil {
			return nil, err
		}
		teams = append(teams, t)
	}
	for _, t := range teams {
		if _, err := t.measure(w.bench, p); err != nil {
			return nil, err
		}
	}
	if err := w.pg.learn(w.ctx); err != nil {
		return nil, err
	}
	seen := map[int][]demand.Point{}
	for n := range p.rounds {
		for i := range teams {
			t := teams[(n+i)%len(teams)]
			got, err := t.measure(w.bench, p)
			if err != nil {
				return nil, fmt.Errorf("%s by %d workers: %w", name, t.workers, err)
			}
			seen[t.workers] = append(seen[t.workers], got.point(t.workers))
			fmt.Printf("round %d  %-10s %d workers %6.0f turns/s  p50 %8.2f ms  p99 %8.2f ms  CPU a turn, ms: %s\n",
				n+1, name, t.workers, got.PerSecond(), got.P50, got.P99, cpuWords(got.CPU))
			got.stops.print(got.Result)
			if n == p.rounds-1 {
				if err := w.pg.statements(w.ctx, got.Turns, topStatements); err != nil {
					return nil, err
				}
			}
		}
	}
	w.report.note(name, seen)
	for _, t := range teams {
		points = append(points, medianPoint(t.workers, seen[t.workers]))
	}
	return points, w.end(teams)
}

// end ends the workers of a scene.
func (w *crew) end(teams []*team) error {
	for _, t := range teams {
		for _, s := range t.members {
			if err := s.End(syscall.SIGTERM, time.Minute); err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
		}
	}
	return nil
}

// team is some workers on one database.
type team struct {
	workers  int
	database string
	members  []*server
	spec     load.Spec
}

func (w *crew) team(workers int, shape string, clients int, provider *rig.Provider) (*team, error) {
	t := &team{workers: workers, database: w.name("workers")}
	dsn, err := w.pg.create(w.ctx, t.database)
	if err != nil {
		return nil, err
	}
	if err := w.pg.planning(w.ctx, t.database); err != nil {
		return nil, err
	}
	t.spec = load.Spec{
		Shape: shape, Clients: clients, Deltas: streamDeltas,
		Watch: map[string]int{"postgres": w.pg.server.PID(), "provider": provider.PID()},
	}
	for i := range workers {
		s, err := w.serviceOn(dsn, modelsOf(provider.Addr, ""), nil)
		if err != nil {
			return nil, err
		}
		t.members, t.spec.Targets = append(t.members, s), append(t.spec.Targets, s.Listen)
		t.spec.Watch[fmt.Sprintf("turnd %d", i+1)] = s.PID()
	}
	return t, nil
}

// measured is what a load found, and what the database and the machine saw meanwhile.
type measured struct {
	load.Result
	stops stops
}

// measure loads a team.
func (t *team) measure(b *bench, p pace) (m measured, err error) {
	if err := b.pg.settle(b.ctx); err != nil {
		return m, err
	}
	watched := make(chan error, 1)
	go func() {
		var err error
		m.stops, err = b.pg.watch(b.ctx, t.database, p.warm, p.window)
		watched <- err
	}()
	spec := t.spec
	spec.Warm, spec.Window = p.warm, p.window
	r, err := b.load(spec)
	if watchErr := <-watched; err == nil {
		err = watchErr
	}
	if err == nil && r.Turns == 0 {
		err = errors.New("no turn ended inside the window")
	}
	m.Result = r
	return m, err
}

// point is a load as the model sees it.
func (m measured) point(workers int) demand.Point {
	p := demand.Point{Workers: workers, PerSecond: m.PerSecond(), Syncs: m.stops.syncs / float64(max(1, m.Turns)), Spare: m.stops.spare}
	for name, ms := range m.CPU {
		switch {
		case strings.HasPrefix(name, "turnd"):
			p.Worker += ms / 1000
		case name == "postgres":
			p.Store += ms / 1000
		default:
			p.Other += ms / 1000
		}
	}
	return p
}

// medianPoint has the median of each value.
func medianPoint(workers int, points []demand.Point) demand.Point {
	of := func(read func(demand.Point) float64) float64 {
		var values []float64
		for _, p := range points {
			values = append(values, read(p))
		}
		return median(values)
	}
	return demand.Point{
		Workers: workers, PerSecond: of(func(p demand.Point) float64 { return p.PerSecond }),
		Worker: of(func(p demand.Point) float64 { return p.Worker }), Store: of(func(p demand.Point) float64 { return p.Store }), Other: of(func(p demand.Point) float64 { return p.Other }),
		Syncs: of(func(p demand.Point) float64 { return p.Syncs }), Spare: of(func(p demand.Point) float64 { return p.Spare }),
	}
}

// clusters are what is extrapolated to. What a disk flushes is taken from one of a data centre and not from here.
var clusters = []demand.Cluster{
	{Workers: 2, WorkerCores: 8, Stores: 1, StoreCores: 16, Syncs: 10_000},
	{Workers: 8, WorkerCores: 8, Stores: 4, StoreCores: 16, Syncs: 10_000},
	{Workers: 32, WorkerCores: 8, Stores: 16, StoreCores: 16, Syncs: 10_000},
}

// judge makes the model of the first point, prints what it says of the others and beyond, and adds its errors as figures.
func (w *crew) judge(name string, machine demand.Machine, points []demand.Point) {
	m := demand.Model{Machine: machine, One: points[0]}
	fmt.Printf("--- model of %s, made of one worker: a turn takes %.2f ms of CPU (turnd %.2f, Postgres %.2f, the rest %.2f), %.2f flushes\n",
		name, 1000*m.One.CPU(), 1000*m.One.Worker, 1000*m.One.Store, 1000*m.One.Other, m.One.Syncs)
	for _, p := range points {
		at := m.At(p.Workers)
		fmt.Printf("%d workers: measured %.0f turns/s with %.0f%% of the cores and %.0f%% of them idle, %.2f ms of CPU a turn; ",
			p.Workers, p.PerSecond, 100*m.Busy(p), 100*p.Spare, 1000*p.CPU())
		fmt.Printf("foretold %.0f, stopped by %s; off by %+.1f%%\n", at.PerSecond, at.What, 100*m.Error(p))
		if p.Workers > 1 {
			w.report.add(Figure{
				Name: fmt.Sprintf("%s_model_%d", name, p.Workers), Value: math.Abs(m.Error(p)), Goal: modelError, AtMost: true,
				Of: fmt.Sprintf("measured %.0f turns/s, foretold %.0f, stopped by %s", p.PerSecond, at.PerSecond, at.What),
			})
		}
	}
	fmt.Println("extrapolated, not measured: stores sharded by conversation, on machines of their own, a turn demanding what it does here")
	far := map[string]demand.Bound{}
	for _, c := range clusters {
		at := m.Extrapolate(c)
		far[c.String()] = at
		fmt.Printf("  %-50s %7.0f turns/s, stopped by %s\n", c, at.PerSecond, at.What)
	}
	w.report.note(name+"_model", m)
	w.report.note(name+"_extrapolated", far)
}

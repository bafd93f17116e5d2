package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/turnd/turnd/bench/speed/load"
	"github.com/turnd/turnd/bench/speed/plot"
	"github.com/turnd/turnd/bench/speed/trend"
)

const (
	soakMinutes     = 20
	soakEvery       = time.Minute
	soakShort       = 40 * time.Second
	soakEveryShort  = 4 * time.Second
	soakClients     = 32
	soakRest        = 400 * time.Millisecond
	soakPaceMS      = 2
	settlePatience  = 3 * time.Minute // idle connections to a provider are kept for a while
	settleEvery     = 2 * time.Second
	settleCalm      = 30 * time.Second // is longer than idle connections to a provider are kept
	warmSoak        = 5 * time.Second
	mebibyte        = 1 << 20
	soakGrowth      = 0.05
	soakReturn      = 1.0
	soakBytesGrowth = 0.2
	soakDead        = 0.35
	soakChunksMB    = 64
)

// soakLimits give the model a window that long conversations soon fill: without one their requests would grow, and the load with them.
const soakLimits = ", limits: {window_tokens: 8000, max_output_tokens: 500}"

// soakEnv is what GOGC is by default. Said, it takes away the floor of a worker's heap, which is several times what the load holds: a
// leak would be a small share of the two together.
var soakEnv = []string{"GOGC=100"}

// soak loads one service steadily for a while, watches what it holds, and judges whether that is flat, and goes away with the load.
func soak(s *stage) error {
	span, every, err := soakPace(s.short)
	if err != nil {
		return err
	}
	plan := streamed(streamDeltas)
	plan["pace_ms"] = soakPaceMS
	provider, err := s.provider(plan)
	if err != nil {
		return err
	}
	database := s.name("soak")
	dsn, err := s.pg.create(s.ctx, database)
	if err != nil {
		return err
	}
	turnd, err := s.serviceOn(dsn, modelsOf(provider.Addr, soakLimits), soakEnv, "--ops-listen", "127.0.0.1:0")
	if err != nil {
		return err
	}
	k := &soaking{bench: &bench{stage: s, report: s.newReport()}, turnd: turnd, database: database, spec: load.Spec{
		Shape: load.Mix, Target: turnd.Listen, Clients: soakClients, Conns: 2, Deltas: streamDeltas, Rest: soakRest,
		Watch: map[string]int{"turnd": turnd.PID(), "postgres": s.pg.server.PID(), "provider": provider.PID()},
	}}
	if err := k.play(span, every); err != nil {
		return err
	}
	if err := k.draw(); err != nil {
		return err
	}
	return k.report.close(s, "soak")
}

// soakPace is for how long the load is on and how often it is looked at; MINUTES sets the former.
func soakPace(short bool) (span, every time.Duration, err error) {
	span, every = soakMinutes*time.Minute, soakEvery
	if short {
		span, every = soakShort, soakEveryShort
	}
	if minutes := os.Getenv("MINUTES"); minutes != "" {
		n, err := strconv.Atoi(minutes)
		if err != nil || n < 1 {
			return 0, 0, fmt.Errorf("MINUTES is %q, and must be a number from 1 on", minutes)
		}
		span = time.Duration(n) * time.Minute
		every = min(every, span/12)
	}
	return span, every, nil
}

// soaking is a soak under way.
type soaking struct {
	*bench
	turnd    *server
	database string
	spec     load.Spec
	begun    time.Time
	base     held   // before the load
	seen     []held // under load
	after    held   // once the load was gone
}

// play looks at the service before the load, during it, and after it until what it holds is as before, or patience ends.
func (k *soaking) play(span, every time.Duration) error {
	warm := k.spec
	warm.Window = warmSoak
	if _, err := k.bench.load(warm); err != nil { // pools are opened and code is read
		return err
	}
	k.begun = time.Now()
	var err error
	if k.base, err = settled(k.ctx, k.look, settlePatience/3, held{}); err != nil {
		return err
	}
	k.base.print("base")
	fmt.Println(heldHead)
	spec := k.spec
	spec.Window = span
	type outcome struct {
		result load.Result
		err    error
	}
	over := make(chan outcome, 1)
	k.begun = time.Now()
	go func() {
		r, err := k.bench.load(spec)
		over <- outcome{r, err}
	}()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			h, err := k.look()
			if err != nil {
				<-over
				return err
			}
			k.seen = append(k.seen, h)
			h.print(fmt.Sprintf("%.1f", h.Minutes))
			continue
		case o := <-over:
			if o.err != nil {
				return o.err
			}
			fmt.Printf("%d turns of all kinds, %.0f a second, CPU a turn, ms: %s\n",
				o.result.Turns, o.result.PerSecond(), cpuWords(o.result.CPU))
			k.report.note("load", o.result)
		}
		break
	}
	if k.after, err = settled(k.ctx, k.look, settlePatience, k.base); err != nil {
		return err
	}
	k.after.print("after")
	k.judge()
	return nil
}

// settled looks until as little is held as at another time, or, where that is none, nothing has changed for a while, or patience ends.
func settled(ctx context.Context, look func() (held, error), patience time.Duration, as held) (h held, err error) {
	began := time.Now()
	last, calm := held{}, began
	for {
		if h, err = look(); err != nil {
			return h, err
		}
		if h.Goroutines != last.Goroutines || h.FDs != last.FDs || h.Connections != last.Connections {
			calm = time.Now()
		}
		done := time.Since(calm) >= settleCalm
		if as.Goroutines > 0 {
			done = h.Goroutines <= as.Goroutines+slackGoroutines && h.FDs <= as.FDs+slackFDs &&
				h.Connections <= as.Connections+slackConnections
		}
		if done || time.Since(began) >= patience {
			return h, nil
		}
		last = h
		if err := rest(ctx, settleEvery); err != nil {
			return h, err
		}
	}
}

// What these may move without having grown: idle connections come and go.
const (
	slackHeap        = 3 * mebibyte
	slackRSS         = 24 * mebibyte
	slackGoroutines  = 30
	slackFDs         = 12
	slackConnections = 2
)

// flat are the values that have to be flat under load, and to be as before once it is gone.
var flat = []struct {
	name  string
	slack float64
	of    func(held) float64
}{
	{"heap", slackHeap, func(h held) float64 { return h.Heap }},
	{"rss", slackRSS, func(h held) float64 { return h.RSS }},
	{"goroutines", slackGoroutines, func(h held) float64 { return h.Goroutines }},
	{"fds", slackFDs, func(h held) float64 { return h.FDs }},
	{"connections", slackConnections, func(h held) float64 { return h.Connections }},
}

// judge adds the figures.
func (k *soaking) judge() {
	k.report.note("base", k.base)
	k.report.note("samples", k.seen)
	k.report.note("after", k.after)
	late := trend.Settled(k.seen)
	minutes := valuesOf(late, func(h held) float64 { return h.Minutes })
	for _, f := range flat {
		ys := valuesOf(late, f.of)
		line := trend.Fit(minutes, ys)
		k.report.add(Figure{
			Name: f.name, Value: trend.Growth(minutes, ys, f.slack), Goal: soakGrowth, AtMost: true,
			Of: fmt.Sprintf("share by which a line through the last two thirds rises past %.4g; it rises by %.4g a minute", f.slack, line.Slope),
		})
	}
	for _, f := range flat {
		if f.name == "rss" { // Go gives memory back to the system in its own time
			continue
		}
		k.report.add(Figure{
			Name: f.name + "_after", Value: f.of(k.after) / (f.of(k.base) + f.slack), Goal: soakReturn, AtMost: true,
			Of: fmt.Sprintf("%.4g once the load was gone, %.4g before it and %.4g of slack", f.of(k.after), f.of(k.base), f.slack),
		})
	}
	k.judgeTables(late)
}

// judgeTables adds what is said of the database: each turn has to take as much as one before, and what is dead has to be cleared.
func (k *soaking) judgeTables(late []held) {
	first, last := late[0], late[len(late)-1]
	k.report.add(Figure{
		Name: "bytes_a_turn", Value: last.bytesATurn()/first.bytesATurn() - 1, Goal: soakBytesGrowth, AtMost: true,
		Of: fmt.Sprintf("tables and indexes for one row of turns: %.0f bytes at %.1f min, %.0f at %.1f min",
			first.bytesATurn(), first.Minutes, last.bytesATurn(), last.Minutes),
	})
	k.report.add(Figure{
		Name: "dead", Value: median(valuesOf(late, held.deadShare)), Goal: soakDead, AtMost: true,
		Of: "dead rows of all tables but that of chunks, to all rows of them, at the median",
	})
	k.report.add(Figure{
		Name: "chunks_mb", Value: last.Chunks / 1e6, Goal: soakChunksMB, AtMost: true,
		Of: fmt.Sprintf("the table of chunks, which all go when their reply ends, and its index; %.0f%% of updates of turns were HOT",
			100*last.HOT),
	})
}

// draw writes the lines over time beside the programs.
func (k *soaking) draw() error {
	var charts []plot.Chart
	for _, c := range heldColumns {
		charts = append(charts, plot.Chart{Title: c.title, Values: valuesOf(k.seen, func(h held) float64 { return c.of(h) / c.unit })})
	}
	minutes := valuesOf(k.seen, func(h held) float64 { return h.Minutes })
	svg := plot.SVG("soak: one turnd under a steady mixed load", "minutes", minutes, charts)
	file := filepath.Join(filepath.Dir(k.self), "soak.svg")
	if err := os.WriteFile(file, []byte(svg), 0o644); err != nil { //nolint:gosec // a drawing is no secret
		return err
	}
	fmt.Println("drawn to", file)
	return nil
}

func valuesOf(of []held, read func(held) float64) []float64 {
	values := make([]float64, len(of))
	for i, h := range of {
		values[i] = read(h)
	}
	return values
}

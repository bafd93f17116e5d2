package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/turnd/turnd/bench/speed/load"
)

// entrant is one of those that are compared.
type entrant struct {
	name string
	spec load.Spec
}

// rounds are the results by the names of the entrants, one of each a round.
type rounds map[string][]load.Result

// pace is how long a load warms up and is measured, and how many rounds there are.
type pace struct {
	warm, window time.Duration
	rounds       int
}

// compete measures each entrant once a round. Each round begins with another one, so that none is always the first. Before
// the first there is one that does not count, in which databases are filled, and learnt.
func (s *stage) compete(p pace, entrants ...entrant) (rounds, error) {
	found := rounds{}
	if err := s.rehearse(p, entrants); err != nil {
		return nil, err
	}
	for n := range p.rounds {
		if err := s.round(n, p, entrants, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// round measures each entrant once.
func (s *stage) round(n int, p pace, entrants []entrant, found rounds) error {
	for i := range entrants {
		e := entrants[(n+i)%len(entrants)]
		e.spec.Warm, e.spec.Window = p.warm, p.window
		if err := s.pg.settle(s.ctx); err != nil {
			return err
		}
		r, err := s.load(e.spec)
		if err == nil && r.Turns == 0 {
			err = errors.New("no turn ended inside the window")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		fmt.Printf("round %d  %-14s %8.0f turns/s  p50 %8.2f ms  p99 %8.2f ms  CPU a turn, ms: %s\n",
			n+1, e.name, r.PerSecond(), r.P50, r.P99, cpuWords(r.CPU))
		found[e.name] = append(found[e.name], r)
	}
	return nil
}

func (s *stage) rehearse(p pace, entrants []entrant) error {
	for _, e := range entrants {
		e.spec.Warm, e.spec.Window = p.warm/2, p.window/2
		if _, err := s.load(e.spec); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return s.pg.learn(s.ctx)
}

func cpuWords(cpu map[string]float64) string {
	var words []string
	for name, ms := range cpu {
		if ms < 0.0005 {
			continue
		}
		words = append(words, fmt.Sprintf("%s %.3f", name, ms))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// of is the median over the rounds of what is read from the results of a round.
func (r rounds) of(read func(at func(name string) load.Result) float64) float64 {
	var values []float64
	for _, results := range r {
		for i := range results {
			values = append(values, read(func(name string) load.Result { return r[name][i] }))
		}
		break // each has as many
	}
	return median(values)
}

// perSecond is the median throughput of one entrant.
func (r rounds) perSecond(name string) float64 {
	return r.of(func(at func(string) load.Result) float64 { return at(name).PerSecond() })
}

// cpu is the median CPU a turn of a process while one entrant was measured, in milliseconds.
func (r rounds) cpu(name, process string) float64 {
	return r.of(func(at func(string) load.Result) float64 { return at(name).CPU[process] })
}

func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	if n == 0 {
		return 0
	}
	return (values[(n-1)/2] + values[n/2]) / 2
}

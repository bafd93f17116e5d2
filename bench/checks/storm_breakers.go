package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// breakerStates watches the gauge of the breakers: 0 closed, 1 half-open, 2 open.
type breakerStates struct {
	url  string
	mu   sync.Mutex
	seen map[string][3]bool // by endpoint
	now  map[string]int
}

var stateLine = regexp.MustCompile(`^turnd_breaker_state\{.*endpoint="([^"]+)".*\} ([012])$`)

// watch looks until ctx ends. A look that fails is no matter: the next one is soon.
func (b *breakerStates) watch(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		b.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (b *breakerStates) look(ctx context.Context) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url, nil)
	if err != nil {
		return
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(io.LimitReader(res.Body, 8<<20))
	b.mu.Lock()
	defer b.mu.Unlock()
	for lines.Scan() {
		if m := stateLine.FindStringSubmatch(lines.Text()); m != nil {
			state, _ := strconv.Atoi(m[2])
			seen := b.seen[m[1]]
			seen[state] = true
			b.seen[m[1]], b.now[m[1]] = seen, state
		}
	}
}

// closed reports whether every breaker that was open is closed.
func (b *breakerStates) closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, state := range b.now {
		if state != 0 {
			return false
		}
	}
	return len(b.now) > 0
}

// change is a line of the log about a breaker.
type change struct {
	at time.Time
	to string // open, half-open, closed
}

var changeLine = regexp.MustCompile(`^(\S+) \S+ breaker (open|half-open|closed) endpoint=(\S+)`)

// breakerLog reads the changes of all breakers from a log, by endpoint.
func breakerLog(file string) (map[string][]change, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	changes := map[string][]change{}
	for line := range strings.Lines(string(data)) {
		m := changeLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, m[1])
		if err != nil {
			return nil, err
		}
		changes[m[3]] = append(changes[m[3]], change{at, m[2]})
	}
	return changes, nil
}

// count is how often a breaker changed to a state.
func count(changes []change, to string) (n int) {
	for _, c := range changes {
		if c.to == to {
			n++
		}
	}
	return n
}

// underWay is how long a call that was let through before a breaker opened may take to reach the provider.
const underWay = time.Second

// whileOpen reports whether a breaker was open at a time, and had been for long enough.
func whileOpen(changes []change, at time.Time) bool {
	for i, c := range changes {
		if c.to == "open" && at.After(c.at.Add(underWay)) && (i+1 == len(changes) || at.Before(changes[i+1].at)) {
			return true
		}
	}
	return false
}

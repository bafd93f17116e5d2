package llm

import (
	"errors"
	"log/slog"
	"sync"
	"time"
)

// When a breaker opens, and for how long. A few failures in a row of a quiet endpoint say little; half of the calls within
// half a minute say that the next one would most likely fail too.
const (
	breakerSample = 5
	breakerShare  = 2 // one bad call in so many
	breakerWindow = 30 * time.Second
	breakerPause  = 30 * time.Second
	// trialWait is how long others wait while a trial is under way. It is decided at the first content at the latest.
	trialWait = time.Second
)

// ErrBreakerOpen says that a call was not sent because those before it to the same model at the same endpoint had failed.
var ErrBreakerOpen = errors.New("the breaker is open")

// breakerState is what a breaker lets through; its number is what the gauge shows.
type breakerState int64

// A closed breaker lets everything through, an open one nothing, and a half-open one a single call: the trial.
const (
	breakerClosed   breakerState = 0
	breakerHalfOpen breakerState = 1
	breakerOpen     breakerState = 2
)

// breakerKey is what a breaker watches: one model at one endpoint.
type breakerKey struct{ endpoint, model string }

// breaker watches the calls of one model at one endpoint. Each call counts in the era in which it began, and an era ends
// with each change of state: calls of an outage that end late must not open the breaker a second time.
type breaker struct {
	breakerKey
	logger *slog.Logger

	mu    sync.Mutex
	state breakerState
	era   int
	until time.Time // when it is open no longer
	trial bool      // one is under way
	calls window
}

func newBreaker(key breakerKey, logger *slog.Logger) *breaker {
	return &breaker{breakerKey: key, logger: logger}
}

// pass is a call that was let through.
type pass struct {
	era   int
	trial bool
}

// ready reports whether a call would be let through, or when to ask again.
func (b *breaker) ready(now time.Time) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.free(now)
}

// begin lets a call through, or says when to ask again. Who was let through calls end.
func (b *breaker) begin(now time.Time) (p pass, wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait, ok = b.free(now); ok {
		b.trial = b.state == breakerHalfOpen
		p = pass{era: b.era, trial: b.trial}
	}
	return p, wait, ok
}

// free is ready with mu held.
func (b *breaker) free(now time.Time) (wait time.Duration, ok bool) {
	b.expire(now)
	switch {
	case b.state == breakerOpen:
		return b.until.Sub(now), false
	case b.trial:
		return trialWait, false
	}
	return 0, true
}

// answered says that content of the trial came. It has shown by it that the provider is back: a long answer must not keep all
// others waiting. The pass goes on as that of a usual call.
func (b *breaker) answered(p pass) pass {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.era == b.era {
		b.turn(breakerClosed)
		return pass{era: b.era}
	}
	return p
}

// end counts a call that is over.
func (b *breaker) end(now time.Time, p pass, v verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case p.era != b.era:
	case p.trial:
		b.judge(now, v)
	case v != verdictNone:
		b.calls.add(now, v == verdictBad)
		if v == verdictBad && b.calls.isBad(now) { // a good call is no reason to open, whatever there was before it
			b.open(now)
		}
	}
}

// judge takes what the trial showed. Without a verdict the next call is another one.
func (b *breaker) judge(now time.Time, v verdict) {
	b.trial = false
	switch v {
	case verdictBad:
		b.open(now)
	case verdictGood:
		b.turn(breakerClosed)
	case verdictNone:
	}
}

// look is the state as it is now.
func (b *breaker) look(now time.Time) breakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire(now)
	return b.state
}

func (b *breaker) open(now time.Time) {
	b.until = now.Add(breakerPause)
	b.turn(breakerOpen)
}

// expire half-opens a breaker whose pause is over. Nothing runs by the clock: whoever looks next is the first to know.
func (b *breaker) expire(now time.Time) {
	if b.state == breakerOpen && !now.Before(b.until) {
		b.turn(breakerHalfOpen)
	}
}

// turn changes the state, and begins another era.
func (b *breaker) turn(to breakerState) {
	b.state, b.trial, b.calls = to, false, window{}
	b.era++
	where := []any{"endpoint", b.endpoint, "model", b.model}
	switch to {
	case breakerOpen:
		b.logger.Warn("breaker open", append(where, "for", breakerPause)...)
	case breakerHalfOpen:
		b.logger.Info("breaker half-open", where...)
	case breakerClosed:
		b.logger.Info("breaker closed", where...)
	}
}

// window counts the calls that ended within breakerWindow, to the second. Its size does not depend on how many there are.
type window struct {
	seconds [breakerWindow / time.Second]struct {
		at         int64 // which second; a slot of another one is stale
		calls, bad int
	}
}

func (w *window) add(now time.Time, bad bool) {
	at := now.Unix()
	slot := &w.seconds[at%int64(len(w.seconds))]
	if slot.at != at {
		slot.at, slot.calls, slot.bad = at, 0, 0
	}
	slot.calls++
	if bad {
		slot.bad++
	}
}

// isBad reports whether there were enough calls, and enough bad ones among them.
func (w *window) isBad(now time.Time) bool {
	calls, bad := 0, 0
	for _, slot := range w.seconds {
		if age := now.Unix() - slot.at; age >= 0 && age < int64(len(w.seconds)) {
			calls, bad = calls+slot.calls, bad+slot.bad
		}
	}
	return calls >= breakerSample && bad*breakerShare >= calls
}

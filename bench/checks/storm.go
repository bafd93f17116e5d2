package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/turnd/turnd/llm/scripted"
)

const (
	stormTime  = time.Minute
	stormShort = 10 * time.Second
	// stormTurns is how often a turn is sent to each model.
	stormTurns = 700 * time.Millisecond
	// stormBurst are sent at once in its beginning.
	stormBurst = 5
	// stormHint is what is asked to be waited for.
	stormHint = time.Second
	// Breakers stay open for half a minute, so they are closed again so long after the storm at the latest.
	stormAfter = 40 * time.Second
)

// stormKind is a way to be out of order.
type stormKind struct {
	name string
	// opens says that it opens breakers. A provider that says when to come back is well.
	opens bool
	// rules of the model while the storm lasts; none where nobody listens.
	rules func(model string) []object
	// window is how long the provider wants to be left alone by a turn that it turned down.
	window time.Duration
}

var stormKinds = []stormKind{
	{name: "hint", window: stormHint, rules: throttled(object{"retry-after": fmt.Sprint(stormHint.Seconds())})},
	{name: "far", window: time.Hour, rules: throttled(object{"retry-after": fmt.Sprint(time.Hour.Seconds())})},
	{name: "bare", opens: true, rules: throttled(object{})},
	{name: "flap", opens: true, rules: flapping},
	{name: "outage", opens: true},
}

func throttled(headers object) func(string) []object {
	return func(model string) []object {
		return []object{{"match": object{"model": model}, "plan": object{
			"steps": []object{{"at": "request_read", "do": "status", "status": 429, "headers": headers}}}}}
	}
}

// flapping fails every other request.
func flapping(model string) (rules []object) {
	for nth := 1; nth < 400; nth += 2 {
		rules = append(rules, object{"match": object{"model": model, "nth": nth}, "plan": object{
			"steps": []object{{"at": "request_read", "do": "status", "status": 503}}}})
	}
	return rules
}

// stormModel is a model whose first endpoint is out of order, with or without a second in its route.
type stormModel struct {
	stormKind
	name   string
	backed bool

	mu    sync.Mutex
	turns map[string]*listener
	wrong []error
}

// storm sends turns to models whose first endpoint turns everything down, flaps or is not there, for as long as the storm
// lasts and until all breakers are closed again.
func storm(l *lab) error {
	s := &stormPlay{lab: l, lasts: stormTime}
	if l.short {
		s.lasts = stormShort
	}
	if err := s.setUp(); err != nil {
		return err
	}
	if err := s.play(); err != nil {
		return err
	}
	return s.judge()
}

type stormPlay struct {
	*lab
	lasts  time.Duration
	e      engine
	server *service
	// first turns down, gone is not there for a time, and spare is well.
	first, gone, spare *provider
	before             []scripted.Call // of the one that is gone, from before that
	models             []*stormModel
	states             *breakerStates
}

func (s *stormPlay) setUp() (err error) {
	for _, k := range stormKinds {
		for _, backed := range []bool{false, true} {
			name := k.name + map[bool]string{true: "_backed", false: "_alone"}[backed]
			s.models = append(s.models, &stormModel{stormKind: k, name: name, backed: backed, turns: map[string]*listener{}})
		}
	}
	if s.e, err = s.postgres("storm"); err != nil {
		return err
	}
	quick := object{"rules": []object{plain(8)}}
	for _, p := range []**provider{&s.first, &s.gone, &s.spare} {
		if *p, err = s.provider(quick); err != nil {
			return err
		}
	}
	models, err := s.write("storm.yaml", s.file())
	if err != nil {
		return err
	}
	if s.server, err = s.serve(s.e, models, "--ops-listen", "127.0.0.1:0", "--max-calls", fmt.Sprint(ownBudget)); err != nil {
		return err
	}
	s.states = &breakerStates{url: "http://" + s.server.ready.Ops + "/metrics", seen: map[string][3]bool{}, now: map[string]int{}}
	return nil
}

func (s *stormPlay) file() string {
	var endpoints, models strings.Builder
	for _, m := range s.models {
		base, route := s.first.url, "{endpoint: "+m.name+", model: "+m.name+"}"
		if m.rules == nil {
			base = s.gone.url
		}
		if m.backed {
			route += ", {endpoint: spare, model: spare}"
		}
		fmt.Fprintf(&endpoints, "  %s: {wire: openai.chat, base_url: %q}\n", m.name, base)
		fmt.Fprintf(&models, "  %s: {route: [%s]}\n", m.name, route)
	}
	return fmt.Sprintf("version: 1\ndefault_model: hint_alone\nendpoints:\n  spare: {wire: openai.chat, base_url: %q}\n%smodels:\n%s", s.spare.url, &endpoints, &models)
}

// play raises the storm, and sends turns until it is over and no breaker is open any more.
func (s *stormPlay) play() error {
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	var sending, sampling sync.WaitGroup
	sampling.Go(func() { s.states.watch(ctx) })
	defer sampling.Wait()
	defer stop()
	if err := s.raise(); err != nil {
		return err
	}
	over := make(chan struct{})
	for _, m := range s.models {
		sending.Go(func() { m.send(s, over) })
	}
	err := s.calm()
	close(over)
	sending.Wait()
	return err
}

// raise puts everything out of order, after a call to each endpoint that shows it well.
func (s *stormPlay) raise() (err error) {
	for _, m := range s.models {
		if m.one(s); len(m.wrong) > 0 {
			return m.wrong[0]
		}
	}
	if s.before, err = s.gone.records(s.lab); err != nil {
		return err
	}
	var rules []object
	for _, m := range s.models {
		if m.rules != nil {
			rules = append(rules, m.rules(m.name)...)
		}
	}
	s.gone.kill(syscall.SIGKILL)
	return s.first.rig.Control(s.ctx, http.MethodPut, "/_scripted/script", object{"rules": append(rules, plain(8))}, nil)
}

// calm lets the storm last, ends it, and waits until all breakers are closed.
func (s *stormPlay) calm() (err error) {
	select {
	case <-s.ctx.Done():
		return s.ctx.Err()
	case <-time.After(s.lasts):
	}
	quick := object{"rules": []object{plain(8)}}
	if s.gone, err = s.providerAt(strings.TrimPrefix(s.gone.url, "http://"), quick); err != nil {
		return err
	}
	if err := s.first.rig.Control(s.ctx, http.MethodPut, "/_scripted/script", quick, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, stormAfter)
	defer cancel()
	for !s.states.closed() {
		select {
		case <-ctx.Done():
			return errors.New("a breaker did not close after the storm")
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// send sends turns, one after the other without waiting for their ends, and then waits for all of those.
func (m *stormModel) send(s *stormPlay, over <-chan struct{}) {
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(stormTurns)
	defer tick.Stop()
	for range stormBurst - 1 {
		running.Go(func() { m.one(s) })
	}
	for {
		running.Go(func() { m.one(s) })
		select {
		case <-over:
			return
		case <-tick.C:
		}
	}
}

func (m *stormModel) one(s *stormPlay) {
	ctx, cancel := context.WithTimeout(s.ctx, 2*time.Minute)
	defer cancel()
	in := textInput(uuid.NewString(), uuid.NewString(), askedWords, m.name)
	h := &listener{}
	err := errors.Join(h.send(ctx, s.server, in, nil), h.hasAdvice())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns[in.GetTurnId()] = h
	if err != nil {
		m.wrong = append(m.wrong, fmt.Errorf("%s: %w", m.name, err))
	}
}

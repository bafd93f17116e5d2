package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/uuid"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

const (
	onceTurns   = 20 // turns of a conversation
	onceRepeats = 5  // deliveries of each, two of them at once
)

// onceSums are the figures of once over all scenes.
type onceSums struct {
	scenes, turns, requests, generations, live, streams, secondPass, attached, replayed, ledger int
}

// once sends every turn of a conversation five times, twice over, on both engines and both wires: to a provider that
// this project did not write, and to the scripted one held at a gate until all repeats have attached.
func once(l *lab) error {
	var sums onceSums
	mock, err := l.aimock()
	if err != nil {
		return err
	}
	for _, scene := range []func(*onceSums, engine, string) error{
		func(s *onceSums, e engine, model string) error { return l.onceWithMock(s, mock, e, model) },
		l.onceWithScripted,
	} {
		for _, model := range []string{"anthropic", "openai"} {
			engines, err := l.engines(fmt.Sprintf("once%s%d", model, sums.scenes))
			if err != nil {
				return err
			}
			for _, e := range engines {
				if err := scene(&sums, e, model); err != nil {
					return fmt.Errorf("%s, %s: %w", e.name, model, err)
				}
				sums.scenes++
			}
		}
	}
	if sums.attached < sums.turns/2 {
		return fmt.Errorf("only %d deliveries attached", sums.attached)
	}
	figure("scenes", sums.scenes)
	figure("turns", sums.turns)
	figure("live_replies", sums.live)
	figure("equal_streams", sums.streams)
	figure("second_pass_requests", sums.secondPass)
	figure("attached", sums.attached)
	figure("replayed", sums.replayed)
	figure("requests", sums.requests)
	figure("generations", sums.generations)
	figure("ledger_rows", sums.ledger)
	return nil
}

func (l *lab) onceWithMock(sums *onceSums, mock *aimock, e engine, model string) error {
	models, err := l.models(mock.url)
	if err != nil {
		return err
	}
	s, err := l.serve(e, models)
	if err != nil {
		return err
	}
	defer s.stop()
	before, err := mock.requests()
	if err != nil {
		return err
	}
	script := newConversation(model)
	for pass := range 2 {
		for i := range onceTurns {
			all, err := l.deliver(s, script.turn(i), onceRepeats, 2, nil)
			if err != nil {
				return err
			}
			if pass == 0 {
				sums.count(all)
			}
		}
		after, err := mock.requests()
		if err != nil {
			return err
		}
		if after-before != onceTurns {
			return fmt.Errorf("pass %d: %d turns were %d requests by the provider's journal", pass+1, onceTurns, after-before)
		}
	}
	sums.requests += onceTurns
	sums.generations += onceTurns
	return sums.stored(l, e)
}

func (l *lab) onceWithScripted(sums *onceSums, e engine, model string) error {
	var rules []object
	for i := range onceTurns {
		rules = append(rules, gated(fmt.Sprintf("turn %d,", i), gateName(i), 64, 20))
	}
	p, err := l.provider(object{"rules": rules})
	if err != nil {
		return err
	}
	defer p.stop()
	models, err := l.models(p.url)
	if err != nil {
		return err
	}
	s, err := l.serve(e, models)
	if err != nil {
		return err
	}
	defer s.stop()
	script := newConversation(model)
	for pass := range 2 {
		for i := range onceTurns {
			// All but the last delivery are sent while the reply waits at its gate; the last comes after its end.
			all, err := l.deliver(s, script.turn(i), onceRepeats-1, onceRepeats-1, func() error { return p.open(gateName(i)) })
			if err != nil {
				return err
			}
			late, err := l.deliver(s, script.turn(i), 1, 1, nil)
			if err != nil {
				return err
			}
			if late[0].text != all[0].text {
				return errors.New("the replay differs from the stream")
			}
			if pass == 0 {
				attached := sums.attached
				sums.count(append(all, late...))
				if sums.attached == attached {
					return fmt.Errorf("no delivery of turn %d attached", i)
				}
			}
		}
	}
	c, err := p.counts()
	if err != nil {
		return err
	}
	if c.Requests != onceTurns || c.Generations != onceTurns {
		return fmt.Errorf("%d turns were %d requests and %d generations", onceTurns, c.Requests, c.Generations)
	}
	reported, err := e.number(l.ctx, reportedSums)
	if err != nil {
		return err
	}
	if reported != c.InputTokens+c.OutputTokens {
		return fmt.Errorf("the ledger holds %d tokens, the provider counted %d", reported, c.InputTokens+c.OutputTokens)
	}
	sums.requests += c.Requests
	sums.generations += c.Generations
	return sums.stored(l, e)
}

func gateName(i int) string { return fmt.Sprintf("gate%d", i) }

// conversation is a script of turns whose ids are minted once, so that it can be sent again.
type conversation struct {
	id, model string
	ids       [onceTurns]string
}

func newConversation(model string) *conversation {
	c := &conversation{id: uuid.NewString(), model: model}
	for i := range c.ids {
		c.ids[i] = uuid.NewString()
	}
	return c
}

func (c *conversation) turn(i int) *turnsv1.TurnInput {
	return textInput(c.id, c.ids[i], fmt.Sprintf("turn %d, please", i), c.model)
}

// deliver sends a turn n times, the first few at once and the rest one after the other. release, if not nil, is called
// once each of the first has heard something of the reply.
func (l *lab) deliver(s *service, in *turnsv1.TurnInput, n, atOnce int, release func() error) ([]heard, error) {
	all := make([]listener, n)
	errs := make([]error, n+1)
	var streams, listening sync.WaitGroup
	listening.Add(atOnce)
	for i := range atOnce {
		var told sync.Once
		tell := func() { told.Do(listening.Done) }
		all[i].watch = func(l *listener) {
			if l.reply != "" {
				tell()
			}
		}
		streams.Go(func() {
			errs[i] = all[i].send(l.ctx, s, in, nil)
			tell()
		})
	}
	if release != nil {
		listening.Wait()
		errs[n] = release()
	}
	streams.Wait()
	for i := atOnce; i < n; i++ {
		errs[i] = all[i].send(l.ctx, s, in, nil)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	out := make([]heard, n)
	for i := range all {
		out[i] = all[i].heard
	}
	return out, equalStreams(out)
}

// equalStreams demands that all completed with the same reply, bytes and offsets.
func equalStreams(all []heard) error {
	for i, h := range all {
		switch {
		case !h.completed:
			return fmt.Errorf("stream %d did not complete", i)
		case h.reply != all[0].reply || h.text != all[0].text || h.offset != all[0].offset:
			return fmt.Errorf("stream %d is another than stream 0", i)
		case strings.TrimSpace(h.text) == "":
			return errors.New("an empty reply")
		}
	}
	return nil
}

func (s *onceSums) count(all []heard) {
	s.turns++
	for _, h := range all {
		s.streams++
		switch h.result {
		case turnsv1.DeliveryResult_DELIVERY_RESULT_ATTACHED:
			s.attached++
		case turnsv1.DeliveryResult_DELIVERY_RESULT_REPLAYED:
			s.replayed++
		}
	}
}

// stored compares what the database holds with what must be there.
func (s *onceSums) stored(l *lab, e engine) error {
	for query, want := range map[string]int{userTurns: onceTurns, liveReplies: onceTurns, ledgerRows: onceTurns, openCalls: 0, doubleSlots: 0, inFlight: 0, wastedRows: 0} {
		got, err := e.number(l.ctx, query)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%d instead of %d: %s", got, want, query)
		}
	}
	s.live += onceTurns
	s.ledger += onceTurns
	return nil
}

package main

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"
)

// heldBytes is what ten deltas of the scripted reply take in a log: a block's start and ten times sixteen bytes.
const heldBytes = 1 + 10*16

// twice runs two servers on one Postgres and sends each of a thousand turns to both at once. Each batch waits at a gate
// after its tenth delta until both streams of every turn have heard all ten: the one on the process that does not make
// the reply too.
func twice(l *lab) error {
	total, batch := 1000, 50
	if l.short {
		total = 300
	}
	e, err := l.postgres("twice")
	if err != nil {
		return err
	}
	var rules []object
	for b := range total / batch {
		rules = append(rules, gated(fmt.Sprintf("batch %d,", b), gateName(b), 64, 11))
	}
	p, err := l.provider(object{"rules": rules})
	if err != nil {
		return err
	}
	models, err := l.models(p.url)
	if err != nil {
		return err
	}
	var pair [2]*service
	for i := range pair {
		if pair[i], err = l.serve(e, models); err != nil {
			return err
		}
	}
	early := 0
	for b := range total / batch {
		n, err := l.twiceBatch(p, pair, b, batch)
		if err != nil {
			return fmt.Errorf("batch %d: %w", b, err)
		}
		early += n
	}
	c, err := p.counts()
	if err != nil {
		return err
	}
	live, err := e.number(l.ctx, liveReplies)
	if err != nil {
		return err
	}
	doubled, err := e.number(l.ctx, doubleSlots)
	if err != nil {
		return err
	}
	if live != total || doubled != 0 || c.Generations != total || c.Requests != total {
		return fmt.Errorf("%d turns: live_replies=%d doubled=%d requests=%d generations=%d", total, live, doubled, c.Requests, c.Generations)
	}
	figure("turns", total)
	figure("live_replies", live)
	figure("requests", c.Requests)
	figure("generations", c.Generations)
	figure("equal_pairs", total)
	figure("streams_at_delta_10_before_the_gate", early)
	return nil
}

// twiceBatch plays one batch and returns how many streams stood at the tenth delta when the gate was opened.
func (l *lab) twiceBatch(p *provider, pair [2]*service, b, size int) (int, error) {
	all := make([][2]listener, size)
	errs := make([]error, 2*size)
	var streams, held sync.WaitGroup
	held.Add(2 * size)
	for i := range size {
		in := textInput(uuid.NewString(), uuid.NewString(), fmt.Sprintf("batch %d, turn %d", b, i), []string{"anthropic", "openai"}[i%2])
		for side, s := range pair {
			var told sync.Once
			tell := func() { told.Do(held.Done) }
			all[i][side].watch = func(l *listener) {
				if l.offset >= heldBytes {
					tell()
				}
			}
			streams.Go(func() {
				errs[2*i+side] = all[i][side].send(l.ctx, s, in, nil)
				tell()
			})
		}
	}
	held.Wait()
	early := 0
	for i := range all {
		for side := range all[i] {
			if errs[2*i+side] == nil {
				early++
			}
		}
	}
	if err := p.open(gateName(b)); err != nil {
		return 0, err
	}
	streams.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	for i := range all {
		if err := equalStreams([]heard{all[i][0].heard, all[i][1].heard}); err != nil {
			return 0, fmt.Errorf("turn %d: %w", i, err)
		}
	}
	return early, nil
}

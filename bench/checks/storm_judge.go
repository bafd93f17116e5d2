package main

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/turnd/turnd/llm/scripted"
)

// early is how much a request may come before the end of a window, for the time that an answer takes to arrive.
const early = 50 * time.Millisecond

// stormTurn is what one turn cost.
type stormTurn struct {
	rows  int // on the ledger, also of calls that were kept from being sent
	first []scripted.Call
	spare []scripted.Call
}

// judge holds each turn and each breaker to what is promised, by the providers' own count.
func (s *stormPlay) judge() error {
	turns, err := s.paid()
	if err != nil {
		return err
	}
	changes, err := breakerLog(s.server.Log)
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "model\tturns\tcomplete\tabandoned\trequests to the first\tto the spare\tmost a turn\tspare alone\tbreaker opened\thalf-open\tclosed\tstates in metrics")
	var wrong []error
	for _, m := range s.models {
		sum := m.sum(turns)
		seen := s.states.seen[m.name]
		wrong = append(wrong, errors.Join(m.wrong...), m.judgeTurns(turns, changes[m.name]), m.judgeBreaker(sum, changes[m.name], seen))
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%v\n", m.name, len(m.turns), sum.complete, len(m.turns)-sum.complete, sum.first, sum.spare,
			sum.most, sum.spareAlone, count(changes[m.name], "open"), count(changes[m.name], "half-open"), count(changes[m.name], "closed"), shownStates(seen))
	}
	if err := errors.Join(append(wrong, out.Flush())...); err != nil {
		return err
	}
	s.figures(turns, changes)
	return nil
}

func shownStates(seen [3]bool) (states []int) {
	for state, was := range seen {
		if was {
			states = append(states, state)
		}
	}
	return states
}

// paid puts the ledger beside the providers' counts, by turn.
func (s *stormPlay) paid() (map[string]*stormTurn, error) {
	if err := s.until(func() (bool, error) { n, err := s.e.number(s.ctx, openCalls); return n == 0, err }); err != nil {
		return nil, fmt.Errorf("calls were left open on the ledger: %w", err)
	}
	calls := s.before
	for _, p := range []*provider{s.first, s.gone, s.spare} {
		got, err := p.records(s.lab)
		if err != nil {
			return nil, err
		}
		calls = append(calls, got...)
	}
	ledger, err := s.e.ledger(s.ctx)
	if err != nil {
		return nil, err
	}
	all, err := pairs(ledger, calls)
	if err != nil {
		return nil, err
	}
	turns := map[string]*stormTurn{}
	for _, c := range ledger {
		if turns[c.turn] == nil {
			turns[c.turn] = &stormTurn{}
		}
		turns[c.turn].rows++
	}
	for _, c := range all {
		t := turns[c.turn]
		if c.endpoint == "spare" {
			t.spare = append(t.spare, c.counted)
		} else {
			t.first = append(t.first, c.counted)
		}
	}
	return turns, nil
}

// judgeTurns demands of each turn that it ended, kept to its budget, left alone who asked for it, and asked nobody whose
// breaker was open.
func (m *stormModel) judgeTurns(turns map[string]*stormTurn, changes []change) error {
	for id, h := range m.turns {
		t := turns[id]
		switch {
		case !h.over():
			return fmt.Errorf("%s: a turn did not end", m.name)
		case t == nil:
			return fmt.Errorf("%s: a turn is not on the ledger", m.name)
		case len(t.first)+len(t.spare) > ownBudget || t.rows > ownBudget:
			return fmt.Errorf("%s: a turn took %d requests, %d on the ledger", m.name, len(t.first)+len(t.spare), t.rows)
		case m.backed && !h.completed:
			return fmt.Errorf("%s: a turn ended %s although the spare is well", m.name, h.ending())
		case !h.completed && h.ending() != "provider_error":
			return fmt.Errorf("%s: a turn ended %s", m.name, h.ending())
		case len(t.spare) > 1:
			return fmt.Errorf("%s: a turn asked the spare %d times", m.name, len(t.spare))
		}
		for i, c := range t.first {
			if whileOpen(changes, c.AcceptedAt) {
				return fmt.Errorf("%s: a request came at %s, while the breaker was open", m.name, c.AcceptedAt.Format(time.TimeOnly))
			}
			if i > 0 && t.first[i-1].Status == 429 && c.AcceptedAt.Before(t.first[i-1].EndedAt.Add(m.window-early)) {
				return fmt.Errorf("%s: a turn asked again after %s of %s", m.name, c.AcceptedAt.Sub(*t.first[i-1].EndedAt), m.window)
			}
		}
	}
	return nil
}

// judgeBreaker demands that a breaker opened, tried and closed, in log and metrics, where there was reason to, and else
// stayed closed; and that its turns went to the spare meanwhile.
func (m *stormModel) judgeBreaker(sum stormSum, changes []change, seen [3]bool) error {
	opened, tried, closed := count(changes, "open"), count(changes, "half-open"), count(changes, "closed")
	switch {
	case !m.opens && (opened > 0 || seen[2]):
		return fmt.Errorf("%s: its breaker opened though the provider said when to come back", m.name)
	case !m.opens:
		return nil
	case opened == 0 || tried < opened || closed == 0 || closed > opened:
		return fmt.Errorf("%s: by the log its breaker opened %d times, was half-open %d times and closed %d times", m.name, opened, tried, closed)
	case !seen[2] || !seen[0]:
		return fmt.Errorf("%s: the metrics showed the states %v of its breaker", m.name, shownStates(seen))
	case changes[len(changes)-1].to != "closed":
		return fmt.Errorf("%s: its breaker did not close", m.name)
	case m.backed && sum.spareAlone == 0:
		return fmt.Errorf("%s: no turn went to the spare alone while the breaker was open", m.name)
	}
	return nil
}

// stormSum are sums over a model's turns.
type stormSum struct {
	complete, first, spare, most int
	spareAlone                   int // turns that asked nobody but the spare
}

func (m *stormModel) sum(turns map[string]*stormTurn) (sum stormSum) {
	for id, h := range m.turns {
		t := turns[id]
		if t == nil {
			continue
		}
		if h.completed {
			sum.complete++
		}
		sum.first, sum.spare = sum.first+len(t.first), sum.spare+len(t.spare)
		sum.most = max(sum.most, len(t.first)+len(t.spare))
		if t.rows == len(t.spare) {
			sum.spareAlone++
		}
	}
	return sum
}

func (s *stormPlay) figures(turns map[string]*stormTurn, changes map[string][]change) {
	var all stormSum
	opened, ended := 0, 0
	for _, m := range s.models {
		sum := m.sum(turns)
		ended += len(m.turns)
		all.complete, all.first, all.spare = all.complete+sum.complete, all.first+sum.first, all.spare+sum.spare
		all.most, all.spareAlone = max(all.most, sum.most), all.spareAlone+sum.spareAlone
		opened += count(changes[m.name], "open")
	}
	figure("storm_seconds", int(s.lasts.Seconds()))
	figure("turns", ended)
	figure("complete", all.complete)
	figure("abandoned_with_advice", ended-all.complete)
	figure("requests", all.first+all.spare)
	figure("most_requests_a_turn", all.most)
	figure("budget", ownBudget)
	figure("breakers_opened", opened)
	figure("fallback_alone", all.spareAlone)
}

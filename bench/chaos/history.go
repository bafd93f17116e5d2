package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// historyTime bounds the check of one turn's history.
const historyTime = 2 * time.Second

// The slot of a turn is a counter of its claims. A delivery that is new or retried, and a regenerate, count it up by one
// and are answered with that claim; every other answer names the claim that is the newest at some moment between question
// and answer. A request without an answer did one or the other. Once somebody was told that the newest claim is complete,
// only a regenerate counts up.

// claimed is what a request was answered with.
type claimed struct {
	answered    bool
	counts      bool // it made the claim
	regenerates bool // it is a regenerate
	completes   bool // it is no request: somebody was told that the claim is complete
	claim       int  // which one, from 1
}

// slotState is a slot at some moment.
type slotState struct {
	claim    int
	complete bool
}

// slot is what is known of a turn beside its requests.
type slot struct {
	claims int
	// answered are claims that an answered request made; back are those that came back after they had been given up.
	answered, back map[int]bool
}

// step gives the states that an answer can leave a slot in, none if it can't have come.
func (s slot) step(at slotState, out claimed) []slotState {
	next := slotState{claim: at.claim + 1}
	switch {
	case out.completes && at.claim < out.claim:
		return nil
	case out.completes:
		return []slotState{{at.claim, at.complete || at.claim == out.claim}}
	case !out.answered && at.claim < s.claims && !s.answered[at.claim+1] && (!at.complete || out.regenerates):
		return []slotState{at, next}
	case !out.answered:
		return []slotState{at}
	case out.counts && out.claim == next.claim && (!at.complete || out.regenerates):
		return []slotState{next}
	case !out.counts && at.claim > 0 && (out.claim == at.claim || out.claim < at.claim && s.back[out.claim]):
		return []slotState{at}
	}
	return nil
}

// model says what a slot may do.
func (s slot) model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{slotState{}} },
		Step: func(state, _, output any) (all []any) {
			for _, next := range s.step(state.(slotState), output.(claimed)) {
				all = append(all, next)
			}
			return all
		},
		DescribeOperation: func(_, output any) string { return fmt.Sprintf("%+v", output) },
	}
	return m.ToModel()
}

// claimsAreOrdered checks that the history of each turn's claims could have happened one after the other. It returns how
// many histories were checked and how many took too long.
func (e *evidence) claimsAreOrdered() (checked, undecided int) {
	byTurn := map[string][]storedReply{}
	for _, r := range e.stored.replies {
		byTurn[r.Turn] = append(byTurn[r.Turn], r)
	}
	for turn, replies := range byTurn {
		slices.SortFunc(replies, func(a, b storedReply) int { return cmp.Compare(a.Attempt, b.Attempt) })
		s := slot{claims: len(replies), answered: map[int]bool{}, back: map[int]bool{}}
		number := map[string]int{}
		for i, r := range replies {
			number[r.ID] = i + 1
			s.back[i+1] = r.Epoch > 1 || r.Status == "complete"
		}
		history := e.history(turn, number, s.answered)
		checked++
		switch porcupine.CheckOperationsTimeout(s.model(), history, historyTime) {
		case porcupine.Illegal:
			e.rec.broke("P1", "the claims of turn %s (%d replies, %d requests) could not have happened one after the other", turn, len(replies), len(history))
		case porcupine.Ok:
		case porcupine.Unknown:
			undecided++
		}
	}
	return checked, undecided
}

// history is what was asked about the slot of a turn, and what came back.
func (e *evidence) history(turn string, number map[string]int, answered map[int]bool) []porcupine.Operation {
	var all []porcupine.Operation
	for _, o := range e.opsOf[turn] {
		if o.kind != askTurn && o.kind != askSubmit && o.kind != askRegenerate {
			continue
		}
		out := claimed{answered: !o.answered.IsZero(), claim: number[o.reply]}
		switch {
		case o.kind == askRegenerate:
			out.counts, out.regenerates = !o.replayed, true
		case o.result == turnsv1.DeliveryResult_DELIVERY_RESULT_NEW:
			out.counts, out.claim = true, 1
		case o.result == turnsv1.DeliveryResult_DELIVERY_RESULT_RETRIED:
			out.counts = true
		}
		out.answered = out.answered && out.claim > 0 // what was not named is not known
		end := o.answered.UnixNano()
		if out.answered && out.counts {
			answered[out.claim] = true
		}
		if !out.answered {
			out, end = claimed{regenerates: out.regenerates}, math.MaxInt64
		}
		all = append(all, porcupine.Operation{Call: o.call.UnixNano(), Output: out, Return: end, ClientId: o.n})
	}
	for id, claim := range number {
		seen := e.rec.replies[id]
		if seen == nil {
			continue
		}
		for _, t := range seen.ends {
			if t.event == endCompleted {
				all = append(all, porcupine.Operation{Call: e.rec.ops[t.op].call.UnixNano(), Return: t.at.UnixNano(), Output: claimed{completes: true, claim: claim}})
				break // the first time is what matters
			}
		}
	}
	return all
}

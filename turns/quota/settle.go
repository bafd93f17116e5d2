package quota

import (
	"maps"
	"slices"

	"github.com/turnd/turnd/turns"
)

// Outcome is what has become of a turn and generation until now.
type Outcome struct {
	// Stored says that the user turn is there, Waiting that it stands in line.
	Stored  bool
	Waiting bool
	// Status and Reason are those of the reply of the generation that is live or, if none is, the newest; empty if there is none.
	Status turns.Status
	Reason turns.Reason
	// Called says that the ledger has calls of it, and Spent are their tokens.
	Called bool
	Spent  int64
}

// Settled pairs a share with what has become of its turn.
type Settled struct {
	Share   Share
	Outcome Outcome
}

// Distinct are the keys of a settlement, each once: what is named twice is settled once all the same.
func Distinct(keys []turns.ReservationKey) (distinct []turns.ReservationKey) {
	for _, k := range keys {
		if !slices.Contains(distinct, k) {
			distinct = append(distinct, k)
		}
	}
	return distinct
}

// Settle works out what settlements write. What stays as it is, is left out. Closed counts those that are over.
func Settle(all []Settled) (w Writes, closed int) {
	m := moves{}
	for _, s := range all {
		now := s.Share.settled(s.Outcome)
		if !now.Open {
			closed++
		}
		if now == s.Share {
			continue
		}
		w.Shares = append(w.Shares, now)
		m.add(now.names(), now.Turns-s.Share.Turns, now.Tokens-s.Share.Tokens)
	}
	maps.DeleteFunc(m, func(_ Name, v Move) bool { return v.Turns == 0 && v.Tokens == 0 })
	w.Moves = slices.SortedFunc(maps.Values(m), func(x, y Move) int { return x.Compare(y.Name) })
	return w, closed
}

// settled is the share as its turn's outcome leaves it. Of a turn whose rows are gone nobody knows more than was charged.
func (s Share) settled(o Outcome) Share {
	s.Open = o.Stored && (o.Waiting || o.Status == turns.StatusInFlight || o.Status == turns.StatusHeld)
	if s.Open || !o.Stored {
		return s
	}
	s.Turns, s.Tokens = 1, max(o.Spent-s.Before, 0)
	switch {
	case !o.Called, o.Reason == turns.ReasonHeldReleased:
		s.Turns, s.Tokens = 0, 0
	case o.Reason == turns.ReasonProviderError, o.Reason == turns.ReasonProviderRefused, o.Reason == turns.ReasonEmpty:
		s.Turns = 0
	}
	return s
}

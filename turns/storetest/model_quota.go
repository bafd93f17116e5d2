package storetest

import (
	"slices"

	"github.com/turnd/turnd/turns"
)

// modelShare is what a turn and generation is charged with. The model counts turns; tokens are the ledger's.
type modelShare struct {
	subject string
	turns   int64
	open    bool
}

// modelLimits are those of every reservation here, small enough to be met.
var modelLimits = turns.SubmissionLimits{SubjectTurns: 4, TenantTurns: 6}

// charged sums the turns of a subject, or of the tenant if that is empty.
func (m *model) charged(subject string) (n int64) {
	for _, s := range m.shares {
		if subject == "" || s.subject == subject {
			n += s.turns
		}
	}
	return n
}

// settled sums what of the same is settled.
func (m *model) settled(subject string) (n int64) {
	for _, s := range m.shares {
		if !s.open && (subject == "" || s.subject == subject) {
			n += s.turns
		}
	}
	return n
}

// meets is the limit that a reservation must meet, nil if none: the tenant's before its subject's, and none for what is
// charged with a turn already.
func (m *model) meets(key turns.ReservationKey, r *turns.Reservation) *turns.LimitMet {
	subject := r.Subject
	if s := m.shares[key]; s != nil {
		if s.turns > 0 {
			return nil
		}
		subject = s.subject
	}
	if used := m.charged(""); used >= modelLimits.TenantTurns {
		return &turns.LimitMet{Limit: turns.LimitTurns, OfTenant: true, Max: modelLimits.TenantTurns, Used: used, Asked: 1}
	}
	if used := m.charged(subject); used >= modelLimits.SubjectTurns {
		return &turns.LimitMet{Limit: turns.LimitTurns, Max: modelLimits.SubjectTurns, Used: used, Asked: 1}
	}
	return nil
}

func (m *model) charge(key turns.ReservationKey, r *turns.Reservation) {
	s := m.shares[key]
	if s == nil {
		s = &modelShare{subject: r.Subject}
		m.shares[key] = s
	}
	s.turns, s.open = 1, true
}

// outcome is the reply of a turn and generation that is live or, if none is, the newest, and whether anybody was called for any.
func (m *model) outcome(key turns.ReservationKey) (last *modelReply, called bool) {
	for _, r := range m.replies {
		if r.claim.Key != key.Key || r.claim.Turn != key.Turn || r.claim.Reply.Generation != key.Generation {
			continue
		}
		called = called || r.calls > 0
		if last == nil || r.status.Live() || !last.status.Live() && r.claim.Reply.Attempt > last.claim.Reply.Attempt {
			last = r
		}
	}
	return last, called
}

// goesOn says whether a turn and generation may still cost something.
func (m *model) goesOn(key turns.ReservationKey) bool {
	last, _ := m.outcome(key)
	return slices.Contains(m.conversations[key.Key].line, key.Turn) || last != nil && (last.status == turns.StatusInFlight || last.status == turns.StatusHeld)
}

// settle has a share say what its turn and generation have come to; there may be none.
func (m *model) settleShare(key turns.ReservationKey) {
	s := m.shares[key]
	if s == nil {
		return
	}
	if s.open = m.goesOn(key); s.open {
		return
	}
	free := []turns.Reason{turns.ReasonProviderError, turns.ReasonProviderRefused, turns.ReasonEmpty, turns.ReasonHeldReleased}
	last, called := m.outcome(key)
	s.turns = 1
	if !called || slices.Contains(free, last.reason) {
		s.turns = 0
	}
}

// settleOpen settles what has ended of a subject, or of all if that is empty.
func (m *model) settleOpen(subject string) (settled int) {
	for key, s := range m.shares {
		if s.open && (subject == "" || s.subject == subject) && !m.goesOn(key) {
			m.settleShare(key)
			settled++
		}
	}
	return settled
}

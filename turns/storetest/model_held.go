package storetest

import "github.com/turnd/turnd/turns"

// resolve ends a held reply.
func (m *model) resolve(r turns.Resolution) bool {
	h := m.reply(r.Fence.Key, r.Fence.Reply)
	if h == nil || h.status != turns.StatusHeld || h.epoch != r.Fence.Epoch || !h.extendedBy(r.Content) {
		return false
	}
	if (r.Verb == turns.VerbFinish && h.owner != r.Fence.Owner) || (r.Status == turns.StatusComplete && h.stop) {
		return false
	}
	h.finish(r.Status, r.Reason, r.Content)
	h.settled = h.settled || r.Status == turns.StatusComplete
	return true
}

// replace ends a reply and claims the next one, or does nothing.
func (m *model) replace(r turns.Replacement) bool {
	old := m.find(r.Ending.Fence)
	if old == nil || old.length() != r.Ending.StoredLength || old.claim.Turn != r.Claim.Turn ||
		old.claim.Reply.Generation != r.Claim.Reply.Generation {
		return false
	}
	old.status = turns.StatusAbandoned
	if !m.wins(r.Claim) {
		old.status = turns.StatusInFlight
		return false
	}
	old.finish(r.Ending.Status, r.Ending.Reason, r.Ending.Content)
	old.settled = r.Ending.Reason != turns.ReasonLeaseExpired
	m.claim(r.Claim)
	return true
}

// note says whether a note is taken.
func (m *model) note(n turns.CallNote) bool {
	r := m.find(n.Fence)
	return r != nil && !r.stop && r.open[n.Call]
}

package storetest

import "github.com/turnd/turnd/turns"

// replaceOne puts a further attempt in the place of a reply, which is mostly over by then.
func (m *member) replaceOne(h *held) {
	st, err := m.Store.Lookup(m.ctx, turns.LookupQuery{Key: h.claim.Key, Turn: h.claim.Turn})
	if m.fail(err) || st.Newest == nil {
		return
	}
	e := abandoning(h.claim, h.length, turns.ReasonAmbiguous)
	e.Verb, e.Fence = turns.VerbReplace, h.fence
	claim := m.first(conversation{"tenant", st.Newest.Conversation, h.claim.Key})
	claim.ExpectVersion, claim.NextSeq, claim.NewTurn, claim.Turn = st.Version, st.NextSeq, nil, h.claim.Turn
	claim.Reply.Owner, claim.Reply.Attempt, claim.Reply.Generation = m.me, st.Newest.Attempt+1, st.Turn.Generation
	for range 1 + m.rand.IntN(2) { // some are sent twice
		result, err := m.Store.Replace(m.ctx, turns.Replacement{Ending: e, Claim: claim})
		if m.fail(err) || !result.Won {
			continue
		}
		m.claimed.Add(1)
		m.replaced.Add(1)
		m.ended.Add(1)
		m.finished.Add(1)
		m.claims = append(m.claims, &held{claim: claim, fence: fenceOf(claim), calls: 1})
	}
}

// lookUpSome takes lookups that are due and resolves some of what it was given.
func (m *member) lookUpSome() {
	due, err := m.Store.DueLookups(m.ctx, 1, 1, 3)
	if m.fail(err) {
		return
	}
	for _, h := range due {
		switch m.rand.IntN(3) {
		case 0:
			m.resolveHeld(h, turns.VerbRelease)
		case 1:
			m.resolveHeld(h, turns.VerbAdopt)
		}
	}
}

// resolveHeld ends a held reply with what is stored of it. It was settled when it was held.
func (c *crowd) resolveHeld(h turns.HeldReply, verb turns.Verb) {
	row, err := c.Store.ReadReply(c.ctx, h.Key, h.Reply.ID)
	if c.fail(err) {
		return
	}
	r := turns.Resolution{
		Fence: turns.Fence{Key: h.Key, Reply: h.Reply.ID, Epoch: h.Reply.Epoch}, Verb: verb, Status: turns.StatusComplete,
		Content: row.Content, Length: row.Length,
	}
	if verb == turns.VerbRelease {
		r.Status, r.Reason = turns.StatusAbandoned, turns.ReasonHeldReleased
	}
	result, err := c.Store.ResolveHeld(c.ctx, r)
	if !c.fail(err) && result.Won {
		c.resolved.Add(1)
	}
}

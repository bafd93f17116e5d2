package storetest

import (
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turnd/turnd/turns"
)

// resolveOne resolves a held reply, where there is one.
func (d *driver) resolveOne(rt *rapid.T) {
	var held []*modelReply
	for _, r := range d.m.replies {
		if r.status == turns.StatusHeld {
			held = append(held, r)
		}
	}
	if len(held) == 0 {
		rt.Skip("nothing is held")
	}
	d.touched = rapid.SampledFrom(held).Draw(rt, "held")
	r := adopting(d.touched.claim)
	r.Fence = d.fence(rt, d.touched)
	r.Content = d.grown(rt, d.touched)
	r.Length = lengthOf(r.Content)
	r.Verb = rapid.SampledFrom([]turns.Verb{turns.VerbAdopt, turns.VerbFinish, turns.VerbRelease, turns.VerbCancel}).Draw(rt, "verb")
	switch r.Verb {
	case turns.VerbRelease:
		r.Status, r.Reason = turns.StatusAbandoned, turns.ReasonHeldReleased
	case turns.VerbCancel:
		r.Status, r.Reason = turns.StatusAbandoned, turns.ReasonCancelled
	}
	require.Equal(d.t, d.m.resolve(r), d.resolve(r))
}

// replaceOne puts a further attempt in the place of a reply, now and then at a version or under a fence that is not right.
func (d *driver) replaceOne(rt *rapid.T) {
	r := d.pickReply(rt)
	e := abandoning(r.claim, d.offset(rt, r), turns.ReasonAmbiguous, r.pieces()...)
	e.Verb, e.Fence = turns.VerbReplace, d.fence(rt, r)
	if rapid.Bool().Draw(rt, "by another") {
		e.Reason = turns.ReasonLeaseExpired
	}
	claim := d.claimOf(rt, conversationOf(r.claim.Tenant, r.claim.Conversation.UUID))
	claim.Key, claim.NewTurn, claim.Turn = e.Fence.Key, nil, r.claim.Turn
	if conv := d.m.conversations[claim.Key]; conv == nil || conv.byID[claim.Turn] == nil {
		rt.Skip("the fence is of another conversation")
	}
	d.again(&claim)
	v := turns.Replacement{Ending: e, Claim: claim}
	won := d.m.replace(v)
	require.Equal(d.t, won, d.replace(v))
	d.compareReply(r)
	if won {
		d.touched = d.m.replies[len(d.m.replies)-1]
	}
}

func (d *driver) noteOne(rt *rapid.T) {
	r := d.pickReply(rt)
	n := turns.CallNote{Fence: d.fence(rt, r), Call: r.claim.Call.ID, Session: "s", Submitted: rapid.Bool().Draw(rt, "sent")}
	require.Equal(d.t, d.m.note(n), d.note(n))
}

package turns

import (
	"context"
	"time"
)

// heldLookup is when a held reply is asked for the first time, where its provider can be asked; then at growing distances
// up to heldLookupMost.
const (
	heldLookup     = 5 * time.Second
	heldLookupMost = 10 * time.Minute
)

// hold ends the run with a reply whose outcome is unknown and which nobody may try again by himself. It keeps the slot, and
// its call stays open on the ledger, until an operator, a lookup or a late answer resolves it.
func (r *run) hold(ctx context.Context, c callResult) {
	r.noteHeld(ctx, c)
	r.finish(ctx, Ending{Verb: VerbHold, Status: StatusHeld, LookupIn: lookupIn(r.askable())})
}

// noteHeld adds to the open call how far it came, which is what its provider is asked by. It is done once: to hold the reply
// matters more.
func (r *run) noteHeld(ctx context.Context, c callResult) {
	if c.closed {
		return
	}
	o := r.outcome(c, "")
	note := CallNote{Fence: r.currentFence(), Tenant: o.Tenant, Call: o.ID, Phase: o.Phase, HTTPStatus: o.HTTPStatus, RequestID: o.RequestID}
	if _, err := r.store.NoteCalls(ctx, []CallNote{note}); err != nil {
		r.logger.WarnContext(ctx, "how far a held call came was not stored", "reply_id", r.reply.ID.String(), "err", err)
	}
}

// holdsInstead reports whether a run that must end although its call may have left is held by policy.
func (r *run) holdsInstead(c callResult) bool {
	return r.reply.OnAmbiguous == OnAmbiguousHold && !c.closed && c.err != nil && mayHaveRun(c.err)
}

// lookupIn is when a reply that is held now is to be asked for; zero is never.
func lookupIn(askable bool) time.Duration {
	if !askable {
		return 0
	}
	return heldLookup
}

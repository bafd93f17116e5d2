package turns

import (
	"cmp"
	"context"
	"slices"
)

// newCall is the row of a call of a request.
func newCall(id CallID, number int, key string, request Request, policy OnAmbiguous) NewCall {
	c := NewCall{ID: id, Number: number, Key: key, Route: request.Route, RequestHash: slices.Clone(request.Hash[:]),
		BuilderVersion: request.BuilderVersion, RequestBytes: len(request.Body), Unsent: policy == OnAmbiguousHold}
	if keepsBody(request.Route, policy) {
		c.Body = request.Body
	}
	return c
}

// keepsBody reports whether a request may have to be sent again to the byte by somebody who can't be sure to build it so.
func keepsBody(route Route, policy OnAmbiguous) bool {
	return route.Capabilities.Idempotency == IdempotencyEnforced || policy == OnAmbiguousRetry || policy == OnAmbiguousHold
}

// nextCall is the row of the run's next call.
func (r *run) nextCall() NewCall {
	key := keyOf(r.place.Tenant, r.origin(), r.request)
	c := newCall(CallID{newID()}, r.call.Number+1, key, r.request, r.reply.OnAmbiguous)
	c.Layer = cmp.Or(r.layer, LayerProvider)
	return c
}

// prepareCall does what has to be known of a call before it leaves: the provider makes its session, and the store keeps
// that, and where the reply may be held, that it leaves now. ok is false if it must not leave.
func (r *run) prepareCall(ctx context.Context) (c callResult, ok bool) {
	caps := r.request.Route.Capabilities
	note := CallNote{Tenant: r.claim.Tenant, Call: r.call.ID, Session: r.session, Submitted: r.unsent}
	if note.Session == "" && (caps.Lookup || caps.Fence) {
		session, err := r.generator.Prepare(ctx, r.physical())
		if err != nil {
			return unprepared(asCallError(err)), false
		}
		note.Session = session
	}
	if note.Session == r.session && !note.Submitted {
		return c, true
	}
	for {
		note.Fence = r.currentFence()
		results, err := r.store.NoteCalls(ctx, []CallNote{note})
		switch {
		case err == nil && results[0].Noted:
			r.session, r.unsent = note.Session, false
			return c, true
		case err == nil && !r.rowVanished(ctx):
			// A stop was asked for; or the reply is another's, which the ending finds out.
			r.cancel(errRequested)
			return notSent(), false
		}
		if !pause(ctx, permitPause) {
			return notSent(), false
		}
	}
}

// unprepared is a call that was not sent, since its session could not be made: nothing was generated, whatever became of
// the asking.
func unprepared(err *CallError) callResult {
	if err.Class != ClassTerminal && err.Class != ClassThrottled {
		err.Class = ClassNotSent
	}
	err.Phase = PhaseNone
	return callResult{err: err}
}

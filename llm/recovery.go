package llm

import (
	"context"
	"iter"

	"github.com/turnd/turnd/turns"
)

// What a Caller may have besides, with the duties of turns.Recoverer. Preparer, Recoverer and Stopper act only where the
// endpoint's capabilities ask for it.
type (
	// Preparer makes a session before a call is sent.
	Preparer interface {
		Prepare(context.Context, turns.Call) (session string, err error)
	}
	// Recoverer asks for the answer of a call that was lost.
	Recoverer interface {
		Recover(context.Context, turns.LostCall) iter.Seq2[turns.Delta, error]
	}
	// Stopper stops a response that the provider makes.
	Stopper interface {
		Stop(context.Context, turns.LostCall) error
	}
	// OriginReader reads whose a response is.
	OriginReader interface {
		OriginOf(ctx context.Context, responseID string) (turns.Origin, error)
	}
)

// Prepare implements turns.Recoverer.
func (r *Router) Prepare(ctx context.Context, call turns.Call) (session string, err error) {
	if c, ok := r.table.Load().callerOf(call.Request.Route).(Preparer); ok {
		return c.Prepare(ctx, call)
	}
	return "", nil
}

// Recover implements turns.Recoverer.
func (r *Router) Recover(ctx context.Context, lost turns.LostCall) iter.Seq2[turns.Delta, error] {
	if c, ok := r.table.Load().callerOf(lost.Request.Route).(Recoverer); ok {
		return c.Recover(ctx, lost)
	}
	return refuse(errNoEndpoint)
}

// Stop implements turns.Recoverer.
func (r *Router) Stop(ctx context.Context, lost turns.LostCall) error {
	if c, ok := r.table.Load().callerOf(lost.Request.Route).(Stopper); ok {
		return c.Stop(ctx, lost)
	}
	return cannotAsk()
}

// OriginOf implements turns.Recoverer.
func (r *Router) OriginOf(ctx context.Context, endpoint, responseID string) (turns.Origin, error) {
	if c, ok := r.table.Load().callerOf(turns.Route{Endpoint: endpoint}).(OriginReader); ok {
		return c.OriginOf(ctx, responseID)
	}
	return turns.Origin{}, cannotAsk()
}

// cannotAsk is the answer for an endpoint that is not configured any more, or whose wire can't be asked.
func cannotAsk() *turns.CallError {
	return &turns.CallError{Class: turns.ClassTerminal, Phase: turns.PhaseNone, Cause: errNoEndpoint}
}

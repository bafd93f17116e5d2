package turns

import (
	"context"
	"slices"
	"time"
)

// nextEntry is the next entry of the model's route, after the one that is asked now, that may be asked.
func (r *run) nextEntry() (Route, bool) {
	if r.noFallback {
		return Route{}, false
	}
	routes, err := r.routes(r.reply.Model)
	if err != nil {
		return Route{}, false // the model is not configured any more
	}
	for i := entryOf(routes, r.request.Route) + 1; i < len(routes); i++ {
		if _, ready := r.generator.Ready(routes[i]); ready {
			return routes[i], true
		}
	}
	return Route{}, false
}

// entryOf is the place of an entry in a route; the last one if it is not in it, so that nothing follows it.
func entryOf(routes []Route, entry Route) int {
	for i, r := range routes {
		if r.Endpoint == entry.Endpoint && r.ProviderModel == entry.ProviderModel {
			return i
		}
	}
	return len(routes) - 1
}

// firstReady is the first entry of a route that may be asked now, or the first of all.
func (s *Service) firstReady(routes []Route) Route {
	for _, r := range routes {
		if _, ready := s.generator.Ready(r); ready {
			return r
		}
	}
	return routes[0]
}

// fallBack builds the run's request for the next entry of the route. It stays the same turn and reply; the key is another,
// since the request is.
func (r *run) fallBack(ctx context.Context) bool {
	route, ok := r.nextEntry()
	if !ok {
		return false
	}
	q := r.question(route)
	q.Partial = r.kept
	built, err := r.requestOf(ctx, r.key, q)
	if err != nil {
		r.logger.WarnContext(ctx, "request not built for the next entry of the route", "turn_id", r.reply.Turn.String(),
			"endpoint", route.Endpoint, "err", err)
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logger.InfoContext(ctx, "provider fallback", "turn_id", r.reply.Turn.String(), "from", r.request.Route.Endpoint, "to", route.Endpoint)
	request := built.Request
	r.request, r.callBegun = request, time.Now()
	n := &r.claim.Reply
	n.Route, n.RequestHash, n.BuilderVersion, n.WindowStart = route, slices.Clone(request.Hash[:]), request.BuilderVersion, built.Start
	r.reply.Endpoint, r.reply.Provider = route.Endpoint, route.Provider
	return true
}

// userTurn is the turn that the run answers.
func (r *run) userTurn() UserTurn {
	return UserTurn{ID: r.reply.Turn, Parent: r.turn.Parent, Content: r.turn.Content, Options: r.turn.Options}
}

// breakerOpen is what came of a call that was not made, since its endpoint is not to be asked for a while.
func breakerOpen(wait time.Duration) callResult {
	c := notSent()
	c.err.Code, c.err.RetryAfter, c.err.HasRetryAfter = "breaker_open", wait, true
	return c
}

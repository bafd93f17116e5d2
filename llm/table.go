package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/turnd/turnd/turns"
)

// table is a Config as it is served. It does not change once it is made, apart from what its breakers keep.
type table struct {
	names        []string
	defaultModel string
	routes       map[string][]turns.Route
	endpoints    map[string]*served
	// breakers has one entry for each model at an endpoint that a route names, so a file's size bounds it.
	breakers map[breakerKey]*breaker
}

// served is an endpoint with who speaks to it.
type served struct {
	Endpoint
	provider string
	caller   Caller
}

// newTable makes the table of a Config. What did not change is taken over from the last one, which may be nil.
func (r *Router) newTable(c Config, last *table) (*table, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	t := &table{
		defaultModel: first(c.DefaultModel, c.Models[0].Name),
		routes:       make(map[string][]turns.Route),
		endpoints:    make(map[string]*served),
		breakers:     make(map[breakerKey]*breaker),
	}
	for _, e := range c.Endpoints {
		s, err := r.serve(e, last)
		if err != nil {
			return nil, err
		}
		t.endpoints[e.Name] = s
	}
	for _, m := range c.Models {
		t.names = append(t.names, m.Name)
		for _, target := range m.Route {
			e := t.endpoints[target.Endpoint]
			t.routes[m.Name] = append(t.routes[m.Name], r.routeOf(m.Name, e, target.Model))
			t.addBreaker(e, target.Model, last, r)
		}
	}
	return t, nil
}

// serve finds who speaks to an endpoint.
func (r *Router) serve(e Endpoint, last *table) (*served, error) {
	if last != nil && last.endpoints[e.Name] != nil && last.endpoints[e.Name].Endpoint == e {
		return last.endpoints[e.Name], nil
	}
	i := slices.IndexFunc(r.options.Adapters, func(a Adapter) bool { return a.Wire == e.Wire })
	if i < 0 {
		return nil, &Problem{Path: "endpoints." + e.Name + ".wire", Text: "no adapter of this process speaks it"}
	}
	a := r.options.Adapters[i]
	return &served{Endpoint: e, provider: a.Provider, caller: a.Open(r.http, e)}, nil
}

// addBreaker takes a breaker over from the last table, unless what it watches is another place now, or another account.
func (t *table) addBreaker(e *served, model string, last *table, r *Router) {
	key := breakerKey{e.Name, model}
	if t.breakers[key] != nil {
		return
	}
	if last != nil && last.breakers[key] != nil {
		if before := last.endpoints[e.Name]; before.Wire == e.Wire && before.BaseURL == e.BaseURL && before.Key == e.Key {
			t.breakers[key] = last.breakers[key]
			return
		}
	}
	t.breakers[key] = newBreaker(key, r.logger)
}

// callerOf is who speaks for a route; nil if its endpoint is gone, or speaks another wire by now: what was built for one
// wire means nothing on another.
func (t *table) callerOf(route turns.Route) Caller {
	e := t.endpoints[route.Endpoint]
	if e == nil || route.Wire != "" && route.Wire != string(e.Wire) || route.Provider != "" && route.Provider != e.provider {
		return nil
	}
	return e.caller
}

// isOtherAccount reports whether a route counts on an idempotency key that was made under another credential than the one
// that would be used now. A provider that enforces keys would take it for a new one, and generate again.
func (t *table) isOtherAccount(route turns.Route) bool {
	return route.Capabilities.Idempotency == turns.IdempotencyEnforced && route.Wire != "" &&
		route.Credential != credentialOf(t.endpoints[route.Endpoint].Key)
}

func (t *table) breakerOf(route turns.Route) *breaker {
	return t.breakers[breakerKey{route.Endpoint, route.ProviderModel}]
}

// routeOf is what callers get to know of a model at an endpoint. No key is in it.
func (r *Router) routeOf(model string, e *served, providerModel string) turns.Route {
	caps := e.Capabilities
	caps.Idempotency = first(caps.Idempotency, turns.IdempotencyNone)
	return turns.Route{
		Model:         model,
		Endpoint:      e.Name,
		Provider:      e.provider,
		ProviderModel: providerModel,
		Wire:          string(e.Wire),
		Limits:        limitsOf(e.Limits, r.options.Limits, DefaultLimits),
		Capabilities:  caps,
		Credential:    credentialOf(e.Key),
		OnAmbiguous:   first(first(e.OnAmbiguous, r.options.OnAmbiguous), turns.OnAmbiguousAbandon),
		OnPartial:     first(first(e.OnPartial, r.options.OnPartial), turns.OnPartialDiscard),
		Prices:        e.Prices,
	}
}

// credentialOf tells keys apart without giving one away: a few bytes of a digest that nobody else makes of them.
func credentialOf(key Secret) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("turnd credential 1\x00" + key.Reveal()))
	return hex.EncodeToString(sum[:4])
}

// limitsOf takes each limit from the first that sets it.
func limitsOf(sets ...turns.Limits) turns.Limits {
	var l turns.Limits
	for _, s := range sets {
		l.FirstByte = first(l.FirstByte, s.FirstByte)
		l.Idle = first(l.Idle, s.Idle)
		l.Total = first(l.Total, s.Total)
		l.WindowTokens = first(l.WindowTokens, s.WindowTokens)
		l.MaxOutputTokens = first(l.MaxOutputTokens, s.MaxOutputTokens)
	}
	return l
}

// first is a unless that is zero, else b.
func first[T comparable](a, b T) T {
	var zero T
	if a != zero {
		return a
	}
	return b
}

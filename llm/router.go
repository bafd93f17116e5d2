package llm

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// Options of a Router.
type Options struct {
	// Adapters speak the wires that endpoints name.
	Adapters []Adapter
	// Limits are the process's; a zero field is the one of DefaultLimits.
	Limits turns.Limits
	// Logger gets what no call's own error can say; nil drops it.
	Logger *slog.Logger
	// Dial opens connections to providers; nil dials TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Router is the turns.Generator over all endpoints of a Config. It is safe for concurrent use.
type Router struct {
	http         *wire.Client
	names        []string
	defaultModel string
	routes       map[string]turns.Route
	callers      map[string]Caller // by endpoint
}

// Adapter is how a wire is spoken. The packages of the vendors give one each; the router knows them only by it.
type Adapter struct {
	Wire Wire
	// Provider is the vendor's name in routes and figures.
	Provider string
	// Open makes the caller of one endpoint. It opens no connection.
	Open func(*wire.Client, Endpoint) Caller
}

// Caller builds and sends the requests of one endpoint, with the duties of turns.Generator. One whose wire can be asked
// about a call has the methods of turns.Recoverer that are for it, each an interface of its own: Preparer, Recoverer,
// Stopper, OriginReader.
type Caller interface {
	Build(turns.Route, turns.Prompt) (turns.Request, error)
	Generate(context.Context, turns.Call) iter.Seq2[turns.Delta, error]
}

// New makes a router. It opens no connection.
func New(c Config, o Options) (*Router, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	r := &Router{
		http:         wire.NewClient(wire.Options{Dial: o.Dial, Logger: o.Logger}),
		defaultModel: c.DefaultModel,
		routes:       make(map[string]turns.Route),
		callers:      make(map[string]Caller),
	}
	if r.defaultModel == "" {
		r.defaultModel = c.Models[0].Name
	}
	for _, e := range c.Endpoints {
		i := slices.IndexFunc(o.Adapters, func(a Adapter) bool { return a.Wire == e.Wire })
		if i < 0 {
			return nil, &Problem{Path: "endpoints." + e.Name + ".wire", Text: "no adapter of this process speaks it"}
		}
		r.callers[e.Name] = o.Adapters[i].Open(r.http, e)
		r.addRoutes(c.Models, e, o.Adapters[i].Provider, o.Limits)
	}
	for _, m := range c.Models {
		r.names = append(r.names, m.Name)
	}
	return r, nil
}

// addRoutes adds the models that an endpoint serves.
func (r *Router) addRoutes(models []Model, e Endpoint, provider string, limits turns.Limits) {
	for _, m := range models {
		if m.Route[0].Endpoint == e.Name {
			r.routes[m.Name] = routeOf(m, e, provider, limits)
		}
	}
}

// routeOf is what callers get to know of a model. No key is in it.
func routeOf(m Model, e Endpoint, provider string, limits turns.Limits) turns.Route {
	caps := e.Capabilities
	if caps.Idempotency == "" {
		caps.Idempotency = turns.IdempotencyNone
	}
	return turns.Route{
		Model:         m.Name,
		Endpoint:      e.Name,
		Provider:      provider,
		ProviderModel: m.Route[0].Model,
		Limits:        limitsOf(e.Limits, limits, DefaultLimits),
		Capabilities:  caps,
	}
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

// Models are the names that clients can use, in the order of the Config.
func (r *Router) Models() []string { return append([]string(nil), r.names...) }

// Resends counts requests that were written to the wire more than once; it must stay 0.
func (r *Router) Resends() int64 { return r.http.Resends() }

// Close lets go of idle connections. Calls that run go on; end them by their contexts.
func (r *Router) Close() { r.http.Close() }

// Routes implements turns.Generator.
func (r *Router) Routes(model string) ([]turns.Route, error) {
	if model == "" {
		model = r.defaultModel
	}
	route, ok := r.routes[model]
	if !ok {
		return nil, &turns.Error{Code: turns.CodeUnknownModel, Field: "input.options.model",
			Problem: "no model of that name is configured; ask the operator which are"}
	}
	return []turns.Route{route}, nil
}

// Ready implements turns.Generator.
func (r *Router) Ready(turns.Route) (time.Duration, bool) { return 0, true }

// Build implements turns.Generator.
func (r *Router) Build(route turns.Route, prompt turns.Prompt) (turns.Request, error) {
	a, ok := r.callers[route.Endpoint]
	if !ok {
		return turns.Request{}, &turns.Error{Code: turns.CodeUnknownModel, Field: "input.options.model",
			Problem: "the endpoint of that model is not configured any more"}
	}
	return a.Build(route, prompt)
}

// Generate implements turns.Generator. A call whose endpoint is not configured any more is terminal, and not sent.
func (r *Router) Generate(ctx context.Context, call turns.Call) iter.Seq2[turns.Delta, error] {
	a, ok := r.callers[call.Request.Route.Endpoint]
	if !ok {
		return func(yield func(turns.Delta, error) bool) {
			yield(nil, &turns.CallError{Class: turns.ClassTerminal, Phase: turns.PhaseNone, Cause: errNoEndpoint})
		}
	}
	return a.Generate(ctx, call)
}

package llm

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// Options of a Router.
type Options struct {
	// Adapters speak the wires that endpoints name.
	Adapters []Adapter
	// Limits are the process's; a zero field is the one of DefaultLimits.
	Limits turns.Limits
	// OnAmbiguous and OnPartial are the policies of endpoints that name none; empty is abandon and discard.
	OnAmbiguous turns.OnAmbiguous
	OnPartial   turns.OnPartial
	// Logger gets what no call's own error can say; nil drops it.
	Logger *slog.Logger
	// Meter makes the gauge of the breakers; nil makes none.
	Meter metric.Meter
	// Dial opens connections to providers; nil dials TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Router is the turns.Generator over all endpoints of a Config, which Replace can change while calls run. It is safe for
// concurrent use.
type Router struct {
	http    *wire.Client
	options Options
	logger  *slog.Logger

	// replacing is held by whoever makes the next table. Everybody else reads the one that is there.
	replacing sync.Mutex
	table     atomic.Pointer[table]
	gauge     metric.Registration // nil without a Meter
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
	r := &Router{http: wire.NewClient(wire.Options{Dial: o.Dial, Logger: o.Logger}), options: o, logger: o.Logger}
	if r.logger == nil {
		r.logger = slog.New(slog.DiscardHandler)
	}
	if err := r.Replace(c); err != nil {
		return nil, err
	}
	if err := r.showBreakers(o.Meter); err != nil {
		return nil, err
	}
	return r, nil
}

// Replace puts another Config in the place of the one that is served, whole or, with an error, not at all. Calls under way
// end as they began. Routes that were given out before are good for as long as their endpoint has the same name and wire,
// and are then served as the new Config says. A breaker stays what it is where endpoint, address and key stay.
func (r *Router) Replace(c Config) error {
	r.replacing.Lock()
	defer r.replacing.Unlock()
	next, err := r.newTable(c, r.table.Load())
	if err != nil {
		return fmt.Errorf("models: %w", err)
	}
	r.table.Store(next)
	next.warnOfShortLimits(r.logger)
	return nil
}

// Models are the names that clients can use, in the order of the Config.
func (r *Router) Models() []string { return append([]string(nil), r.table.Load().names...) }

// WebhookSecret verifies the calls back of an endpoint's vendor. It is empty if none are to be taken.
func (r *Router) WebhookSecret(endpoint string) Secret {
	if e := r.table.Load().endpoints[endpoint]; e != nil {
		return e.WebhookSecret
	}
	return ""
}

// Resends counts requests that were written to the wire more than once; it must stay 0.
func (r *Router) Resends() int64 { return r.http.Resends() }

// Close lets go of idle connections. Calls that run go on; end them by their contexts.
func (r *Router) Close() {
	if r.gauge != nil {
		_ = r.gauge.Unregister() // it fails for instruments of another meter alone
	}
	r.http.Close()
}

// Routes implements turns.Generator.
func (r *Router) Routes(model string) ([]turns.Route, error) {
	t := r.table.Load()
	if model == "" {
		model = t.defaultModel
	}
	routes, ok := t.routes[model]
	if !ok {
		return nil, &turns.Error{
			Code: turns.CodeUnknownModel, Field: "input.options.model",
			Problem: "no model of that name is configured; ask the operator which are",
		}
	}
	return append([]turns.Route(nil), routes...), nil
}

// Ready implements turns.Generator. It reserves nothing: of several that hear yes while the breaker is half-open, one is
// let through by Generate.
func (r *Router) Ready(route turns.Route) (wait time.Duration, ok bool) {
	if b := r.table.Load().breakerOf(route); b != nil {
		return b.ready(time.Now())
	}
	return 0, true
}

// Build implements turns.Generator.
func (r *Router) Build(route turns.Route, prompt turns.Prompt) (turns.Request, error) {
	caller := r.table.Load().callerOf(route)
	if caller == nil {
		return turns.Request{}, &turns.Error{
			Code: turns.CodeUnknownModel, Field: "input.options.model",
			Problem: "the endpoint of that model is not configured any more",
		}
	}
	return caller.Build(route, prompt)
}

// Generate implements turns.Generator. A call whose endpoint is not configured any more is terminal, and not sent. One that
// comes while the route's breaker is open is not sent either: ErrBreakerOpen is its cause, and its hint when to come back.
func (r *Router) Generate(ctx context.Context, call turns.Call) iter.Seq2[turns.Delta, error] {
	t := r.table.Load()
	caller := t.callerOf(call.Request.Route)
	switch {
	case caller == nil:
		return refuse(errNoEndpoint)
	case t.isOtherAccount(call.Request.Route):
		return refuse(errOtherKey)
	}
	seq := caller.Generate(ctx, call)
	if b := t.breakerOf(call.Request.Route); b != nil {
		return b.watch(ctx, seq)
	}
	return seq
}

// refuse is a call that is not sent, and would not be if it came again.
func refuse(cause error) iter.Seq2[turns.Delta, error] {
	return func(yield func(turns.Delta, error) bool) {
		yield(nil, &turns.CallError{Class: turns.ClassTerminal, Phase: turns.PhaseNone, Cause: cause})
	}
}

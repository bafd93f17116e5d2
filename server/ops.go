package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// opsTime bounds a readiness check, and the end of the ops listener.
const opsTime = 2 * time.Second

// Check is one condition of readiness, such as the database's or that no drain is under way.
type Check struct {
	// Name is shown; the error of Ready is only logged.
	Name  string
	Ready func(context.Context) error
}

// Ops is what operators see, over plain HTTP and with no authentication: whoever listens must keep it on loopback.
type Ops struct {
	// Metrics answers /metrics; nil leaves it out.
	Metrics http.Handler
	// Checks must all hold for /readyz to answer 200.
	Checks []Check
	// Logger gets the errors of Checks. Default: nothing is logged.
	Logger *slog.Logger
}

// Handler answers /metrics, /healthz, /readyz and /debug/pprof. healthz says that the process answers at all, and readyz
// whether to send it work: a worker that drains or has lost its database is alive and not ready.
func (o Ops) Handler() http.Handler {
	mux := http.NewServeMux()
	if o.Metrics != nil {
		mux.Handle("GET /metrics", o.Metrics)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", o.readyz)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

func (o Ops) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), opsTime)
	defer cancel()
	status, body := http.StatusOK, ""
	for _, c := range o.Checks {
		word := "ok"
		if err := c.Ready(ctx); err != nil {
			status, word = http.StatusServiceUnavailable, "not ready"
			o.logger().WarnContext(ctx, "not ready", "check", c.Name, "error", err)
		}
		body += c.Name + ": " + word + "\n"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// Serve serves on a listener, which it closes, until ctx ends.
func (o Ops) Serve(ctx context.Context, lis net.Listener) error {
	return serveUntil(ctx, boundedHTTP(o.Handler(), opsTime, o.logger()), lis, opsTime, "ops")
}

func (o Ops) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

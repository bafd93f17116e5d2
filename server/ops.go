package server

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// opsTime bounds reading a request's header, and the end of the ops listener.
const opsTime = 2 * time.Second

// Paths of the ops listener that probes and scrapers are pointed at.
const (
	PathMetrics = "/metrics"
	PathHealthz = "/healthz"
	PathReadyz  = "/readyz"
	PathVersion = "/version"
)

// Ops is what operators see, over plain HTTP and with no authentication: whoever listens must keep it on loopback, or in a
// network where nobody else is.
type Ops struct {
	// Metrics answers /metrics; nil leaves it out.
	Metrics http.Handler
	// Readiness is what /readyz shows. Default: nothing stands in the way.
	Readiness *Readiness
	// Alive is an error if only a new process goes on. Default: as long as the process answers, it is alive.
	Alive func() error
	// About is what /version answers, as JSON: the build. Default: an empty object.
	About any
	// Logger gets what goes wrong with connections. Default: nothing is logged.
	Logger *slog.Logger
}

// Handler answers /metrics, /healthz, /readyz, /version and /debug/pprof. healthz says whether the process is worth keeping, and
// readyz whether to send it work: a worker that drains or has lost its database is alive and not ready. With ?verbose both
// answer JSON.
func (o Ops) Handler() http.Handler {
	mux := http.NewServeMux()
	if o.Readiness == nil {
		o.Readiness = NewReadiness(o.logger())
	}
	if o.About == nil {
		o.About = struct{}{}
	}
	if o.Metrics != nil {
		mux.Handle("GET "+PathMetrics, o.Metrics)
	}
	mux.HandleFunc("GET "+PathHealthz, o.healthz)
	mux.HandleFunc("GET "+PathReadyz, o.readyz)
	mux.HandleFunc("GET "+PathVersion, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, http.StatusOK, o.About) })
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// aliveAnswer is what /healthz?verbose answers.
type aliveAnswer struct {
	Alive bool   `json:"alive"`
	Why   string `json:"why,omitempty"`
	About any    `json:"about"`
}

func (o Ops) healthz(w http.ResponseWriter, r *http.Request) {
	status, answer := http.StatusOK, aliveAnswer{Alive: true, About: o.About}
	if o.Alive != nil {
		if err := o.Alive(); err != nil {
			status, answer.Alive, answer.Why = http.StatusServiceUnavailable, false, err.Error()
			o.logger().ErrorContext(r.Context(), "this process stands still and must be restarted", "error", err)
		}
	}
	switch {
	case r.URL.Query().Has("verbose"):
		answerJSON(w, status, answer)
	case answer.Alive:
		answerText(w, status, "ok\n")
	default:
		answerText(w, status, answer.Why+"\n")
	}
}

// readyAnswer is what /readyz?verbose answers.
type readyAnswer struct {
	Ready  bool          `json:"ready"`
	Checks []checkAnswer `json:"checks"`
	About  any           `json:"about"`
}

type checkAnswer struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	// Since is when it became so, and Asked when it was looked at last.
	Since time.Time `json:"since"`
	Asked time.Time `json:"asked"`
}

func (o Ops) readyz(w http.ResponseWriter, r *http.Request) {
	all := o.Readiness.Ask(r.Context())
	status, body := http.StatusOK, ""
	answer := readyAnswer{Ready: isReady(all, ""), Checks: []checkAnswer{}, About: o.About}
	if !answer.Ready {
		status = http.StatusServiceUnavailable
	}
	for _, c := range all {
		word := "ok"
		if c.Err != nil {
			word = "not ready"
		}
		body += c.Check.Name + ": " + word + "\n"
		answer.Checks = append(answer.Checks, checkAnswer{Name: c.Check.Name, Ready: c.Err == nil, Since: c.Since.UTC(), Asked: c.Asked.UTC()})
	}
	if r.URL.Query().Has("verbose") {
		answerJSON(w, status, answer)
		return
	}
	answerText(w, status, body)
}

func answerText(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func answerJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
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

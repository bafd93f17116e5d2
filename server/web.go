package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// newWeb makes the HTTP/1.1 half of the port, which is HTTP/2 too on a listener for the web alone.
func (s *Server) newWeb() (*http.Server, error) {
	api, err := newTranscoder(s.bridge, s.gate.codec, s.cfg.MaxRecvBytes, http.HandlerFunc(s.noSuchPath))
	if err != nil {
		return nil, err
	}
	guarded, err := s.cfg.origins().guard(s.routes(api))
	if err != nil {
		return nil, err
	}
	srv := boundedHTTP(s.whileServing(s.patiently(guarded)), s.cfg.SniffTimeout, s.cfg.Logger)
	srv.ReadTimeout = s.cfg.ArrivalTime
	return srv, nil
}

// Paths that are not the console's.
const (
	restPrefix    = "/v1/"
	servicePrefix = "/turns.v1."
	libraryPrefix = "/grpc."
)

// routes tells the calls from the event streams, and from what is none of both.
func (s *Server) routes(api http.Handler) http.Handler {
	calls := s.whole(typedErrors(api))
	mux := http.NewServeMux()
	mux.HandleFunc(restPrefix+"conversations/{conversation}/replies/{reply}/events", s.serveEvents)
	mux.HandleFunc(restPrefix+"conversations/{conversation}/turns/{turn}/events", s.serveEvents)
	mux.Handle(restPrefix, plainQuery(calls))
	mux.Handle(openAPIPath, serveOpenAPI())
	mux.Handle("/", s.cfg.Console)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if isCall(r.URL.Path) {
			assumeConnect(r)
			calls.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// assumeConnect names the protocol of a request to a method's path that does not: Connect lets plain clients leave it out, and
// no other protocol is spoken there by these types of content.
func assumeConnect(r *http.Request) {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if plain := kind == "application/json" || kind == "application/proto"; plain && r.Header.Get(connectVersion) == "" {
		r.Header.Set(connectVersion, "1")
	}
}

const connectVersion = "Connect-Protocol-Version"

// isCall reports the path of a method, as Connect and gRPC-Web have it.
func isCall(path string) bool {
	return strings.HasPrefix(path, servicePrefix) || strings.HasPrefix(path, libraryPrefix)
}

// whileServing lets a drain wait for what runs here. It is the outermost handler.
func (s *Server) whileServing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.webRuns.TryRLock() {
			w.Header().Set("Connection", "close")
			refuse(w, r, http.StatusServiceUnavailable, statusOf(errDraining))
			return
		}
		defer s.webRuns.RUnlock()
		next.ServeHTTP(w, r)
	})
}

// boundedHTTP is an HTTP server on which no client can take its time with a request, or much memory.
func boundedHTTP(h http.Handler, headerTimeout time.Duration, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// serveUntil serves on a listener, which it closes, until ctx ends, and gives requests under way some time then.
func serveUntil(ctx context.Context, srv *http.Server, lis net.Listener, grace time.Duration, what string) error {
	ended := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(ended)
		last, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if srv.Shutdown(last) != nil {
			_ = srv.Close()
		}
	})
	err := srv.Serve(lis)
	if !unhook() {
		<-ended
	}
	if err = unless(err, http.ErrServerClosed); err != nil {
		return fmt.Errorf("serve %s: %w", what, err)
	}
	return nil
}

// webNotice tells whoever comes by HTTP/1.1 what is served here, where there is no console.
func webNotice(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "turnd serves gRPC on this port, and by HTTP/1.1 Connect, gRPC-Web and REST: turns.v1.TurnService, with reflection.\n")
}

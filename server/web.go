package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// newWeb makes the HTTP/1.1 half of the port.
func (s *Server) newWeb() *http.Server {
	return boundedHTTP(s.cfg.Web, s.cfg.SniffTimeout, s.cfg.Logger)
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

// webNotice tells whoever comes by HTTP/1.1 what is served here.
func webNotice(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "turnd serves gRPC on this port: turns.v1.TurnService, with reflection.\n")
}

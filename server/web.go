package server

import (
	"io"
	"log/slog"
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

// webNotice tells whoever comes by HTTP/1.1 what is served here.
func webNotice(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "turnd serves gRPC on this port: turns.v1.TurnService, with reflection.\n")
}

package server

import (
	"net/http"
	"time"
)

// writePiece is how much has to be taken within Config.WriteTime.
const writePiece = 64 << 10

// patiently lets an answer take as long as it takes, but not a client that takes nothing of it: whoever stands still for
// Config.WriteTime is cut off, and follows again from its cursor. A deadline of the whole answer would cut long streams.
func (s *Server) patiently(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &patientWriter{ResponseWriter: w, control: http.NewResponseController(w), within: s.cfg.WriteTime, timers: r.ProtoMajor > 1}
		p.begin()
		next.ServeHTTP(p, r)
		p.begin() // for what is left to be sent when this has returned
	})
}

// patientWriter gives each piece that it writes its own time.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	within  time.Duration
	// timers says that a deadline ends the stream also when nothing is being written, which is so with HTTP/2.
	timers bool
}

// Unwrap lets http.ResponseController find what is wrapped.
func (p *patientWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Write implements http.ResponseWriter.
func (p *patientWriter) Write(b []byte) (n int, err error) {
	defer p.end()
	for err == nil && len(b) > 0 {
		p.begin()
		var wrote int
		wrote, err = p.ResponseWriter.Write(b[:min(len(b), writePiece)])
		n, b = n+wrote, b[wrote:]
	}
	return n, err
}

// Flush implements http.Flusher.
func (p *patientWriter) Flush() { _ = p.FlushError() }

// FlushError is what http.ResponseController asks for.
func (p *patientWriter) FlushError() error {
	defer p.end()
	p.begin()
	return p.control.Flush()
}

func (p *patientWriter) begin() { _ = p.control.SetWriteDeadline(time.Now().Add(p.within)) }

func (p *patientWriter) end() {
	if p.timers {
		_ = p.control.SetWriteDeadline(time.Time{})
	}
}

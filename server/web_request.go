package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/turnd/turnd/turns"
)

// whole reads a request before anything is made of it, so that a call costs nothing until it is there, and so that what is too
// large or too slow is told so in one way, whatever it speaks. All calls of the web are of one message.
func (s *Server) whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if isGRPC(r) {
			refuseGRPC(w)
			return
		}
		body, err := s.readBody(w, r)
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			w.Header().Set("Connection", "close")
			refuse(w, r, http.StatusRequestEntityTooLarge, statusOf(within("body", max(int(r.ContentLength), s.cfg.MaxRecvBytes+1), s.cfg.MaxRecvBytes)))
			return
		case err != nil:
			w.Header().Set("Connection", "close")
			code := http.StatusBadRequest
			if errors.Is(err, os.ErrDeadlineExceeded) {
				code = http.StatusRequestTimeout
			}
			refuse(w, r, code, errNotWhole)
			return
		}
		if isEnveloped(r) && !holdsEnvelope(body) {
			refuse(w, r, http.StatusBadRequest, statusOf(invalidField("body", "is not one message with its length before it")))
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), -1
		next.ServeHTTP(w, r)
	})
}

var errNotWhole = build(rule{code: codes.Canceled, advice: turns.AdviceSameIDNow}, &turns.Error{}, "the request did not arrive")

// readBody reads a body within its bounds of size and time. From then on the client need not send anything, for as long as its
// stream goes on.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	most := int64(s.cfg.MaxRecvBytes)
	if r.ContentLength > most {
		return nil, &http.MaxBytesError{Limit: most}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	return body, http.NewResponseController(w).SetReadDeadline(time.Time{})
}

// refuseGRPC answers a call of gRPC proper, which is served without net/http, where it is cheaper by far.
func refuseGRPC(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", strconv.Itoa(int(codes.Unimplemented)))
	w.Header().Set("Grpc-Message", "this listener serves the web; gRPC is served on --listen")
	w.WriteHeader(http.StatusOK)
}

// isGRPC reports a call of gRPC proper.
func isGRPC(r *http.Request) bool {
	kind := r.Header.Get("Content-Type")
	return kind == "application/grpc" || strings.HasPrefix(kind, "application/grpc+")
}

// isEnveloped reports a request whose messages have a length before them.
func isEnveloped(r *http.Request) bool {
	kind := r.Header.Get("Content-Type")
	return strings.HasPrefix(kind, connectStream) || strings.HasPrefix(kind, grpcWeb)
}

// envelopeHead is a byte of flags and four of length.
const envelopeHead = 5

// holdsEnvelope reports a body that is one message, of the length that it says. Room is made for that length later.
func holdsEnvelope(body []byte) bool {
	return len(body) >= envelopeHead && int64(binary.BigEndian.Uint32(body[1:])) == int64(len(body)-envelopeHead)
}

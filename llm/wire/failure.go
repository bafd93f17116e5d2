package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/turnd/turnd/llm/sse"
	"github.com/turnd/turnd/turns"
)

// Why a call ended, where it was not the provider's word. They are causes of a turns.CallError.
var (
	ErrFirstByteLimit = errors.New("no response within the first-byte limit")
	ErrIdleLimit      = errors.New("the stream was silent past the idle limit")
	ErrTotalLimit     = errors.New("the call took longer than the total limit")
	// ErrNoTerminal says that a stream ended cleanly, but before its terminal event.
	ErrNoTerminal = errors.New("the stream ended before its terminal event")
	// ErrNotAStream says that a good status came with something that is no event stream.
	ErrNotAStream = errors.New("the response is no event stream")
	// ErrMalformed says that an event could not be read.
	ErrMalformed = errors.New("the stream holds an event that can't be read")
	// ErrResent says that the HTTP stack wrote the request more than once.
	ErrResent = errors.New("the request was written to the wire more than once")
	// ErrHeldBack says that nothing was sent, since the caller did not want it any more once there was a connection.
	ErrHeldBack = errors.New("the request was held back before it was sent")
	// ErrSpent says that a call's sequence was ranged over a second time; nothing was sent again.
	ErrSpent = errors.New("the call was made before")
)

// Answer is a response of a bad status, for a vendor to classify.
type Answer struct {
	Status int
	// Body is the start of the body, as far as it came. It must not be kept.
	Body []byte
	// Hinted says that the response asks to wait for some time.
	Hinted bool
}

// Verdict is what a vendor's words mean. Word is its own code or type; it is cut and cleaned before it is kept.
type Verdict struct {
	Class turns.CallClass
	Word  string
	// Wait is how long the body or the event itself asks to wait, if HasWait. What a header says comes first.
	Wait    time.Duration
	HasWait bool
}

// ask puts the wait that a provider asked for into an error: that of a header, else that of its words.
func (v Verdict) ask(err *turns.CallError, header time.Duration, hinted bool) {
	err.RetryAfter, err.HasRetryAfter = header, hinted
	if !hinted && v.HasWait {
		err.RetryAfter, err.HasRetryAfter = capped(v.Wait), true
	}
}

// maxWord and maxID bound what is kept of a vendor's words.
const (
	maxWord = 64
	maxID   = 128
)

// clean keeps a vendor's code or id only if it looks like one: a server could put anything there, a prompt's text too.
func clean(s string, limit int) string {
	s = s[:min(len(s), limit)]
	for _, c := range []byte(s) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("_-.:/", c) >= 0) {
			return ""
		}
	}
	return s
}

// safe keeps of a transport's error what holds no bytes of the exchange: the errors of the operating system, of name
// lookup and of TLS say what happened and where. Others quote what the server sent, so only their type is kept.
func safe(err error) error {
	var (
		op       *net.OpError
		dns      *net.DNSError
		cert     *tls.CertificateVerificationError
		tooLarge *sse.TooLargeError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &op):
		return op
	case errors.As(err, &dns):
		return dns
	case errors.As(err, &cert):
		return cert
	case errors.As(err, &tooLarge):
		return tooLarge
	}
	for _, known := range []error{io.ErrUnexpectedEOF, io.EOF, context.Canceled, context.DeadlineExceeded,
		ErrNoTerminal, ErrNotAStream, ErrMalformed, ErrResent} {
		if errors.Is(err, known) {
			return known
		}
	}
	return fmt.Errorf("transport failed: %T", err)
}

// isLimit reports whether a context was ended by one of our limits: those of the call, or the caller's own deadline.
func isLimit(cause error) bool {
	for _, limit := range []error{ErrFirstByteLimit, ErrIdleLimit, ErrTotalLimit, context.DeadlineExceeded} {
		if errors.Is(cause, limit) {
			return true
		}
	}
	return false
}

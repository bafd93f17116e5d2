package wire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/turnd/turnd/llm/sse"
	"github.com/turnd/turnd/turns"
)

// Post is the one request of a call.
type Post struct {
	// Method is POST if empty.
	Method string
	URL    string
	// Header holds what the vendor wants, its credential included. It is not changed.
	Header http.Header
	Body   []byte
	// Key goes out as Idempotency-Key; empty sends none.
	Key    string
	Limits turns.Limits
	// MaySend is asked before the first byte of the body is handed over; nil is always true.
	MaySend func() bool
}

// Vendor is what differs from vendor to vendor.
type Vendor struct {
	// RequestID names the response headers that may hold the vendor's id of the request, the surest first.
	RequestID []string
	// Translator makes the translator of one call's stream.
	Translator func() Translator
	// Classify says what a response of a bad status means.
	Classify func(Answer) Verdict
	// Extra reads how many requests a gateway made besides; nil is none.
	Extra func(http.Header) int
}

// Translator reads the events of one stream. It is pure: the same events make the same deltas, but for where texts are cut.
type Translator interface {
	// Translate appends to out what an event means, but for text that goes on: that may be kept until Flush. done says that
	// it was the terminal event; Finished is then the last of out. The error is an *EventError, or ErrMalformed for what
	// can't be read.
	Translate(e sse.Event, out []turns.Delta) (deltas []turns.Delta, done bool, err error)
	// Flush appends to out the text that was kept.
	Flush(out []turns.Delta) []turns.Delta
}

// EventError says that a stream held the vendor's own error event.
type EventError struct{ Verdict Verdict }

// Error implements error.
func (e *EventError) Error() string { return "the stream holds an error event" }

// errStopped ends a call whose consumer wants no more.
var errStopped = errors.New("the consumer stopped")

// Stream makes the call: it sends the request once and yields what comes back, as turns.Generator promises. The sequence
// can be ranged over once.
func (c *Client) Stream(ctx context.Context, post Post, vendor Vendor) iter.Seq2[turns.Delta, error] {
	var spent atomic.Bool
	return func(yield func(turns.Delta, error) bool) {
		if spent.Swap(true) {
			yield(nil, &turns.CallError{Class: turns.ClassTerminal, Phase: turns.PhaseNone, Cause: ErrSpent})
			return
		}
		call := &call{client: c, post: post, vendor: vendor, phase: turns.PhaseNone, accept: eventStream,
			emit: func(d turns.Delta) bool { return yield(d, nil) }}
		if err := call.run(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// call is one call on its way.
type call struct {
	client *Client
	post   Post
	vendor Vendor
	accept string
	emit   func(turns.Delta) bool

	ctx    context.Context
	cancel context.CancelCauseFunc
	trace  trace
	// held says that the request was held back at the last moment.
	held atomic.Bool

	// What is known by now, for the error. phase is past none once a status came; before, the trace knows.
	phase     turns.CallPhase
	status    int
	requestID string
	extra     int
}

// run is nil when the terminal event was read, errStopped when the consumer had enough, else a *turns.CallError. The
// connection is released when it returns.
func (c *call) run(parent context.Context) error {
	c.ctx, c.cancel = context.WithCancelCause(parent)
	defer c.cancel(nil)
	defer c.limit(c.post.Limits.Total, ErrTotalLimit)()

	resp, err := c.send()
	if err != nil {
		return c.failed(err)
	}
	defer func() { _ = resp.Body.Close() }()
	c.phase, c.status, c.requestID = turns.PhaseHeaders, resp.StatusCode, c.idOf(resp.Header)
	if c.vendor.Extra != nil {
		c.extra = max(c.vendor.Extra(resp.Header), 0)
	}
	if c.trace.wrote.Load() > 1 {
		return c.failed(ErrResent)
	}
	switch {
	case resp.StatusCode >= 300:
		return c.refused(resp)
	case resp.StatusCode != http.StatusOK || !isEventStream(resp.Header):
		return c.failed(ErrNotAStream)
	}
	resp.Header = nil // all of it was read that matters, and net/http keeps the response until the end of its body
	return c.read(resp)
}

// limit ends the call with a cause after some time, unless the returned function is called before. 0 is no limit.
func (c *call) limit(after time.Duration, cause error) (lift func()) {
	if after <= 0 {
		return func() {}
	}
	timer := time.AfterFunc(after, func() { c.cancel(cause) })
	return func() { timer.Stop() }
}

// send writes the request and waits for the headers of the response.
func (c *call) send() (*http.Response, error) {
	defer c.limit(c.post.Limits.FirstByte, ErrFirstByteLimit)()
	req, err := c.request()
	if err != nil {
		return nil, err
	}
	// The transport is used without an http.Client: that would follow redirects.
	return c.client.transport.RoundTrip(req)
}

// request is written by hand instead of by http.NewRequest, which would give it a GetBody.
func (c *call) request() (*http.Request, error) {
	target, err := url.Parse(c.post.URL)
	if err != nil {
		return nil, err
	}
	req := &http.Request{
		Method: cmp.Or(c.post.Method, http.MethodPost),
		URL:    target,
		Host:   target.Host,
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        c.post.Header.Clone(),
		Body:          &sending{call: c, r: bytes.NewReader(c.post.Body)},
		ContentLength: int64(len(c.post.Body)),
		GetBody:       nil, // with it, net/http would send the request again by itself
	}
	if req.Header == nil {
		req.Header = make(http.Header)
	}
	if len(c.post.Body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	} else {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	req.Header.Set("Accept", c.accept)
	req.Header.Set("User-Agent", "turnd")
	if c.post.Key != "" {
		req.Header.Set("Idempotency-Key", c.post.Key)
	}
	return req.WithContext(c.trace.attach(c.ctx)), nil
}

func (c *call) idOf(h http.Header) string {
	for _, name := range c.vendor.RequestID {
		if id := clean(h.Get(name), maxID); id != "" {
			return id
		}
	}
	return ""
}

const eventStream = "text/event-stream"

// isEventStream reports whether the body can be read as events as it comes.
func isEventStream(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	encoding := h.Get("Content-Encoding")
	return err == nil && kind == eventStream && (encoding == "" || encoding == "identity")
}

// read yields the stream up to its terminal event. Events that came together are yielded together, their texts as one: what
// was read already is taken before anything is yielded, and nothing is waited for.
func (c *call) read(resp *http.Response) error {
	if !c.emit(turns.Responded{HTTPStatus: c.status, RequestID: c.requestID, Extra: c.extra}) {
		return errStopped
	}
	events := c.client.decoder(&body{call: c, r: resp.Body})
	defer c.client.release(events)
	translator := c.vendor.Translator()
	var deltas []turns.Delta
	for {
		if err := events.Fill(); err == io.EOF {
			return c.failed(ErrNoTerminal)
		} else if err != nil {
			return c.failed(err)
		}
		var done bool
		var err error
		deltas, done, err = together(events, translator, deltas[:0])
		wanted := c.emitAll(deltas)
		switch {
		case done: // also for a consumer that stops at the last delta
			c.drain(resp.Body)
			return nil
		case !wanted:
			return errStopped
		case err != nil:
			return c.failed(err)
		}
	}
}

// together translates the events that were read already.
func together(events *sse.Decoder, translator Translator, out []turns.Delta) (deltas []turns.Delta, done bool, err error) {
	for !done && err == nil {
		event, ok := events.Buffered()
		if !ok {
			break
		}
		out, done, err = translator.Translate(event, out)
	}
	return translator.Flush(out), done, err
}

func (c *call) emitAll(deltas []turns.Delta) (wanted bool) {
	for _, d := range deltas {
		if !c.emit(d) {
			return false
		}
	}
	return true
}

// drain reads the rest of a body after the terminal event, for a short while, so that the connection can be used again.
// What it holds does not matter any more.
func (c *call) drain(r io.Reader) {
	defer c.limit(drainWait, nil)()
	_, _ = io.CopyN(io.Discard, r, drainBytes)
}

// sending is the request's body. It is what the stack asks for last: a request that is held back there has not left, or
// only its headers have, on which no provider acts.
type sending struct {
	call  *call
	r     io.Reader
	begun bool
}

// Read implements io.Reader.
func (s *sending) Read(p []byte) (int, error) {
	if may := s.call.post.MaySend; !s.begun && may != nil && !may() {
		s.call.held.Store(true)
		return 0, ErrHeldBack
	}
	s.begun = true
	return s.r.Read(p)
}

// Close implements io.Closer.
func (s *sending) Close() error { return nil }

// body is the response's body under the idle limit.
type body struct {
	call  *call
	r     io.Reader
	timer *time.Timer
}

// Read implements io.Reader. The limit runs only while a read waits for the server.
func (b *body) Read(p []byte) (int, error) {
	if idle := b.call.post.Limits.Idle; idle > 0 {
		if b.timer == nil {
			b.timer = time.AfterFunc(idle, func() { b.call.cancel(ErrIdleLimit) })
		} else {
			b.timer.Reset(idle)
		}
		defer b.timer.Stop()
	}
	n, err := b.r.Read(p)
	if n > 0 {
		b.call.phase = turns.PhaseBody
	}
	return n, err
}

// refused classifies a response of a bad status.
func (c *call) refused(resp *http.Response) error {
	lift := c.limit(errorBodyWait, nil)
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what came of it is enough; the status stands anyway
	lift()
	wait, hinted := Hint(c.status, resp.Header, time.Now())
	verdict := c.vendor.Classify(Answer{Status: c.status, Body: text, Hinted: hinted})
	err := c.error(verdict.Class)
	err.Code = clean(verdict.Word, maxWord)
	verdict.ask(err, wait, hinted)
	err.Cause = errors.New("the provider answered with status " + strconv.Itoa(c.status))
	return err
}

// failed classifies everything that is not a bad status: a broken transport, a limit, a cancel, an error event, a stream
// that is no stream or ends too early.
func (c *call) failed(cause error) *turns.CallError {
	if c.trace.wrote.Load() > 1 {
		c.client.resends.Add(1)
		c.client.logger.Error("provider request was written to the wire more than once", "writes", c.trace.wrote.Load())
		err := c.error(turns.ClassAmbiguous)
		err.Cause = ErrResent
		return err
	}
	var event *EventError
	switch {
	case c.held.Load():
		err := c.error(turns.ClassNotSent)
		err.Phase, err.Cause = turns.PhaseConnected, ErrHeldBack
		return err
	case errors.As(cause, &event):
		err := c.error(event.Verdict.Class)
		err.Code, err.Cause = clean(event.Verdict.Word, maxWord), event
		event.Verdict.ask(err, 0, false)
		return err
	case c.ctx.Err() != nil:
		return c.ended(context.Cause(c.ctx))
	}
	err := c.error(c.lost())
	err.Cause = safe(cause)
	return err
}

// ended is a call that was ended from this side.
func (c *call) ended(cause error) *turns.CallError {
	err := c.error(turns.ClassCancelled)
	if isLimit(cause) {
		err.Class, err.Timeout = c.lost(), true
	}
	err.Cause = cause
	return err
}

// lost is the class of a call without an outcome.
func (c *call) lost() turns.CallClass {
	if c.phase == turns.PhaseNone && !c.trace.written() {
		return turns.ClassNotSent
	}
	return turns.ClassAmbiguous
}

// error says how far the call got: by the response if one came, else by the trace.
func (c *call) error(class turns.CallClass) *turns.CallError {
	phase := c.phase
	if phase == turns.PhaseNone {
		phase = c.trace.phase()
	}
	return &turns.CallError{Class: class, Phase: phase, HTTPStatus: c.status, RequestID: c.requestID, Extra: c.extra}
}

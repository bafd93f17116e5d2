package turns

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/turnd/turnd/internal/instrument"
)

// callResult is what one physical call came to.
type callResult struct {
	// err is nil if the terminal event was read, or the log's limit was reached.
	err *CallError
	// finished says that the terminal event was read.
	finished   bool
	stopReason StopReason
	// used says that the call wrote into the log.
	used bool
	// closed says that there is no open call.
	closed     bool
	httpStatus int
	requestID  string
	responseID string
	reported   *Usage
	replyBytes int
	cut        bool // the log's limit ended it
	extra      int  // further requests that a gateway made
	// firstChunk is when the first piece of the response came; zero: none has.
	firstChunk time.Time
	// pen is what wrote it into the log, to be gone on with where the stream is continued.
	pen *pen
}

// errFull ends a call whose reply has reached the log's limit.
var errFull = errors.New("the reply is at its size limit")

// errUnfinished ends a call whose stream ended without its terminal event, whatever else it said: that is a failure and
// never a completion.
var errUnfinished = errors.New("the stream ended without its terminal event")

// send makes one physical call and pours what comes back into the log. Most of a run's time is spent in it, and so what waits
// here, and in those that call it, should take little room on the stack: there can be ten thousand of them.
func (r *run) send(ctx context.Context, c *callResult) {
	ctx, span := r.sending(ctx)
	defer span.End()
	begun := time.Now()
	r.pour(ctx, r.answer(ctx), r.newPen(), c)
	r.measured(ctx, begun, c)
	c.came(span)
}

// sending begins the span of the call.
func (r *run) sending(ctx context.Context) (context.Context, trace.Span) {
	ctx, span := r.callSpan(ctx, instrument.OperationChat, r.request.Route)
	r.sent(span)
	return ctx, span
}

// answer is what comes back for the call, which leaves when it is ranged over.
func (r *run) answer(ctx context.Context) iter.Seq2[Delta, error] {
	return r.generator.Generate(ctx, r.physical())
}

// measured counts a call that was made.
func (r *run) measured(ctx context.Context, begun time.Time, c *callResult) {
	i := inference{operation: instrument.OperationChat, route: r.request.Route, mixed: r.request.Mixed, begun: begun}
	i.counted = exactly(c.reported, r.callUsage(*c))
	r.metrics.inferred(ctx, i, *c)
}

// newPen writes what comes next behind what the log holds; where an answer is repeated, from its beginning.
func (r *run) newPen() *pen {
	w := &pen{log: r.log, max: r.set.MaxOutputBytes, written: int(r.log.Len()), block: r.prior()}
	if repeated, ok := r.log.(*repeatLog); ok {
		w.written = int(r.reply.Continues)
		repeated.begin()
	}
	return w
}

// pour writes an answer into the log, and adds what it says to what is known of the call.
func (r *run) pour(ctx context.Context, answer iter.Seq2[Delta, error], w *pen, c *callResult) {
	length := w.written
	c.err, c.pen = nil, w
	for delta, err := range answer {
		if err != nil {
			c.err = asCallError(err)
			break
		}
		if err := r.take(ctx, w, c, delta); err != nil {
			c.fail(err)
			break
		}
	}
	c.used, c.replyBytes = c.used || w.written > length, max(c.replyBytes, w.ownBytes)
	if c.err == nil && !c.finished && !c.cut {
		c.fail(errUnfinished)
	}
	if c.err == nil {
		if err := w.end(); err != nil {
			c.fail(err)
		}
	}
	if repeated, ok := w.log.(*repeatLog); ok && c.err == nil && repeated.behind() {
		c.fail(errDiverged)
	}
}

// physical is the call as it goes to the provider. The lease is looked at once more when there is a connection: dialling
// may have outlasted it.
func (r *run) physical() Call {
	return Call{ID: r.call.ID, Request: r.request, Key: r.call.Key, Session: r.session, MaySend: func() bool { return r.lease.holds(r.owner()) }}
}

// take acts on one delta.
func (r *run) take(ctx context.Context, w *pen, c *callResult, delta Delta) error {
	if !c.hears(delta) {
		err := w.put(delta)
		r.answered(ctx, delta)
		return err
	}
	if _, ok := delta.(ResponseStarted); ok {
		id := c.responseID
		r.responseID.Store(&id)
		if caps := r.request.Route.Capabilities; caps.Resume || caps.Cancel {
			r.nudges.add(r.reply.ID) // whoever takes the reply over must know it
		}
	}
	return nil
}

// answered notes the first delta of a new turn's reply.
func (r *run) answered(ctx context.Context, delta Delta) {
	if _, text := delta.(BlockDelta); text && !r.arrived.IsZero() {
		r.metrics.firstDeltaCame(ctx, r.arrived, r.request.Route)
		r.arrived = time.Time{}
	}
}

// hears takes what a delta says of the call itself; false says that it is content.
func (c *callResult) hears(delta Delta) bool {
	if _, headers := delta.(Responded); !headers && c.firstChunk.IsZero() {
		c.firstChunk = time.Now()
	}
	switch d := delta.(type) {
	case Responded:
		if c.httpStatus == 0 { // not the answer to a question about the call
			c.httpStatus, c.requestID = d.HTTPStatus, cleanID(d.RequestID)
		}
		c.extra += d.Extra
	case ResponseStarted:
		c.responseID = cleanID(d.ResponseID)
	case UsageReported:
		c.reported = &d.Usage
	case Finished:
		c.finished, c.stopReason = true, d.StopReason
	default:
		return false
	}
	return true
}

// maxVendorID bounds an id that a vendor gave, in bytes.
const maxVendorID = 256

// cleanID makes an id that a vendor gave fit to be stored: one that no database takes must not cost the reply.
func cleanID(id string) string {
	return cutAtRune(dropNUL(strings.ToValidUTF8(id, "?")), maxVendorID)
}

// fail records why we broke off.
func (c *callResult) fail(err error) {
	if errors.Is(err, errFull) {
		c.stopReason, c.cut = StopLength, true
		return
	}
	c.err = &CallError{Class: ClassAmbiguous, Phase: PhaseBody, HTTPStatus: c.httpStatus, Cause: err}
}

func asCallError(err error) *CallError {
	var e *CallError
	if errors.As(err, &e) {
		return e
	}
	return &CallError{Class: ClassAmbiguous, Phase: PhaseWritten, Cause: err}
}

// knownResponse is the provider's id of the response, empty while unknown.
func (r *run) knownResponse() string {
	if id := r.responseID.Load(); id != nil {
		return *id
	}
	return ""
}

// outcome is the ledger's view of a call; waste says why its tokens were not delivered, empty if they were.
func (r *run) outcome(c callResult, waste string) CallOutcome {
	o := CallOutcome{Key: r.key, Tenant: r.claim.Tenant, ID: r.call.ID, Class: ClassOK, Phase: PhaseDone, HTTPStatus: c.httpStatus,
		RequestID: c.requestID, ResponseID: c.responseID, Extra: c.extra}
	o.Usage, o.Low, o.High = r.usageOf(r.request.Route, r.call.RequestBytes, c)
	if c.cut {
		o.Class, o.Phase = ClassCancelled, PhaseBody
	}
	if c.err != nil {
		o.Class, o.Phase = c.err.Class, c.err.Phase
		if o.HTTPStatus == 0 {
			o.HTTPStatus = c.err.HTTPStatus
		}
		if o.RequestID == "" {
			o.RequestID = c.err.RequestID
		}
		o.Extra += c.err.Extra
	}
	if waste != "" {
		return o.wasted(waste)
	}
	return o
}

// wasted is the outcome with all that it took counted as not delivered.
func (o CallOutcome) wasted(cause string) CallOutcome {
	if o.Usage.Total() > 0 {
		o.WasteCause, o.Usage.Wasted = cause, o.Usage.Total()
	}
	return o
}

// callUsage is what a call took.
func (r *run) callUsage(c callResult) Usage {
	u, _, _ := r.usageOf(r.request.Route, r.call.RequestBytes, c)
	return u
}

// usageOf is what a call took, and the bounds of its output where that is estimated. A call that was not sent, or that the
// provider turned down before it began, took nothing; what was reported counts; the rest is estimated.
func (s *Service) usageOf(route Route, requestBytes int, c callResult) (u Usage, low, high int64) {
	switch {
	case c.err != nil && c.httpStatus == 0 && c.reported == nil && !mayHaveRun(c.err):
		return Usage{Calls: 1}, 0, 0
	case c.reported == nil:
		return s.estimate(route, requestBytes, c.replyBytes)
	}
	u = *c.reported
	u.Calls, u.Source = 1, SourceReported
	// What a provider reports at the start of a stream holds no output: a call that broke off is not counted by it, even if
	// nothing was read, unless its reports are exact at any time. None for something that was read is no report either.
	broken, silent := c.err != nil || c.cut, u.Output == 0 && c.replyBytes > 0
	if broken && !route.Capabilities.UsageOnAbort || silent {
		_, received := s.estimates.tokens(route, requestBytes, c.replyBytes)
		u.Output, u.Source = max(u.Output, received), SourceEstimated
		low, high = u.Output, outputBound(route, u.Output)
	}
	u.CostMicros = route.Prices.cost(u)
	return u, low, high
}

// mayHaveRun reports whether a failure leaves it open that the provider generated something.
func mayHaveRun(err *CallError) bool {
	switch err.Class {
	case ClassAmbiguous, ClassCancelled, ClassAlreadyDone, ClassInFlightElsewhere:
		return err.Phase != PhaseNone && err.Phase != PhaseConnected
	}
	return false
}

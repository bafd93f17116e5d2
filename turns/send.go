package turns

import (
	"context"
	"errors"
	"strings"
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
}

// errFull ends a call whose reply has reached the log's limit.
var errFull = errors.New("the reply is at its size limit")

// errUnfinished ends a call whose stream ended without its terminal event, whatever else it said: that is a failure and
// never a completion.
var errUnfinished = errors.New("the stream ended without its terminal event")

// send makes one physical call and pours what comes back into the log.
func (r *run) send(ctx context.Context) callResult {
	length := int(r.log.Len())
	repeated, repeats := r.log.(*repeatLog)
	if repeats {
		length = 0 // the answer comes from its beginning
		repeated.begin()
	}
	w := &pen{log: r.log, max: r.set.MaxOutputBytes, written: length}
	var c callResult
	for delta, err := range r.generator.Generate(ctx, r.physical()) {
		if err != nil {
			c.err = asCallError(err)
			break
		}
		if err := r.take(w, &c, delta); err != nil {
			c.fail(err)
			break
		}
	}
	c.used, c.replyBytes = w.written > length, w.ownBytes
	if c.err == nil && !c.finished && !c.cut {
		c.fail(errUnfinished)
	}
	if c.err == nil {
		if err := w.end(); err != nil {
			c.fail(err)
		}
	}
	if repeats && c.err == nil && repeated.behind() {
		c.fail(errDiverged)
	}
	return c
}

// physical is the call as it goes to the provider. The lease is looked at once more when there is a connection: dialling
// may have outlasted it.
func (r *run) physical() Call {
	return Call{ID: r.call.ID, Request: r.request, Key: r.call.Key, MaySend: func() bool { return r.lease.holds(r.owner()) }}
}

// take acts on one delta.
func (r *run) take(w *pen, c *callResult, delta Delta) error {
	switch d := delta.(type) {
	case Responded:
		c.httpStatus, c.requestID = d.HTTPStatus, cleanID(d.RequestID)
	case ResponseStarted:
		c.responseID = cleanID(d.ResponseID)
		r.responseID.Store(&c.responseID) // the next checkpoint stores it
	case BlockStarted:
		return w.start(d)
	case BlockDelta:
		if err := w.write(d.Text); err != nil {
			return err
		}
		if w.full {
			return errFull
		}
	case BlockSealed:
		w.keep(d.Data)
	case BlockEnded:
		return w.end()
	case UsageReported:
		c.reported = &d.Usage
	case Finished:
		c.finished, c.stopReason = true, d.StopReason
	}
	return nil
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
	o := CallOutcome{Key: r.key, ID: r.call.ID, Class: ClassOK, Phase: PhaseDone, HTTPStatus: c.httpStatus,
		RequestID: c.requestID, ResponseID: c.responseID, Usage: r.callUsage(c)}
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

// callUsage is what a call took. A call that was not sent, or that the provider turned down before it began, took
// nothing; what was reported counts; the rest is estimated.
func (r *run) callUsage(c callResult) Usage {
	switch {
	case c.err != nil && c.httpStatus == 0 && c.reported == nil && !mayHaveRun(c.err):
		return Usage{Calls: 1}
	case c.reported == nil:
		return EstimateUsage(r.call.RequestBytes, c.replyBytes)
	}
	u := *c.reported
	u.Calls, u.Source = 1, SourceReported
	// What a provider reports at the start of a stream holds no output: a call that broke off is not counted by it, even if
	// nothing was read. None for something that was read is no report either.
	broken, silent := c.err != nil || c.cut, u.Output == 0 && c.replyBytes > 0
	if broken || silent {
		u.Output, u.Source = max(u.Output, EstimateTokens(c.replyBytes)), SourceEstimated
	}
	return u
}

// mayHaveRun reports whether a failure leaves it open that the provider generated something.
func mayHaveRun(err *CallError) bool {
	switch err.Class {
	case ClassAmbiguous, ClassCancelled, ClassAlreadyDone, ClassInFlightElsewhere:
		return err.Phase != PhaseNone && err.Phase != PhaseConnected
	}
	return false
}

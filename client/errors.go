package client

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

var (
	// ErrNoRecord is returned by Resume if no turn is in flight.
	ErrNoRecord = errors.New("no turn is in flight")
	// ErrGaveUp is part of the error of a stream whose tries are used up. The turn can still be sent again under its id.
	ErrGaveUp = errors.New("gave up")
	// ErrNotAgain is returned by Stream.Again if the way the reply ended does not advise to send the same id again.
	ErrNotAgain = errors.New("sending the same turn again does not help")
	// errCut is a stream that ended in good order, but before its reply did.
	errCut = errors.New("the stream ended before a terminal event")
	// errSilent is a stream on which nothing has come for too long.
	errSilent = errors.New("the stream was silent for too long")
)

// Error is a failure by the server's word or by the link's.
type Error struct {
	Code codes.Code
	// Reason is unspecified if the failure did not come from turnd, but from what lies between.
	Reason turnsv1.ErrorReason
	// Advice is never unspecified: a failure that carries none has the one that its code suggests.
	Advice turnsv1.RetryAdvice
	// Delay is how long the server asks to wait; 0 if it does not say.
	Delay time.Duration
	// Metadata holds what goes with Reason, such as the turn that keeps a conversation busy.
	Metadata map[string]string

	err error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Reason == turnsv1.ErrorReason_ERROR_REASON_UNSPECIFIED {
		return e.err.Error()
	}
	return fmt.Sprintf("%s: %s", strings.TrimPrefix(e.Reason.String(), "ERROR_REASON_"), status.Convert(e.err).Message())
}

// Unwrap gives the error of gRPC.
func (e *Error) Unwrap() error { return e.err }

// fromTurnd tells whether turnd itself has answered.
func (e *Error) fromTurnd() bool { return e.Reason != turnsv1.ErrorReason_ERROR_REASON_UNSPECIFIED }

// settles tells whether the failure is turnd's last word on the turn. Who the caller is, is another matter: with the right
// key the turn may turn out to be running.
func (e *Error) settles() bool {
	switch {
	case !e.fromTurnd(), sameID(e.Advice):
		return false
	case e.Code == codes.Unauthenticated, e.Code == codes.PermissionDenied:
		return false
	}
	return e.Reason != turnsv1.ErrorReason_ERROR_REASON_INVALID_CURSOR
}

// sameID tells advices to send the turn again under its id.
func sameID(a turnsv1.RetryAdvice) bool {
	return a == turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_NOW || a == turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_AFTER_WAIT
}

// asError reads an error of a call.
func asError(err error) *Error {
	if errors.Is(err, io.EOF) {
		err = errCut
	}
	if errors.Is(err, errCut) || errors.Is(err, errSilent) || errors.Is(err, ErrOutOfStep) {
		return &Error{Code: codes.Unavailable, Advice: turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_NOW, err: err}
	}
	if errors.Is(err, ErrReplyTooLarge) {
		return &Error{Code: codes.ResourceExhausted, Advice: turnsv1.RetryAdvice_RETRY_ADVICE_DO_NOT_RETRY, err: err}
	}
	st := status.Convert(err)
	e := &Error{Code: st.Code(), err: err}
	e.readDetails(st)
	if e.Advice == turnsv1.RetryAdvice_RETRY_ADVICE_UNSPECIFIED {
		e.Advice = adviceFor(e.Code)
	}
	return e
}

func (e *Error) readDetails(st *status.Status) {
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() != "turnd" {
				continue
			}
			// Values of a later version read as unspecified; then the code has to do.
			e.Reason = turnsv1.ErrorReason(turnsv1.ErrorReason_value["ERROR_REASON_"+d.GetReason()])
			e.Advice = turnsv1.RetryAdvice(turnsv1.RetryAdvice_value["RETRY_ADVICE_"+d.GetMetadata()["retry"]])
			e.Metadata = d.GetMetadata()
		case *errdetails.RetryInfo:
			e.Delay = max(0, d.GetRetryDelay().AsDuration())
		}
	}
}

// adviceFor is the advice for a failure of the link: proxies, transports and grpc itself do not know ours. Sending the
// same id again is safe whatever happened, so only codes that would stay as they are do without it.
func adviceFor(c codes.Code) turnsv1.RetryAdvice {
	switch c {
	case codes.Unavailable, codes.Unknown, codes.Internal, codes.Aborted, codes.Canceled, codes.DeadlineExceeded:
		return turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_AFTER_WAIT
	default:
		return turnsv1.RetryAdvice_RETRY_ADVICE_DO_NOT_RETRY
	}
}

package turns

import (
	"errors"
	"fmt"
	"time"
)

// Code is the machine-readable reason of an Error. The list is closed and is the wire's: the server maps each to one
// status, one reason and one advice.
type Code string

// The codes.
const (
	CodeInvalidField        Code = "INVALID_FIELD"
	CodeContentEmpty        Code = "CONTENT_EMPTY"
	CodeContentTooLarge     Code = "CONTENT_TOO_LARGE"
	CodePromptTooLarge      Code = "PROMPT_TOO_LARGE"
	CodeUnknownModel        Code = "UNKNOWN_MODEL"
	CodeInvalidCursor       Code = "INVALID_CURSOR"
	CodeInvalidToolResult   Code = "INVALID_TOOL_RESULT"
	CodeNotFound            Code = "NOT_FOUND"
	CodeTurnReused          Code = "TURN_ID_REUSED"
	CodeConversationUsed    Code = "CONVERSATION_ID_REUSED"
	CodeDeleted             Code = "CONVERSATION_DELETED"
	CodeTurnDeleted         Code = "TURN_DELETED"
	CodeBusy                Code = "CONVERSATION_BUSY"
	CodeWaitingForTools     Code = "WAITING_FOR_TOOLS"
	CodeNoProgress          Code = "NO_PROGRESS"
	CodeCapReached          Code = "CAP_REACHED"
	CodeWrongState          Code = "WRONG_STATE"
	CodeReplyChanged        Code = "REPLY_CHANGED"
	CodeConflict            Code = "CONFLICT"
	CodeStaleEpoch          Code = "STALE_EPOCH"
	CodeRateLimited         Code = "RATE_LIMITED"
	CodeQuotaExceeded       Code = "QUOTA_EXCEEDED"
	CodeOverloaded          Code = "OVERLOADED"
	CodeStoreUnavailable    Code = "STORE_UNAVAILABLE"
	CodeDraining            Code = "DRAINING"
	CodeUnauthenticated     Code = "UNAUTHENTICATED"
	CodeIdentityUnavailable Code = "IDENTITY_UNAVAILABLE"
	CodeScopeMissing        Code = "SCOPE_MISSING"
	CodeSuspended           Code = "SUSPENDED"
	CodeUnimplemented       Code = "UNIMPLEMENTED"
	CodeInternal            Code = "INTERNAL"
)

// Error is what every operation of this package fails with, apart from a context's own error. Its text is made for
// people and holds no content, key or token; the cause it wraps is for the log alone.
type Error struct {
	Code Code
	// Field is the request's field at fault, as a client writes it, for example "input.content".
	Field string
	// Problem says what is wrong and what to do.
	Problem string
	// RetryAfter is how long to wait before the same request can succeed; zero where waiting doesn't matter.
	RetryAfter time.Duration
	// Final says that the same request can't succeed later either, although its code mostly means that it can.
	Final bool
	// Meta holds facts that clients act on, by the names the wire documents.
	Meta map[string]string

	cause error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Field != "" {
		return fmt.Sprintf("%s: %s", e.Field, e.Problem)
	}
	return e.Problem
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.cause }

// Is matches by code, so that errors.Is works with the sentinels below.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Problem == ""
}

// Sentinels for errors.Is.
var (
	ErrNotFound         = &Error{Code: CodeNotFound}
	ErrTurnReused       = &Error{Code: CodeTurnReused}
	ErrBusy             = &Error{Code: CodeBusy}
	ErrDeleted          = &Error{Code: CodeDeleted}
	ErrTurnDeleted      = &Error{Code: CodeTurnDeleted}
	ErrConflict         = &Error{Code: CodeConflict}
	ErrStoreUnavailable = &Error{Code: CodeStoreUnavailable}
	ErrInvalidCursor    = &Error{Code: CodeInvalidCursor}
)

// Errors of stores that Service acts on and never shows.
var (
	// ErrUnknownOutcome says that a COMMIT got no answer: the write may stand or not. The caller reads again by the ids
	// it minted and assumes neither.
	ErrUnknownOutcome = errors.New("commit of unknown outcome")
	// ErrBuried says that this worker was declared dead: its lease had run out. It goes on under a new id.
	ErrBuried = errors.New("worker was declared dead")
	// ErrUnreadable says that what is stored in a row does not decode.
	ErrUnreadable = errors.New("stored row does not decode")
)

// CodeOf is the code of an error, CodeInternal for one that is none of ours.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// metaOf are the facts of an error, nil for one that is none of ours.
func metaOf(err error) map[string]string {
	var e *Error
	if errors.As(err, &e) {
		return e.Meta
	}
	return nil
}

// Unavailable wraps a failure of the store's engine to be reached.
func Unavailable(cause error) *Error {
	return &Error{Code: CodeStoreUnavailable, Problem: "the database can't be reached; send the same request again",
		RetryAfter: time.Second, cause: cause}
}

func invalid(field, problem string) *Error {
	return &Error{Code: CodeInvalidField, Field: field, Problem: problem}
}

// NotFound says that an id is missing, or another tenant's: the two can't be told apart.
func NotFound(kind, field string) *Error {
	return &Error{Code: CodeNotFound, Field: field, Problem: "no such " + kind, Meta: map[string]string{"resource": kind}}
}

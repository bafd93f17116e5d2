package turns

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Recoverer is the part of a Generator by which a provider is asked about a call whose outcome is not known. Nothing of it
// generates or costs tokens. Which of it an endpoint serves, its Capabilities say.
type Recoverer interface {
	// Prepare makes what a call needs at its provider before it is sent, so that the provider can be asked about the call
	// although no answer to it ever came: a session, whose id is to be stored before the call leaves. An empty one says that
	// the endpoint needs none. Errors are those of Generate; nothing was generated.
	Prepare(ctx context.Context, call Call) (session string, err error)
	// Recover asks for the answer of a call that was sent: the whole of it from its beginning, or what follows a
	// Continuation. It yields what Generate yields, and ends after Finished only where the provider says that the answer is
	// whole. Usage is that of the call. A failure is one *CallError and the last thing yielded:
	//
	//   - ClassInFlightElsewhere: the provider still works on it; ask again.
	//   - ErrNotThere as its cause: the provider knows of no such answer. That is no proof that none comes.
	//   - ClassTerminal, ClassAlreadyDone: asking again does not help.
	//   - else the asking failed; ask again.
	//
	// Where the provider says how the call itself failed, that is an *OutcomeError as the cause.
	Recover(ctx context.Context, lost LostCall) iter.Seq2[Delta, error]
	// Stop asks the provider to stop a response that it makes. One that is over already is no error.
	Stop(ctx context.Context, lost LostCall) error
	// OriginOf reads which call of ours a response at an endpoint answers, by the metadata that went with the request.
	OriginOf(ctx context.Context, endpoint, responseID string) (Origin, error)
}

// Origin names what a call is made for. It is the same for every call of a turn's generation, so that the same bytes come
// out, and leads from the provider's record of a call back to its reply.
type Origin struct {
	Conversation ConversationKey
	Turn         TurnID
	Generation   int32
}

// IsZero reports an origin that names nothing.
func (o Origin) IsZero() bool { return o == Origin{} }

// LostCall is a call that was sent and whose outcome is not known.
type LostCall struct {
	ID CallID
	// Request has its route always, and its body only where that was kept.
	Request Request
	Key     string
	Origin  Origin
	// Age is the time since its row was written; 0 where it is not known.
	Age time.Duration
	// Session is what Prepare gave, ResponseID the vendor's id of the response; empty where none is known.
	Session    string
	ResponseID string
	// Continuation is that of the CallError which broke off; nil asks for the answer from its beginning.
	Continuation Continuation
}

// Continuation is an adapter's own memory of where a stream broke off. It is good in the process that made it, for one
// Recover.
type Continuation interface{ isContinuation() }

// ContinuationBase is embedded by every Continuation.
type ContinuationBase struct{}

func (ContinuationBase) isContinuation() {}

// ErrNotThere says that a provider was asked for an answer and knows of none.
var ErrNotThere = errors.New("the provider knows of no such answer")

// OutcomeError says that a provider was asked about a call and told how that had failed: as it would have, had its answer
// come. It is the Cause of the CallError of the asking.
type OutcomeError struct{ Call *CallError }

// Error implements error.
func (e *OutcomeError) Error() string {
	return "the call that was asked about had failed: " + e.Call.Error()
}

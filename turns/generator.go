package turns

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"time"
)

// Generator is the port to model providers. It makes one physical call and classifies it; what comes next after an
// outcome is decided here, by Decide, and by nobody else.
type Generator interface {
	// Routes are who can be asked for a model, the first first; at least one. An empty name is the default model, an unknown
	// one is CodeUnknownModel.
	Routes(model string) ([]Route, error)
	// Ready reports whether a route may be asked now, or how long not: its breaker is open.
	Ready(route Route) (wait time.Duration, ok bool)
	// Build makes the bytes of one request. It is pure: the same route and prompt give the same bytes on any worker.
	Build(route Route, prompt Prompt) (Request, error)
	// Generate sends the request once and yields what comes back. A call that succeeded ends after Finished; every
	// failure is one *CallError and the last thing yielded. It must write exactly one request to the wire, and must
	// release the connection on every exit, an early break included.
	Generate(ctx context.Context, call Call) iter.Seq2[Delta, error]
	Recoverer
}

// Route says who answers for a model.
type Route struct {
	// Model is the name as clients use it; Endpoint the entry of the models file; Provider the vendor, such as
	// "anthropic"; ProviderModel the name the vendor knows. Wire is the protocol that requests are built for; a route that
	// was read from the ledger has none.
	Model         string
	Endpoint      string
	Provider      string
	ProviderModel string
	// Entry is the place among the routes of the model, 0 for the first.
	Entry        int
	Wire         string
	Limits       Limits
	Capabilities Capabilities
	// Credential is a short digest of the key that is used, to tell one from another; empty without a key.
	Credential string
	// OnAmbiguous and OnPartial are the endpoint's policies, for turns that name none.
	OnAmbiguous OnAmbiguous
	OnPartial   OnPartial
	Prices      Prices
}

// Prices are for a million tokens, in the currency the operator keeps books in. Zeros are no price. Input that was read
// from or written to a cache is not charged at Input besides.
type Prices struct{ Input, Output, CacheRead, CacheWrite float64 }

// Limits bound one provider call. Zero durations are no limit of that kind, which only tests use.
type Limits struct {
	// FirstByte bounds the wait for the response's headers, Idle the silence between events, Total the whole call.
	FirstByte time.Duration
	Idle      time.Duration
	Total     time.Duration
	// WindowTokens bounds the prompt, MaxOutputTokens the reply; 0 leaves it to the adapter.
	WindowTokens    int
	MaxOutputTokens int
}

// Idempotency says what an endpoint does with the key that every call carries.
type Idempotency string

// What an endpoint does with a key. No vendor documents an enforced key on a generation endpoint, so none is assumed
// where configuration does not say it.
const (
	IdempotencyNone     Idempotency = "none"
	IdempotencyAdvisory Idempotency = "advisory"
	IdempotencyEnforced Idempotency = "enforced"
)

// Capabilities say what can be done about a call whose answer was lost.
type Capabilities struct {
	Idempotency  Idempotency
	Retention    time.Duration // how long an enforced key holds
	Resume       bool          // a stream can be continued by response id
	Lookup       bool          // a finished response can be found by an id of ours
	Cancel       bool          // a running response can be stopped by id
	Fence        bool          // a second send of the same step is refused
	UsageOnAbort bool          // usage is reported though the stream was cut
}

// Role is who speaks in a prompt.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is one turn of a prompt.
type Message struct {
	Role    Role
	Content []Block
}

// Prompt is what a model is asked: system text in its own channel, then messages from oldest to newest, the last one
// from the user.
type Prompt struct {
	Options  Options
	Messages []Message
	// Origin goes with the request where the wire has a place for it.
	Origin Origin
}

// Request is a built request.
type Request struct {
	Route Route
	// Body is sent as it is. It never appears in a log or error.
	Body []byte
	// Hash is SHA-256 of Body; BuilderVersion says which builder made it.
	Hash           [sha256.Size]byte
	BuilderVersion int
	// Healed is what had to be put right in the history, and no part of the hash: the same history heals the same way
	// anywhere. Nil is nothing.
	Healed Healed
	// Mixed says that it holds images or documents besides text.
	Mixed bool
}

// NewRequest hashes a body that an adapter built.
func NewRequest(route Route, body []byte, builderVersion int) Request {
	return Request{Route: route, Body: body, Hash: sha256.Sum256(body), BuilderVersion: builderVersion}
}

// Call is one physical request.
type Call struct {
	ID      CallID
	Request Request
	// Key goes out as Idempotency-Key.
	Key string
	// Session is what Prepare gave for this call.
	Session string
	// MaySend is asked once more when a connection is there and nothing was written yet: dialling may have taken longer
	// than a lease. False is ClassNotSent. Nil is always true.
	MaySend func() bool
}

// KeyFor derives the idempotency key of a turn's generation: the same for every retry that sends the same bytes, and
// another when the bytes differ.
func KeyFor(turn TurnID, generation int32, hash [sha256.Size]byte) string {
	return fmt.Sprintf("turnd-%s-g%d-%x", turn, generation, hash[:4])
}

// keyOf is the key of a tenant's request. Wherever there are several tenants, and where an endpoint enforces keys, it is
// told apart by conversation too, which hides the tenant: the same turn id with the same words under another tenant must
// not be answered with this one's reply, not even by a gateway that keeps to keys unasked. So is it by endpoint for the
// further entries of a route, though two vendors be sent the same bytes.
func keyOf(tenant Tenant, o Origin, request Request) string {
	hash := request.Hash
	if r := request.Route; tenant != DefaultTenant || r.Entry > 0 || r.Capabilities.Idempotency == IdempotencyEnforced {
		mixed := append(o.Conversation[:], r.Endpoint...)
		hash = sha256.Sum256(append(append(mixed, 0), hash[:]...))
	}
	return KeyFor(o.Turn, o.Generation, hash)
}

// Delta is one thing a provider said. The set is closed: Responded, ResponseStarted, BlockStarted, BlockDelta,
// BlockSealed, BlockEnded, UsageReported, Finished.
type Delta interface{ isDelta() }

// Responded says that a response's headers came with a good status.
type Responded struct {
	HTTPStatus int
	// RequestID is the vendor's id of the request, from a header; may be empty.
	RequestID string
	// Extra is how many further requests a gateway says that it made for this one.
	Extra int
}

// ResponseStarted carries the vendor's id of the response as soon as it is known.
type ResponseStarted struct{ ResponseID string }

// BlockStarted begins the next block of content. ToolUseID and ToolName go with KindToolUse. Redacted goes with
// KindThinking: the vendor shows nothing of it. Type is the vendor's own word: of KindOpaque for what it is, of KindRefusal
// for the category.
type BlockStarted struct {
	Kind      BlockKind
	ToolUseID string
	ToolName  string
	Redacted  bool
	Type      string
}

// BlockDelta is more of the open block: whole runes, without NUL.
type BlockDelta struct{ Text string }

// BlockSealed gives the seal of the open block: what its vendor wants to see again with it, such as a signature. Data is
// the adapter's own, valid UTF-8 without NUL; nobody else reads it, and it is never shown. A later one replaces it.
type BlockSealed struct{ Data string }

// BlockEnded ends the open block.
type BlockEnded struct{}

// UsageReported replaces what was reported before in this call.
type UsageReported struct{ Usage Usage }

// Finished is the vendor's terminal event: the reply is whole. Nothing follows it.
type Finished struct{ StopReason StopReason }

func (Responded) isDelta()       {}
func (ResponseStarted) isDelta() {}
func (BlockStarted) isDelta()    {}
func (BlockDelta) isDelta()      {}
func (BlockSealed) isDelta()     {}
func (BlockEnded) isDelta()      {}
func (UsageReported) isDelta()   {}
func (Finished) isDelta()        {}

// CallClass is what became of a provider call.
type CallClass string

// The classes. A failure is classified once, on transport phase, status and error code together.
const (
	ClassOK                CallClass = "ok"                  // a terminal event came
	ClassNotSent           CallClass = "not_sent"            // known not to have been sent
	ClassTransient         CallClass = "transient"           // the provider says it failed, and trying again may help
	ClassThrottled         CallClass = "throttled"           // wait first
	ClassInFlightElsewhere CallClass = "in_flight_elsewhere" // the same work is running there
	ClassAlreadyDone       CallClass = "already_done"        // the same work is done there
	ClassAmbiguous         CallClass = "ambiguous"           // sent, and the outcome is unknown
	ClassTerminal          CallClass = "terminal"            // trying again does not help
	ClassCancelled         CallClass = "cancelled"           // we stopped it
)

// CallPhase is how far a call got on the wire.
type CallPhase string

// The phases, in order.
const (
	PhaseNone      CallPhase = "none"      // no connection
	PhaseConnected CallPhase = "connected" // a connection, nothing written
	PhaseWritten   CallPhase = "written"   // the request was written, in whole or in part
	PhaseHeaders   CallPhase = "headers"   // a status came
	PhaseBody      CallPhase = "body"      // some of the stream was read
	PhaseDone      CallPhase = "done"      // the terminal event was read
)

// CallError is how a provider call failed.
type CallError struct {
	Class CallClass
	Phase CallPhase
	// HTTPStatus is 0 if none came.
	HTTPStatus int
	// Code is the vendor's own code, at most 64 bytes; never its text.
	Code string
	// RetryAfter is how long the vendor asked to wait, if HasRetryAfter.
	RetryAfter    time.Duration
	HasRetryAfter bool
	RequestID     string
	// Extra is as in Responded.
	Extra int
	// Timeout says that one of our limits ended it.
	Timeout bool
	// Continuation is what Recover goes on from in this process; nil if it would begin anew.
	Continuation Continuation
	// Cause is for the log; it holds no content.
	Cause error
}

// Error implements error. It names class, phase, status and the vendor's code.
func (e *CallError) Error() string {
	return fmt.Sprintf("provider call: class=%s phase=%s status=%d code=%q", e.Class, e.Phase, e.HTTPStatus, e.Code)
}

// Unwrap gives the cause.
func (e *CallError) Unwrap() error { return e.Cause }

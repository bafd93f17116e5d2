package turns

import "time"

// UserTurn is a stored user turn.
type UserTurn struct {
	Conversation ConversationID
	ID           TurnID
	// Parent is the row above it; zero at a root.
	Parent RowID
	// Seq is its place in the conversation, made by the server, growing.
	Seq     int64
	Content []Block
	// Options are the options as sent.
	Options Options
	// Generation is the newest generation of its replies: 1, and one more at each regenerate.
	Generation int32
	// Erased says that the turn was deleted: only its id and the hash of its input are left.
	Erased     bool
	CreateTime time.Time
}

// Reply is one attempt to answer a user turn: one row.
type Reply struct {
	Conversation ConversationID
	ID           ReplyID
	Turn         TurnID
	Status       Status
	Reason       Reason
	// Attempt is 1 for the first row of its user turn, growing.
	Attempt    int32
	Generation int32
	// Epoch grows by one at each takeover; every write of the reply carries it.
	Epoch int64
	Owner WorkerID
	// Options are what its request was built with, where that differs from the turn's own filled up by the conversation's
	// defaults of DefaultsVersion. With version 0 no defaults are filled in.
	Options         Options
	DefaultsVersion int32
	// Settled says that its last owner has said all it knew of it, and CancelRequested that a stop was asked for.
	Settled         bool
	CancelRequested bool
	// LaterTurn says that a later turn of the conversation was started, so sending its turn again makes no attempt.
	LaterTurn bool
	// DisconnectGrace is how long its last follower may be gone before it is stopped; zero: it goes on. FollowedLeft is how
	// long a follower on another worker has been announced for (negative or zero: none is).
	DisconnectGrace time.Duration
	FollowedLeft    time.Duration
	// Content is the stored log; nil where a statement did not ask for it.
	Content []Piece
	// Length is the length of the stored log.
	Length     uint32
	StopReason StopReason
	// Endpoint, Provider and Model say who is asked: the endpoint's name in the models file, the vendor, and the model
	// as the client named it.
	Endpoint string
	Provider string
	Model    string
	Usage    Usage
	// Calls counts the provider calls of this user turn and generation up to now, and Waited the time spent waiting
	// between them: the budget, which holds over all attempts and workers.
	Calls  int
	Waited time.Duration
	// RequestHash is of the bytes that were sent; WindowStart is the first row of the path that was in them.
	RequestHash []byte
	WindowStart RowID
	// BuilderVersion says which builder made the request, ProviderModel the name the vendor knows, and ResponseID is the
	// vendor's id of the response, empty while unknown.
	BuilderVersion int
	ProviderModel  string
	ResponseID     string
	// OnAmbiguous and OnPartial are the policies it is made under.
	OnAmbiguous OnAmbiguous
	OnPartial   OnPartial
	// Traceparent is the span context of its claim, or of its last takeover, as W3C has it in text; empty without one.
	Traceparent string
	// ReplacedBy is the reply that took its place; zero if none did.
	ReplacedBy ReplyID
	// Continues is how much of its log comes from the reply whose place it took. It is known to the worker that runs it.
	Continues uint32
	// ProviderCode is the vendor's own code of the failure that ended it, at most 64 bytes.
	ProviderCode string
	// RetryAfter is how long the provider asked to wait when it was abandoned, counted from EndTime.
	RetryAfter time.Duration
	CreateTime time.Time
	// EndTime is zero while in flight or held.
	EndTime time.Time
	// LeaseLeft is how long the owner's lease still holds by the database's clock (negative: expired), and OwnerDead
	// says that the owner is buried or unknown. Both only while in flight.
	LeaseLeft time.Duration
	OwnerDead bool
	// Age is the time since the claim by the database's clock.
	Age time.Duration
}

// Replayable reports a reply that has ended, or is held, and was read with all that is stored of it.
func (r Reply) Replayable() bool { return r.Status.Terminal() && (r.Length == 0 || len(r.Content) > 0) }

// StopReason is why the model stopped. Empty: not complete, or the provider said something new.
type StopReason string

// The stop reasons.
const (
	StopEndTurn         StopReason = "end_turn"
	StopToolUse         StopReason = "tool_use"
	StopLength          StopReason = "length"
	StopSequence        StopReason = "stop_sequence"
	StopRefusal         StopReason = "refusal"
	StopContentFilter   StopReason = "content_filter"
	StopContextExceeded StopReason = "context_exceeded"
	StopPause           StopReason = "pause"
)

// TokenSource says who counted tokens. Empty: nothing counted yet.
type TokenSource string

// The sources of token counts.
const (
	SourceReported  TokenSource = "reported"  // by the provider
	SourceEstimated TokenSource = "estimated" // by turnd, from bytes
)

// Usage counts tokens. Input includes cache reads and writes; output includes reasoning.
type Usage struct {
	Input      int64
	CacheRead  int64
	CacheWrite int64
	Output     int64
	Reasoning  int64
	// Source is SourceEstimated when any part is.
	Source TokenSource
	// Wasted is the part of input and output that was paid for and not delivered.
	Wasted int64
	// CostMicros is in millionths of the price table's currency.
	CostMicros int64
	// Calls counts physical requests.
	Calls int32
}

// Total is input and output together.
func (u Usage) Total() int64 { return u.Input + u.Output }

// Add sums two usages; the sum is estimated if either part is.
func (u Usage) Add(v Usage) Usage {
	u.Input += v.Input
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.Output += v.Output
	u.Reasoning += v.Reasoning
	u.Wasted += v.Wasted
	u.CostMicros += v.CostMicros
	u.Calls += v.Calls
	if u.Source == "" || v.Source == SourceEstimated {
		u.Source = v.Source
	}
	return u
}

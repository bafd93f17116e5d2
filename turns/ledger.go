package turns

import (
	"context"
	"time"
)

// Ledger is the part of a Store that keeps what every physical request to a provider was, and what it took.
type Ledger interface {
	// NoteCalls adds what became known of open calls before or while they are sent, or how far they came, under the fences of their replies, which
	// must be in flight.
	NoteCalls(ctx context.Context, notes []CallNote) ([]NoteResult, error)
	// ReadCall reads an open call with the body that was kept for it. A missing or closed one is CodeNotFound.
	ReadCall(ctx context.Context, key ConversationKey, id CallID) (OpenCall, error)
	// ListCalls reads calls of a tenant, oldest first.
	ListCalls(ctx context.Context, q LedgerQuery) ([]LedgerCall, error)
	// SumCalls sums the calls of a tenant. A call that is open counts, with no tokens yet.
	SumCalls(ctx context.Context, f LedgerFilter) (LedgerSums, error)
}

// NewCall is a row of the ledger, written before its request is sent.
type NewCall struct {
	ID CallID
	// Number is 1 for the reply's first call, growing; First says that it is the first of its turn and generation.
	Number int
	First  bool
	// Layer is who made the work again; a store takes what MadeBy says.
	Layer Layer
	Key   string
	// Route is who is asked, RequestHash and BuilderVersion say what was built.
	Route          Route
	RequestHash    []byte
	BuilderVersion int
	RequestBytes   int
	// Body is kept while the call is open, where it may have to be sent again to the byte; nil keeps none. What closes the
	// call drops it.
	Body []byte
	// Unsent says that the call is not to be taken as sent before a CallNote says so.
	Unsent bool
}

// CallNote adds to an open call.
type CallNote struct {
	Fence Fence
	// Tenant is as in CallPermit.
	Tenant Tenant
	Call   CallID
	// Session is what Recoverer.Prepare gave; empty leaves what is stored.
	Session string
	// Submitted marks that the call leaves now.
	Submitted bool
	// Phase, HTTPStatus and RequestID are how far the call came, of one whose outcome stays unknown; zero leaves what is stored.
	// What closes the call without knowing them leaves them, and a phase also where it only knows that the call was written.
	Phase      CallPhase
	HTTPStatus int
	RequestID  string
}

// NoteResult answers one CallNote.
type NoteResult struct {
	// Noted is false if the fence does not hold, a stop was asked for, or the call is closed; nothing was written then.
	Noted bool
}

// CallOutcome closes a row of the ledger.
type CallOutcome struct {
	Key ConversationKey
	// Tenant is as in CallPermit.
	Tenant     Tenant
	ID         CallID
	Class      CallClass
	Phase      CallPhase
	HTTPStatus int
	RequestID  string
	ResponseID string
	Usage      Usage
	// WasteCause says why its tokens were not delivered; empty if they were.
	WasteCause string
	// Extra is how many further requests a gateway says that it made for it, at an unknown price.
	Extra int
	// Low and High bound Usage.Output where it is estimated; both zero where it was reported.
	Low  int64
	High int64
}

// OpenCall is a ledger row without an outcome.
type OpenCall struct {
	ID     CallID
	Number int
	First  bool
	Layer  Layer
	Key    string
	// Endpoint, Provider, Model, ProviderModel and Credential are those of its Route.
	Endpoint       string
	Provider       string
	Model          string
	ProviderModel  string
	Credential     string
	RequestHash    []byte
	BuilderVersion int
	RequestBytes   int
	// HasBody says that a body is kept, which only ReadCall reads into Body.
	HasBody bool
	Body    []byte
	// Submitted says that it may have been sent.
	Submitted bool
	Session   string
	// ResponseID is, of a reply's newest call, also what a checkpoint has said since the call began.
	ResponseID string
	// Age is the time since the row was written, by the database's clock.
	Age time.Duration
}

// LedgerFilter chooses calls of a tenant. A zero field chooses all.
type LedgerFilter struct {
	Tenant   Tenant
	Key      *ConversationKey
	Turn     TurnID
	From     time.Time
	Before   time.Time
	Provider string
	Model    string
	Endpoint string
	Class    CallClass
	Layer    Layer
	Try      CallTry
	// Wasted chooses calls of which tokens were wasted, Open those without an outcome.
	Wasted bool
	Open   bool
}

// CallTry tells the first call of a user turn and generation from the others. Empty: either.
type CallTry string

// The tries.
const (
	TryFirst CallTry = "first"
	TryRetry CallTry = "retry"
)

// LedgerQuery is one page of ListCalls: those after AfterTime, or at it with a greater id.
type LedgerQuery struct {
	Filter    LedgerFilter
	AfterTime time.Time
	AfterID   CallID
	Limit     int
}

// begun is the query with its two beginnings made one, the later. A database looks for only one of two in its index and then reads all
// that is between them.
func (q LedgerQuery) begun() LedgerQuery {
	if q.AfterTime.Before(q.Filter.From) {
		q.AfterTime, q.AfterID = q.Filter.From, CallID{} // every call at that time has a greater id
	} else {
		q.Filter.From = q.AfterTime
	}
	return q
}

// LedgerCall is a row of the ledger.
type LedgerCall struct {
	ID           CallID
	Conversation ConversationID
	Turn         TurnID
	Reply        ReplyID
	Epoch        int64
	Number       int
	First        bool
	Layer        Layer
	Endpoint     string
	Provider     string
	Model        string
	// Class is empty while it is open.
	Class      CallClass
	Phase      CallPhase
	HTTPStatus int
	Key        string
	RequestID  string
	ResponseID string
	Usage      Usage
	WasteCause string
	Extra      int
	Low        int64
	High       int64
	CreateTime time.Time
	// EndTime is zero while it is open.
	EndTime time.Time
}

// LedgerSums are sums over calls, those that were a turn's first apart from the others.
type LedgerSums struct {
	First      int64
	Retry      int64
	FirstUsage Usage
	RetryUsage Usage
	// Layers are what the others were by who made the work again; nil if there are none.
	Layers map[Layer]Usage
	// Wasted are tokens by cause, and WastedCost what the calls cost whose tokens those are; nil if none were wasted.
	Wasted     map[string]int64
	WastedCost map[string]int64
}

// Add adds calls that are alike, whose number is that of their usage.
func (s *LedgerSums) Add(layer Layer, wasteCause string, u Usage) {
	if layer == LayerFirst {
		s.First, s.FirstUsage = s.First+int64(u.Calls), s.FirstUsage.Add(u)
	} else {
		s.Retry, s.RetryUsage = s.Retry+int64(u.Calls), s.RetryUsage.Add(u)
		if s.Layers == nil {
			s.Layers = map[Layer]Usage{}
		}
		s.Layers[layer] = s.Layers[layer].Add(u)
	}
	if u.Wasted == 0 {
		return
	}
	if s.Wasted == nil {
		s.Wasted, s.WastedCost = map[string]int64{}, map[string]int64{}
	}
	s.Wasted[wasteCause] += u.Wasted
	s.WastedCost[wasteCause] += u.CostMicros
}

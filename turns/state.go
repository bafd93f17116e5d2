package turns

// Status is where a reply stands.
type Status string

// The states of a reply. Transitions lists every way from one to another.
const (
	// StatusInFlight is a claim: the row was inserted before any money was spent, and the worker that owns it is on it.
	// It ends by its owner's hand, or by a sweep once the owner is buried or the reply's own deadline has passed.
	StatusInFlight Status = "in_flight"
	// StatusComplete is a reply whose model finished. It stays until another generation takes its place.
	StatusComplete Status = "complete"
	// StatusHeld is a reply whose outcome is unknown and which policy says must not be tried again by itself. It keeps
	// the slot until an operator, a lookup or its late owner resolves it.
	StatusHeld Status = "held"
	// StatusAbandoned is over without a result that counts. The slot is free; Reason says why.
	StatusAbandoned Status = "abandoned"
)

// Live reports whether a reply in this status takes the one slot of its user turn.
func (s Status) Live() bool { return s == StatusInFlight || s == StatusComplete || s == StatusHeld }

// Terminal reports whether a follower's stream ends at this status.
func (s Status) Terminal() bool { return s != StatusInFlight }

// Reason is why a reply was abandoned; empty for any other status.
type Reason string

// The reasons of StatusAbandoned.
const (
	ReasonLeaseExpired    Reason = "lease_expired"    // its worker was gone
	ReasonProviderError   Reason = "provider_error"   // the provider failed and the budget or patience is spent
	ReasonProviderRefused Reason = "provider_refused" // the provider refused the request, not the model
	ReasonAmbiguous       Reason = "ambiguous"        // sent, and the outcome is unknown
	ReasonEmpty           Reason = "empty"            // the model finished with nothing
	ReasonCancelled       Reason = "cancelled"        // asked to stop
	ReasonDisconnected    Reason = "disconnected"     // the last follower stayed away, where the client asked for that
	ReasonDeadline        Reason = "deadline"         // a time limit
	ReasonShutdown        Reason = "shutdown"         // its worker shut down
	ReasonSuperseded      Reason = "superseded"       // another reply took its place
	ReasonDeleted         Reason = "deleted"          // its conversation, or a turn above it, was deleted
	ReasonHeldReleased    Reason = "held_released"    // an operator gave it up
)

// Reasons are all reasons, in the order of the wire.
var Reasons = []Reason{
	ReasonLeaseExpired, ReasonProviderError, ReasonProviderRefused, ReasonAmbiguous, ReasonEmpty, ReasonCancelled,
	ReasonDisconnected, ReasonDeadline, ReasonShutdown, ReasonSuperseded, ReasonDeleted, ReasonHeldReleased,
}

// Curable reports whether sending the same turn again makes a new attempt. The others answer with what happened, and
// only a regenerate tries again.
func (r Reason) Curable() bool {
	switch r {
	case ReasonLeaseExpired, ReasonAmbiguous, ReasonShutdown, ReasonDeadline, ReasonHeldReleased, ReasonProviderError:
		return true
	}
	return false
}

// Verb names a transition.
type Verb string

// The verbs of Transitions.
const (
	VerbClaim      Verb = "claim"
	VerbCheckpoint Verb = "checkpoint"
	VerbComplete   Verb = "complete"
	VerbAbandon    Verb = "abandon"
	VerbHold       Verb = "hold"
	VerbReplace    Verb = "replace"
	VerbTakeOver   Verb = "take_over"
	VerbSweep      Verb = "sweep"
	VerbExpire     Verb = "expire"
	VerbRelease    Verb = "release"
	VerbAdopt      Verb = "adopt"
	VerbFinish     Verb = "finish"
	VerbCancel     Verb = "cancel"
	VerbRefuse     Verb = "refuse"
	VerbRevive     Verb = "revive"
	VerbSalvage    Verb = "salvage"
	VerbSettle     Verb = "settle"
	VerbSupersede  Verb = "supersede"
	VerbSelect     Verb = "select"
	VerbDelete     Verb = "delete"
)

// Actor is who may make a transition.
type Actor string

// The actors of Transitions.
const (
	ActorOwner     Actor = "owner"      // the worker that claimed it, under the guard
	ActorLastOwner Actor = "last owner" // the worker that claimed it, after it was ended from outside
	ActorWorker    Actor = "any worker"
	ActorOperator  Actor = "operator"
	ActorClient    Actor = "client"
)

// Transition is one row of the table: from a status (empty: no row yet) by a verb to a status. FromReasons and Reasons
// bound the reason before and after where the status is abandoned; empty bounds nothing.
type Transition struct {
	From        Status
	FromReasons []Reason
	Verb        Verb
	To          Status
	Reasons     []Reason
	Actor       Actor
	// When says in words what else must hold.
	When string
	// Model is the step's name in the checked model of docs/model, or why that leaves it out.
	Model string
}

// Why the model leaves rows of Transitions out.
const (
	notModelledHeld    = "not modelled: a held reply is resolved by one guarded write"
	notModelledLine    = "not modelled: one guarded write of a turn without a reply"
	notModelledDelete  = "not modelled: under the conversation's lock, which every claim needs, and nothing follows"
	notModelledReplace = "not modelled: an ending and a claim in one commit"
)

// Revivable are the reasons after which a reply that was ended from outside may come back by its last owner's hand.
var Revivable = []Reason{ReasonLeaseExpired, ReasonDeadline, ReasonShutdown, ReasonHeldReleased}

// Transitions is the one table of what may become of a reply. The stores' CHECK constraints, the tests of every pair of
// status and verb, and the picture in the docs come from it. What is not here changes nothing and is a typed error.
var Transitions = []Transition{
	{From: "", Verb: VerbClaim, To: StatusInFlight, Actor: ActorWorker, Model: "claim", When: "the slot is free, the conversation idle, the newest attempt curable, its generation not cancelled, calls left; a turn in line leaves it, lowest seq first"},
	{From: "", Verb: VerbCancel, To: StatusAbandoned, Actor: ActorClient, Model: notModelledLine, When: "the turn is in line, and leaves it so: nobody was asked", Reasons: []Reason{ReasonCancelled}},
	{From: "", Verb: VerbRefuse, To: StatusAbandoned, Actor: ActorWorker, Model: notModelledLine, When: "the turn is next in line and can never start as things stand", Reasons: []Reason{ReasonProviderRefused}},
	{From: StatusInFlight, Verb: VerbCheckpoint, To: StatusInFlight, Actor: ActorOwner, Model: "checkpoint", When: "the log only grows"},
	{From: StatusInFlight, Verb: VerbComplete, To: StatusComplete, Actor: ActorOwner, Model: "complete", When: "the provider's terminal event was read"},
	{From: StatusInFlight, Verb: VerbAbandon, To: StatusAbandoned, Actor: ActorOwner, Model: "abandon", When: "content and usage are settled in the same commit", Reasons: []Reason{
		ReasonProviderError, ReasonProviderRefused, ReasonAmbiguous, ReasonEmpty, ReasonCancelled, ReasonDisconnected, ReasonDeadline, ReasonShutdown}},
	{From: StatusInFlight, Verb: VerbHold, To: StatusHeld, Actor: ActorOwner, Model: notModelledHeld, When: "the outcome is unknown and the policy is hold"},
	{From: StatusInFlight, Verb: VerbReplace, To: StatusAbandoned, Actor: ActorWorker, Model: notModelledReplace, When: "policy retry; the new row is claimed in the same commit", Reasons: []Reason{ReasonProviderError, ReasonAmbiguous, ReasonLeaseExpired}},
	{From: StatusInFlight, Verb: VerbTakeOver, To: StatusInFlight, Actor: ActorWorker, Model: "take_over", When: "the owner is buried, and going on is free (no call was sent, nothing written), or safe (the endpoint enforces the key, or can be asked about the call), or policy wants another reply in its place; epoch + 1"},
	{From: StatusInFlight, Verb: VerbSweep, To: StatusAbandoned, Actor: ActorWorker, Model: "sweep", When: "the owner is buried", Reasons: []Reason{ReasonLeaseExpired, ReasonCancelled}},
	{From: StatusInFlight, Verb: VerbSweep, To: StatusHeld, Actor: ActorWorker, Model: notModelledHeld, When: "the owner is buried, the call was sent, and the policy is hold"},
	{From: StatusInFlight, Verb: VerbExpire, To: StatusAbandoned, Actor: ActorWorker, Model: "expire", When: "the reply's own deadline has passed, whatever its lease says", Reasons: []Reason{ReasonDeadline}},
	{From: StatusInFlight, Verb: VerbCancel, To: StatusAbandoned, Actor: ActorWorker, Model: "cancel", When: "a stop was asked for and the owner is buried or silent", Reasons: []Reason{ReasonCancelled}},
	{From: StatusHeld, Verb: VerbRelease, To: StatusAbandoned, Actor: ActorOperator, Model: notModelledHeld, When: "the operator gives it up, or a lookup learns that its call came to nothing", Reasons: []Reason{ReasonHeldReleased}},
	{From: StatusHeld, Verb: VerbAdopt, To: StatusComplete, Actor: ActorOperator, Model: notModelledHeld, When: "a lookup or an operator has the whole text"},
	{From: StatusHeld, Verb: VerbFinish, To: StatusComplete, Actor: ActorLastOwner, Model: notModelledHeld, When: "late but whole"},
	{From: StatusHeld, Verb: VerbCancel, To: StatusAbandoned, Actor: ActorClient, Model: notModelledHeld, When: "at once", Reasons: []Reason{ReasonCancelled}},
	{From: StatusAbandoned, FromReasons: Revivable, Verb: VerbRevive, To: StatusInFlight, Actor: ActorLastOwner, Model: "revive", When: "still streaming, same generation, not cancelled, slot free; epoch + 1"},
	{From: StatusAbandoned, FromReasons: Revivable, Verb: VerbSalvage, To: StatusComplete, Actor: ActorLastOwner, Model: "salvage", When: "finished, same generation, not cancelled, slot free"},
	{From: StatusAbandoned, Verb: VerbSettle, To: StatusAbandoned, Actor: ActorLastOwner, Model: "settle", When: "once: partial content, usage, ledger"},
	{From: StatusComplete, Verb: VerbSupersede, To: StatusAbandoned, Actor: ActorClient, Model: "supersede", When: "with the new live reply in the same commit", Reasons: []Reason{ReasonSuperseded}},
	{From: StatusAbandoned, FromReasons: []Reason{ReasonSuperseded}, Verb: VerbSelect, To: StatusComplete, Actor: ActorClient, Model: "select_reply", When: "a reply that was whole"},
	{From: StatusInFlight, Verb: VerbDelete, To: StatusAbandoned, Actor: ActorClient, Model: notModelledDelete, When: "its conversation, or a turn above it, is deleted; the row itself goes after that", Reasons: []Reason{ReasonDeleted}},
	{From: StatusHeld, Verb: VerbDelete, To: StatusAbandoned, Actor: ActorClient, Model: notModelledDelete, When: "as one in flight", Reasons: []Reason{ReasonDeleted}},
}

// Allowed finds the transition from a status by a verb to a status and reason; ok is false where the table has none.
func Allowed(from Status, fromReason Reason, verb Verb, to Status, reason Reason) (t Transition, ok bool) {
	for _, t := range Transitions {
		if t.From == from && t.Verb == verb && t.To == to && bounds(t.FromReasons, fromReason) && bounds(t.Reasons, reason) {
			return t, true
		}
	}
	return Transition{}, false
}

func bounds(set []Reason, r Reason) bool {
	if len(set) == 0 {
		return true
	}
	for _, s := range set {
		if s == r {
			return true
		}
	}
	return false
}

package turns

import (
	"context"
	"time"
)

// Held is the part of a Store by which replies of unknown outcome are replaced, or wait and are resolved.
type Held interface {
	// Replace ends a reply as abandoned, under its fence, and claims the next one of its turn and generation in the same
	// commit; the old one names the new as its successor. It is won only if both would be. The same again is not won again.
	// A reply that is replaced as lease_expired is not settled: its last owner may still have more of it.
	Replace(ctx context.Context, r Replacement) (ClaimResult, error)
	// HeldReplies reads a tenant's held replies without content, oldest first. Options that can't be read are left out.
	HeldReplies(ctx context.Context, q HeldQuery) ([]HeldReply, error)
	// DueLookups takes held replies whose lookup is due, at most limit: each is given to one caller, and is due again after
	// a wait that doubles from base with each time, up to most, of which a random part of up to one half is left out. One
	// that nobody can be asked for is never due.
	DueLookups(ctx context.Context, base, most time.Duration, limit int) ([]HeldReply, error)
	// WakeLookup makes the lookup of a turn's held reply due now, if it is of the generation (0: whichever). Woken is false if
	// there is none, or nobody can be asked for it.
	WakeLookup(ctx context.Context, key ConversationKey, turn TurnID, generation int32) (woken bool, err error)
	// ResolveHeld ends a held reply. It is won only if the reply is held under the fence's epoch, and for VerbFinish under
	// its owner, and Content extends what is stored; to be completed it must also not have been asked to stop. Open calls are
	// closed as given, and those not named as ambiguous, estimated, as with an ending. A completed reply is settled; what is
	// given up is as settled as it was. What the table has not is CodeWrongState.
	ResolveHeld(ctx context.Context, r Resolution) (EndResult, error)
}

// HeldQuery is one page of HeldReplies: those created after AfterTime, or at it with a greater id.
type HeldQuery struct {
	Tenant    Tenant
	AfterTime time.Time
	AfterID   ReplyID
	Limit     int
}

// HeldReply is a held reply with its open calls.
type HeldReply struct {
	Key ConversationKey
	// Reply has no content. Its usage is that of its closed calls.
	Reply     Reply
	OpenCalls []OpenCall
	// Lookups counts how often it was asked for.
	Lookups int
}

// Resolution is one ResolveHeld.
type Resolution struct {
	// Fence has an owner with VerbFinish alone.
	Fence Fence
	// Verb is VerbRelease, VerbAdopt, VerbFinish or VerbCancel, and Status and Reason what it leads to.
	Verb       Verb
	Status     Status
	Reason     Reason
	Content    []Piece
	Length     uint32
	StopReason StopReason
	Usage      Usage
	ResponseID string
	Calls      []CallOutcome
}

package turns

import (
	"context"
	"time"
)

// Spending is what the calls of a conversation or a tenant took in all, by the ledger.
type Spending struct {
	// Turns counts first calls: one for each turn and generation that was begun.
	Turns int64
	// Tokens are input and output together.
	Tokens int64
	// CostMicros is in millionths of the price table's currency.
	CostMicros int64
	// Time is how long the calls took together.
	Time time.Duration
}

// Spendings is the part of a Store that sums the ledger without reading it anew each time. The sum up to a place in it is
// kept; what came after is added when it is asked for, at most SpendingReach calls of it. Where much has come the kept sum
// moves on, by a write that is guarded by the place it was at. It passes a call once that is closed and a minute old, so
// that none comes in behind it from a worker whose clock is slow; and one that is open still once it is an hour old. What
// becomes of a call after it was passed is not in the sum.
type Spendings interface {
	// ConversationSpent sums the calls of a conversation; one that does not exist has spent nothing.
	ConversationSpent(ctx context.Context, key ConversationKey) (Spending, error)
	// TenantSpent sums the calls of a tenant.
	TenantSpent(ctx context.Context, tenant Tenant) (Spending, error)
}

// ConversationTail and TenantTail are how many calls that may be passed are left unsummed, and SpendingReach is how many are
// read at most.
const (
	ConversationTail = 16
	TenantTail       = 500
	SpendingReach    = 10_000
)

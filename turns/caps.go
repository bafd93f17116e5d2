package turns

import (
	"context"
	"strconv"
	"time"
)

// Caps bound what may be spent in all; a zero field bounds nothing. They are guards against what runs away and no quotas: a
// reply that was begun below a cap runs to its end, and so do those that are begun side by side.
type Caps struct {
	Turns  int64
	Tokens int64
	// CostMicros is in millionths of the price table's currency.
	CostMicros int64
	// Time bounds the time of all provider calls together.
	Time time.Duration
}

// The scopes of caps and limits.
const (
	scopeConversation = "conversation"
	scopeSubject      = "subject"
	scopeTenant       = "tenant"
)

// check refuses what has reached a cap with CodeCapReached. The number of turns counts only for another one, which a further
// attempt of a turn is not.
func (c Caps) check(s Spending, scope string, another bool) error {
	for _, of := range []struct {
		cap          string
		spent, limit int64
	}{
		{"turns", s.Turns, c.Turns}, {"tokens", s.Tokens, c.Tokens}, {"cost", s.CostMicros, c.CostMicros},
		{"time", s.Time.Milliseconds(), c.Time.Milliseconds()},
	} {
		if of.limit > 0 && of.spent >= of.limit && (another || of.cap != "turns") {
			return &Error{Code: CodeCapReached, Problem: "the " + scope + " has used up its cap on " + of.cap + "; nothing more is made in it unless an operator raises that",
				Meta: map[string]string{"cap": of.cap, "scope": scope, "limit": strconv.FormatInt(of.limit, 10), "spent": strconv.FormatInt(of.spent, 10)}}
		}
	}
	return nil
}

// checkCaps refuses an attempt where the conversation or its tenant has reached a cap. What no cap needs is not read. Once a
// reply was stopped for the turn it is not asked again: what that reply took would count, and leave neither of the two.
func (a *arrival) checkCaps(ctx context.Context, st Standing) error {
	if a.stopped {
		return nil
	}
	another := a.regenerate != nil || st.Newest == nil || st.Newest.Calls == 0
	if caps := a.set.ConversationCaps; caps != (Caps{}) && st.Exists {
		spent, err := a.store.ConversationSpent(ctx, a.key)
		if err != nil {
			return err
		}
		if err := caps.check(spent, scopeConversation, another); err != nil {
			return err
		}
	}
	if caps := a.set.TenantCaps; caps != (Caps{}) {
		spent, err := a.store.TenantSpent(ctx, a.caller.Tenant)
		if err != nil {
			return err
		}
		return caps.check(spent, scopeTenant, another)
	}
	return nil
}

package turns

import (
	"math"
	"time"
)

// maxBackoff caps the growing wait between calls.
const maxBackoff = 16 * time.Second

// Outcome is what is known of a provider call once it is over.
type Outcome struct {
	// Err is nil if the provider's terminal event was read, and StopReason is then what that said.
	Err        *CallError
	StopReason StopReason
	// Content says that the reply's log holds content; Used that any of its offsets were used, so that followers may
	// have seen bytes.
	Content bool
	Used    bool
}

// Budget is what a turn's generation may still spend on calls, over all its attempts and workers.
type Budget struct {
	// Calls is the number made, the one that just ended included, of at most MaxCalls.
	Calls    int
	MaxCalls int
	// Waited is the time spent between calls, of at most MaxWait.
	Waited  time.Duration
	MaxWait time.Duration
	// Base bounds the first backoff; the bound doubles with each call.
	Base time.Duration
	// Left is the time to the reply's deadline.
	Left time.Duration
}

// Action is what to do next.
type Action string

// The actions.
const (
	ActionComplete Action = "complete"
	ActionRetry    Action = "retry"
	ActionAbandon  Action = "abandon"
)

// Next is a decision.
type Next struct {
	Action Action
	// Reason goes with ActionAbandon.
	Reason Reason
	// Wait is the time before the next call, with ActionRetry.
	Wait time.Duration
	// RetryAfter is the provider's own wish that outlives the reply, with ActionAbandon.
	RetryAfter time.Duration
}

// Decide says what comes after a call. It is pure: random gives a number in [0, 1) for the jitter.
//
// A further call is made only where the last one is known to have left nothing behind: it was not sent, or the provider
// itself said that it failed, and no byte of a reply was shown. An unknown outcome is never answered with a second
// request, since a timeout is not a cancellation: the provider may have finished and billed.
func Decide(o Outcome, b Budget, random func() float64) Next {
	if o.Err == nil {
		if !o.Content && !o.StopReason.saysWhy() {
			return Next{Action: ActionAbandon, Reason: ReasonEmpty}
		}
		return Next{Action: ActionComplete}
	}
	switch o.Err.Class {
	case ClassNotSent, ClassTransient, ClassThrottled:
		return decideCurable(o, b, random)
	case ClassTerminal:
		return Next{Action: ActionAbandon, Reason: ReasonProviderRefused}
	default:
		// Ambiguous, and work that runs or is done elsewhere: it can only be asked for, and here nobody can be asked.
		return Next{Action: ActionAbandon, Reason: ReasonAmbiguous}
	}
}

// saysWhy reports whether a reply without content is still an answer: the vendor says why there is none.
func (s StopReason) saysWhy() bool {
	switch s {
	case StopRefusal, StopContentFilter, StopLength, StopPause, StopContextExceeded:
		return true
	}
	return false
}

func decideCurable(o Outcome, b Budget, random func() float64) Next {
	abandon := Next{Action: ActionAbandon, Reason: ReasonProviderError, RetryAfter: o.Err.RetryAfter}
	if o.Used || b.Calls >= b.MaxCalls {
		return abandon
	}
	wait := backoff(b.Base, b.Calls, random)
	if o.Err.HasRetryAfter && o.Err.RetryAfter > 0 {
		wait = o.Err.RetryAfter
	}
	if wait >= b.Left || b.Waited+wait > b.MaxWait {
		return abandon
	}
	return Next{Action: ActionRetry, Wait: wait}
}

// backoff is a wait with full jitter: evenly between 0 and a bound that doubles with each call, up to maxBackoff.
func backoff(base time.Duration, calls int, random func() float64) time.Duration {
	bound := float64(base) * math.Pow(2, float64(calls-1))
	return time.Duration(random() * min(bound, float64(maxBackoff)))
}

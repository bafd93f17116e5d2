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
	// Askable says that the provider can be asked what became of the call, and Enforced that the same request under the
	// same key is no second generation there.
	Askable  bool
	Enforced bool
	// Fallback says that the model's route has a further entry that may be asked now.
	Fallback bool
	// OnAmbiguous and OnPartial are the reply's policies.
	OnAmbiguous OnAmbiguous
	OnPartial   OnPartial
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
	ActionRetry    Action = "retry"   // another call of the same reply
	ActionRepeat   Action = "repeat"  // the same request under the same key, which the endpoint answers with the same generation
	ActionAsk      Action = "ask"     // ask the provider what became of it
	ActionReplace  Action = "replace" // another reply takes this one's place
	ActionHold     Action = "hold"
	ActionAbandon  Action = "abandon"
)

// Next is a decision.
type Next struct {
	Action Action
	// Reason goes with ActionAbandon and ActionReplace.
	Reason Reason
	// Wait is the time before the next call, with ActionRetry, ActionRepeat and ActionReplace.
	Wait time.Duration
	// Fallback says that the next call goes to a further entry of the model's route, with ActionRetry.
	Fallback bool
	// Continue says that the next reply goes on from this one's content, with ActionReplace.
	Continue bool
	// RetryAfter is the provider's own wish that outlives the reply, with ActionAbandon.
	RetryAfter time.Duration
}

// Decide says what comes after a call. It is pure: random gives a number in [0, 1) for the jitter.
//
// A further call is made only where the last one is known to have left nothing behind: it was not sent, or the provider
// itself said that it failed, and no byte of a reply was shown. After content the call is another reply's. An unknown
// outcome is never answered with a silent second request, since a timeout is not a cancellation: the provider may have
// finished and billed. It is asked for where the provider can tell; else the policy says what becomes of it.
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
		return decideUnknown(o, b, random)
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

// decideCurable follows a call that is known to have failed.
func decideCurable(o Outcome, b Budget, random func() float64) Next {
	abandon := Next{Action: ActionAbandon, Reason: ReasonProviderError, RetryAfter: o.Err.RetryAfter}
	if b.Calls >= b.MaxCalls {
		return abandon
	}
	if o.Fallback && !o.Used {
		return Next{Action: ActionRetry, Fallback: true}
	}
	wait, ok := b.wait(o.Err, random)
	switch {
	case !ok:
		return abandon
	case !o.Used:
		return Next{Action: ActionRetry, Wait: wait}
	case o.Content && o.OnPartial == OnPartialContinue:
		return Next{Action: ActionReplace, Reason: ReasonProviderError, Wait: wait, Continue: true}
	}
	return abandon
}

// decideUnknown follows a call that was sent and whose outcome is unknown, or whose work runs or is done elsewhere. What is
// done there is never sent for again.
func decideUnknown(o Outcome, b Budget, random func() float64) Next {
	if o.Askable {
		return Next{Action: ActionAsk}
	}
	wait, ok := b.wait(o.Err, random)
	ok = ok && b.Calls < b.MaxCalls && o.Err.Class != ClassAlreadyDone
	switch {
	case ok && o.Enforced:
		return Next{Action: ActionRepeat, Wait: wait}
	case o.OnAmbiguous == OnAmbiguousHold:
		return Next{Action: ActionHold}
	case ok && o.OnAmbiguous == OnAmbiguousRetry:
		return Next{Action: ActionReplace, Reason: ReasonAmbiguous, Wait: wait, Continue: o.Content && o.OnPartial == OnPartialContinue}
	}
	return Next{Action: ActionAbandon, Reason: ReasonAmbiguous}
}

// wait is the time before another call: the provider's own wish where it has one, else a backoff. ok is false where that
// does not fit into what is left.
func (b Budget) wait(err *CallError, random func() float64) (wait time.Duration, ok bool) {
	wait = backoff(b.Base, b.Calls, random)
	if err.HasRetryAfter && err.RetryAfter > 0 {
		wait = err.RetryAfter
	}
	return wait, wait < b.Left && b.Waited+wait <= b.MaxWait
}

// backoff is a wait with full jitter: evenly between 0 and a bound that doubles with each call, up to maxBackoff.
func backoff(base time.Duration, calls int, random func() float64) time.Duration {
	bound := float64(base) * math.Pow(2, float64(calls-1))
	return time.Duration(random() * min(bound, float64(maxBackoff)))
}

package turns

import "time"

// Advice is what a client may do about a failure.
type Advice string

// The advices.
const (
	AdviceNone        Advice = ""
	AdviceSameIDNow   Advice = "SAME_ID_NOW"
	AdviceSameIDAfter Advice = "SAME_ID_AFTER_WAIT"
	AdviceNewID       Advice = "NEW_ID"
	AdviceRegenerate  Advice = "REGENERATE"
	AdviceDoNotRetry  Advice = "DO_NOT_RETRY"
)

// heldPoll is how long a client waits before it asks again about a held reply.
const heldPoll = 30 * time.Second

// waitLeft is what is left of the provider's wish to wait, by the database's clock where the row was read with its age.
func (r Reply) waitLeft() time.Duration {
	if r.Age <= 0 || r.EndTime.IsZero() {
		return r.RetryAfter
	}
	return max(0, r.EndTime.Add(r.RetryAfter).Sub(r.CreateTime.Add(r.Age)))
}

// AdviceFor says what a client may do about a reply as it stands, and how long to wait first. maxCalls is the budget of
// calls of a turn and generation: once it is spent, or a later turn was started, or a stop was asked for, only a regenerate
// makes another attempt.
func AdviceFor(r Reply, maxCalls int) (Advice, time.Duration) {
	switch r.Status {
	case StatusHeld:
		return AdviceSameIDAfter, heldPoll
	case StatusAbandoned:
	default:
		return AdviceNone, 0
	}
	switch {
	case r.Reason == ReasonSuperseded || r.Reason == ReasonDeleted:
		return AdviceDoNotRetry, 0
	case r.Reason == ReasonProviderRefused && r.Calls == 0:
		return refusalAdvice(Code(r.ProviderCode)), 0 // it was refused in line, by turnd
	case !r.Reason.Curable():
		return AdviceRegenerate, 0
	case r.LaterTurn || r.CancelRequested || r.Calls >= maxCalls:
		return AdviceRegenerate, 0
	case r.waitLeft() > 0:
		return AdviceSameIDAfter, r.waitLeft()
	case r.RetryAfter > 0:
		return AdviceSameIDNow, 0
	case r.Reason == ReasonProviderError:
		return AdviceSameIDAfter, time.Second
	}
	return AdviceSameIDNow, 0
}

// refusalAdvice is what a turn that was refused in line is told: the same as one that is refused at once.
func refusalAdvice(code Code) Advice {
	if code == CodeNoProgress {
		return AdviceNewID
	}
	return AdviceDoNotRetry
}

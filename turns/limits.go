package turns

import (
	"context"
	"strconv"
	"time"
)

// Limiter is the port to the limits that this worker keeps by itself. What it lets through is counted again where all workers
// see it, by the store: this one keeps what would be refused from costing anything.
type Limiter interface {
	// Look lets a caller have something looked up, which is what replays and probes with unknown ids come to. Done is to be
	// called when it is over. A nil done is a refusal, and wait then how long until it would be let in.
	Look(c Caller) (done func(), wait time.Duration)
	// Submit counts a submission. A wait that is not zero is a refusal, which is not counted.
	Submit(c Caller) (wait time.Duration)
	// GiveBack takes back one that Submit counted, since nothing came of it.
	GiveBack(c Caller)
}

// Suspensions is the port to who may make nothing new.
type Suspensions interface {
	Suspended(ctx context.Context, tenant, subject string) (bool, error)
}

// noLimiter is a Limiter that refuses nothing.
type noLimiter struct{}

func (noLimiter) Look(Caller) (func(), time.Duration) { return func() {}, 0 }
func (noLimiter) Submit(Caller) time.Duration         { return 0 }
func (noLimiter) GiveBack(Caller)                     {}

// nobody is Suspensions of nobody.
type nobody struct{}

func (nobody) Suspended(context.Context, string, string) (bool, error) { return false, nil }

// limitLookups is the kind of limit that a Limiter keeps for looks, beside those that a store counts.
const limitLookups LimitKind = "lookups_per_minute"

// look lets a caller look, or refuses it.
func (s *Service) look(c Caller) (done func(), err error) {
	done, wait := s.limiter.Look(c)
	if done == nil {
		return nil, rateLimited(limitLookups, "this subject sends more than it may; send the same request again after the wait", wait)
	}
	return done, nil
}

func rateLimited(kind LimitKind, problem string, wait time.Duration) *Error {
	return &Error{Code: CodeRateLimited, Problem: problem, RetryAfter: wait, Meta: map[string]string{"quota": string(kind), "scope": scopeSubject}}
}

// tooManySubmissions refuses a submission past the minute's. What is known stays free.
func tooManySubmissions(limit int64, wait time.Duration) *Error {
	e := rateLimited(LimitSubmissions, "this subject has submitted as much as it may in a minute; send the same turn again after the wait", wait)
	if limit > 0 {
		e.Meta["limit"] = strconv.FormatInt(limit, 10)
	}
	return e
}

// checkSuspended refuses a subject that may make nothing new.
func (s *Service) checkSuspended(ctx context.Context, c Caller) error {
	suspended, err := s.suspensions.Suspended(ctx, string(c.Tenant), c.Subject)
	if err != nil || !suspended {
		return err
	}
	return &Error{Code: CodeSuspended, Problem: "this subject is suspended and can make nothing new; replays are still answered"}
}

// allowance is what one request is let make: asked for once, however often it looks.
type allowance struct {
	// allowed says that it was asked and let in, counted that the limiter counted it.
	allowed, counted bool
}

// allow refuses a caller who may make nothing new now. It is asked for what is no replay, before anything is read or built for
// it.
func (s *Service) allow(ctx context.Context, c Caller, l *allowance) error {
	if l.allowed {
		return nil
	}
	if err := s.checkSuspended(ctx, c); err != nil {
		return err
	}
	if wait := s.limiter.Submit(c); wait > 0 {
		return tooManySubmissions(s.set.Submissions.PerMinute, wait)
	}
	l.allowed, l.counted = true, true
	return nil
}

// settled gives a submission back that made nothing after all: it was answered by what another one had made, or refused for
// what is no doing of its sender's. Then the same will be sent again, and must not count twice.
func (s *Service) settled(c Caller, l *allowance, made bool, err error) {
	if l.counted && (err == nil && !made || err != nil && ownFault(err)) {
		s.limiter.GiveBack(c)
	}
	l.counted = false
}

// ownFault reports a refusal that is turnd's own doing. A worker that is full is; one that is so for a subject or a
// conversation alone, which names its limit, is not.
func ownFault(err error) bool {
	switch CodeOf(err) {
	case CodeStoreUnavailable, CodeDraining, CodeConflict, CodeInternal:
		return true
	case CodeOverloaded:
		return metaOf(err)["limit"] == ""
	}
	return false
}

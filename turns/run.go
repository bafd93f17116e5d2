package turns

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// run is one reply that this worker makes. It lives under the service's context, not under that of the request which
// started it: leaving is not stopping.
type run struct {
	*Service
	key     ConversationKey
	reply   Reply
	request Request
	log     LiveLog
	// deadline is when the run stops itself, by this worker's clock.
	deadline time.Time
	cancel   context.CancelCauseFunc
	// inherited says that its place is promised to the turn that stops it; the service's mu guards it.
	inherited bool

	// claim is what the reply was claimed by, and turn its user turn: what its row is made from again should the store lose
	// it.
	claim Claim
	turn  *NewTurn

	// call is the call under way, past are those before it and usage is their sum. They are written with mu held, and by the
	// run's own goroutine alone.
	call  NewCall
	past  []pastCall
	usage Usage
	// rest is a wait before the first call.
	rest time.Duration
	// notBefore is the time before which the provider does not want to be asked again.
	notBefore time.Time
	// unclosed are outcomes of earlier calls that the store has not taken yet.
	unclosed []CallOutcome
	// owes says that a call of the last owner was closed for nothing, to be answered again here, and that it was not.
	owes bool
	// taken is how long the log was when the reply was taken over.
	taken uint32

	// mu is held while a statement about the reply is under way, so that a checkpoint and the ending never race.
	mu    sync.Mutex
	fence Fence // changes when the reply is revived
	// reviver is the owner of a revival whose outcome is unknown; zero if there is none.
	reviver WorkerID
	stored  uint32 // length of the stored log
	noted   string // the response id that is stored
	over    bool   // no checkpoint may follow
	// followed is until when the reply is known to be followed on another worker.
	followed time.Time

	// responseID is the provider's id of the response, once known. It has no lock, since the stream must not wait for a
	// statement.
	responseID atomic.Pointer[string]
}

// start runs a claim that was committed, in a goroutine that Drain waits for.
func (s *Service) start(p pendingRun, reply Reply) {
	s.launch(s.newRun(p, reply))
}

// newRun is the run of a claim, which launch starts.
func (s *Service) newRun(p pendingRun, reply Reply) *run {
	return &run{
		Service: s, key: p.claim.Key, reply: reply, request: p.request, claim: p.claim, turn: p.turn, call: p.claim.Call,
		fence:    reply.fence(p.claim.Key),
		deadline: time.Now().Add(p.limit), log: s.logs.Open(p.claim.Key, reply),
	}
}

// launch starts a run for which a place is taken; the run gives it back.
func (s *Service) launch(r *run) {
	ctx, cancel := context.WithCancelCause(s.life)
	r.cancel = cancel
	s.mu.Lock()
	s.runs[r.reply.ID] = r
	s.mu.Unlock()
	go func() {
		defer s.leavePlace()
		defer func() {
			s.mu.Lock()
			delete(s.runs, r.reply.ID)
			s.mu.Unlock()
		}()
		ctx, stop := context.WithDeadlineCause(ctx, r.deadline, errDeadline)
		defer stop()
		defer cancel(nil)
		r.make(ctx)
	}()
}

// make sends calls until one of them decides the reply.
func (r *run) make(ctx context.Context) {
	if r.rest > 0 && !pause(ctx, r.rest) {
		r.stopped(ctx, context.Cause(ctx), notSent())
		return
	}
	for {
		if !r.fenced(ctx) {
			return
		}
		c := r.send(ctx)
		r.owes = r.owes && !r.repeats(c)
		if cause := context.Cause(ctx); cause != nil && c.err != nil {
			r.stopped(ctx, cause, c)
			return
		}
		next := Decide(Outcome{Err: c.err, StopReason: c.stopReason, Content: r.log.HasContent(), Used: c.used}, r.budget(), r.random)
		if c.err != nil {
			r.logFailure(c.err, next)
		}
		switch next.Action {
		case ActionComplete:
			r.complete(ctx, c)
			return
		case ActionAbandon:
			r.abandon(ctx, next.Reason, next.RetryAfter, c)
			return
		case ActionRetry:
			if !r.again(ctx, c, next.Wait) {
				return
			}
		}
	}
}

// notSent is a call that was recorded and never left.
func notSent() callResult {
	return callResult{err: &CallError{Class: ClassNotSent, Phase: PhaseNone}}
}

// fenced waits until the lease surely holds: until then another worker may be sweeping this claim, so nothing is sent. A
// renewal under the same id says that the claim still stands; under a new id it is left to the sweep. False says that the
// run is over.
func (r *run) fenced(ctx context.Context) bool {
	for !r.lease.holds(r.owner()) {
		if r.lease.worker() != r.owner() {
			r.leave(ctx, notSent())
			return false
		}
		if !pause(ctx, fencePause) {
			r.stopped(ctx, context.Cause(ctx), notSent())
			return false
		}
	}
	return true
}

// fencePause is how often a run without a lease looks again.
const fencePause = 100 * time.Millisecond

// owner is the worker under whose id the reply is held. It changes when the reply is revived.
func (r *run) owner() WorkerID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fence.Owner
}

func (r *run) budget() Budget {
	return Budget{Calls: r.reply.Calls, MaxCalls: r.set.MaxCalls, Waited: r.reply.Waited, MaxWait: r.set.MaxWait,
		Base: r.set.Backoff, Left: time.Until(r.deadline)}
}

// logFailure writes the one line that operators read about a failed call.
func (r *run) logFailure(err *CallError, next Next) {
	attempt := r.reply.Calls
	if next.Action == ActionRetry {
		attempt++
	}
	r.logger.Warn("provider call failed", "class", string(err.Class), "action", string(next.Action),
		"attempt", fmt.Sprintf("%d/%d", attempt, r.set.MaxCalls), "in", roundWait(next.Wait).String(),
		"turn_id", r.reply.Turn.String())
	r.logger.Info("provider call detail", "turn_id", r.reply.Turn.String(), "endpoint", r.request.Route.Endpoint,
		"model", r.request.Route.Model, "phase", string(err.Phase), "status", err.HTTPStatus, "code", err.Code, "err", err.Cause)
}

func roundWait(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

// again closes a call that failed, waits, and gets leave for the next one; false says that the run is over.
func (r *run) again(ctx context.Context, c callResult, wait time.Duration) bool {
	outcome := r.outcome(c, string(c.err.Class))
	r.mu.Lock()
	r.usage, r.past = r.usage.Add(outcome.Usage), append(r.past, pastCall{r.call, outcome})
	r.mu.Unlock()
	r.unclosed = append(r.unclosed, outcome)
	r.closeCalls(context.WithoutCancel(ctx))
	r.metrics.callEnded(ctx, r.labels(r.call), outcome)
	if c.err.HasRetryAfter {
		r.notBefore = time.Now().Add(c.err.RetryAfter)
	}
	if !pause(ctx, wait) {
		r.stopped(ctx, context.Cause(ctx), callResult{closed: true})
		return false
	}
	return r.permit(ctx, wait)
}

// permit gets leave for the next call: its row in the ledger, written before it is sent.
func (r *run) permit(ctx context.Context, waited time.Duration) bool {
	call := r.call
	call.ID, call.Number, call.First = CallID{newID()}, call.Number+1, false
	for {
		results, err := r.store.PermitCalls(ctx, []CallPermit{{Fence: r.currentFence(), Call: call, Turn: r.reply.Turn, MaxCalls: r.set.MaxCalls, Waited: waited}})
		switch {
		case err == nil && results[0].Granted:
			r.permitted(call, results[0].Calls, waited)
			return true
		case err == nil && !r.rowVanished(ctx):
			// A stop was asked for; or the reply is another's, which the ending finds out.
			r.abandon(ctx, ReasonCancelled, 0, callResult{closed: true})
			return false
		}
		// The same permit again is granted and counted once, whether or not this one stands.
		if !pause(ctx, permitPause) {
			r.permitted(call, r.reply.Calls, 0)
			r.stopped(ctx, context.Cause(ctx), notSent())
			return false
		}
	}
}

// permitted notes the call that comes next.
func (r *run) permitted(call NewCall, calls int, waited time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.call = call
	r.reply.Calls, r.reply.Waited = calls, r.reply.Waited+waited
}

// rowVanished reports whether a write was refused since the store has lost the reply's row, and acts on it.
func (r *run) rowVanished(ctx context.Context) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.store.ReadReply(ctx, r.key, r.reply.ID)
	if !errors.Is(err, ErrNotFound) {
		return false
	}
	r.vanished(ctx)
	return true
}

// permitPause is the wait before a permit that got no answer is asked for again.
const permitPause = 250 * time.Millisecond

func (r *run) currentFence() Fence {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fence
}

// closeCalls closes what is not closed yet. What the store does not take now is tried again before the ending.
func (r *run) closeCalls(ctx context.Context) {
	if len(r.unclosed) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, submitTime)
	defer cancel()
	if err := r.store.CloseCalls(ctx, r.unclosed); err != nil {
		r.logger.Warn("call not closed yet", "turn_id", r.reply.Turn.String(), "err", err)
		return
	}
	r.unclosed = nil
}

// pause waits, or reports that ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// stopped ends a run whose context ended, by the cause.
func (r *run) stopped(ctx context.Context, cause error, c callResult) {
	switch {
	case errors.Is(cause, errLost):
		r.leave(ctx, c)
	case errors.Is(cause, errHole):
		r.abandon(ctx, ReasonAmbiguous, 0, c)
	case errors.Is(cause, errRequested):
		r.abandon(ctx, ReasonCancelled, 0, c)
	case errors.Is(cause, errLeft):
		r.abandon(ctx, ReasonDisconnected, 0, c)
	case errors.Is(cause, errDeadline):
		r.abandon(ctx, ReasonDeadline, r.waitLeft(), c)
	default:
		r.abandon(ctx, ReasonShutdown, r.waitLeft(), c)
	}
}

// waitLeft is what is left of the provider's wish to wait: it outlives this run.
func (r *run) waitLeft() time.Duration {
	if r.notBefore.IsZero() {
		return 0
	}
	return max(0, time.Until(r.notBefore))
}

// leave lets go of a reply that is no longer this worker's. What is known of it and of its call is kept all the same.
func (r *run) leave(ctx context.Context, c callResult) {
	r.closeCalls(context.WithoutCancel(ctx))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	defer r.log.Move()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
	defer cancel()
	e := Ending{Fence: r.fence, Usage: r.usage, ResponseID: r.knownResponse()}
	if !c.closed {
		outcome := r.outcome(c, wasteLost)
		e.Usage, e.Call = e.Usage.Add(outcome.Usage), &outcome
	}
	pieces, length, err := r.whole(ctx)
	if err == nil || errors.Is(err, errHole) {
		e.Content, e.Length = pieces, length
		r.settle(ctx, e)
	} else if e.Call != nil {
		r.closeLost(ctx, *e.Call)
	}
}

// settle keeps what is known of a reply that was ended from outside, or whose row is lost. The caller holds mu.
func (r *run) settle(ctx context.Context, e Ending) {
	if e.Call != nil {
		if settled, err := r.store.Settle(ctx, e); err == nil && settled {
			return
		}
	}
	if _, err := r.store.ReadReply(ctx, r.key, r.reply.ID); errors.Is(err, ErrNotFound) {
		if err := r.keepLost(ctx, e); err != nil {
			r.logger.Error("lost reply not kept", "reply_id", r.reply.ID.String(), "err", err)
		}
		return
	}
	if e.Call != nil {
		r.closeLost(ctx, *e.Call)
	}
}

// wasteLost is the cause of tokens whose reply was taken away from the worker that paid for them.
const wasteLost = "lost"

// closeLost closes the call of a reply that this worker has lost. Where a sweep closed it first, by estimate, that
// stands.
func (r *run) closeLost(ctx context.Context, outcome CallOutcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
	defer cancel()
	if err := r.store.CloseCalls(ctx, []CallOutcome{outcome}); err != nil {
		r.logger.Warn("call of a lost reply not closed", "turn_id", r.reply.Turn.String(), "err", err)
	}
}

// deadlineLeft is the time to the run's own deadline.
func (r *run) deadlineLeft() time.Duration { return time.Until(r.deadline) }

func (r *run) labels(call NewCall) callLabels {
	return callLabels{first: call.First, provider: r.request.Route.Provider, model: r.request.Route.Model}
}

package turns

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
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
	// place is the subject whose place among the running replies it has.
	place Caller
	// inherited says that its place is promised to the turn that stops it; the service's mu guards it.
	inherited bool

	// made are the options that its requests are built with.
	made layers
	// claim is what the reply was claimed by, and turn its user turn: what its row is made from again should the store lose
	// it.
	claim Claim
	turn  *NewTurn
	// claimed is the span that it was claimed or taken over by, and span its own, nil before launch.
	claimed trace.SpanContext
	span    trace.Span

	// call is the call under way, at first the claim's, past are those before it and usage is their sum. They are written with mu
	// held, and by the run's own goroutine alone.
	call  *NewCall
	past  []pastCall
	usage Usage
	// rest is a wait before the first call.
	rest time.Duration
	// notBefore is the time before which the provider does not want to be asked again.
	notBefore time.Time
	// unclosed are outcomes of earlier calls that the store has not taken yet.
	unclosed []CallOutcome
	// kept is what of the log comes from an attempt before it, a piece for each block. callBegun is when the first call of the request was
	// made, sentAt the last.
	kept      []Piece
	callBegun time.Time
	sentAt    time.Time
	// session is what was prepared at the provider for the call; unsent says that its row does not say yet that it leaves.
	session string
	unsent  bool
	// begun is what is known of a call that the last owner made and whose outcome is to be found out; nil: there is none.
	begun *callResult
	// asked says that the provider was asked about the call and could not tell, noFallback that no further entry of the
	// route could be used.
	asked      bool
	noFallback bool
	// owes says that a call of the last owner was closed for nothing, to be answered again here, and that it was not.
	owes bool
	// taken is how long the log was when the reply was taken over.
	taken uint32
	// layer is who its next call is made again by, where that is not the provider's failure. It is written with mu held, and
	// by the run's own goroutine alone.
	layer Layer

	// arrived is when the delivery came that the reply is the first answer to; zero where it is none, or has begun to answer.
	arrived time.Time
	// since is when the reply was claimed; zero where only its ending is written here.
	since time.Time
	// counted is the call whose outcome a sweep has counted, by estimate, before its own worker could.
	counted CallID
	// attached are the deliveries that were attached to it here, by their layers, until its end has answered them. The
	// service's mu guards it.
	attached map[Layer]int64
	detached bool

	// mu is held while a statement about the reply is under way, so that a checkpoint and the ending never race.
	mu    sync.Mutex
	fence Fence // changes when the reply is revived
	// reviver is the owner of a revival whose outcome is unknown; zero if there is none.
	reviver WorkerID
	stored  uint32 // length of the stored log
	noted   string // the response id that is stored
	over    bool   // no checkpoint may follow
	inLine  bool   // a turn was in line when it ended, as far as its end saw
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
	for _, piece := range p.kept {
		reply.Continues += piece.Len()
	}
	r := &run{
		Service: s, place: Caller{Tenant: p.claim.Tenant, Subject: p.claim.Subject}, key: p.claim.Key, reply: reply, request: p.request, made: p.made, claim: p.claim, turn: p.turn,
		fence:    reply.fence(p.claim.Key),
		unsent:   p.claim.Call.Unsent,
		deadline: time.Now().Add(p.limit), log: s.logs.Open(p.claim.Key, reply),
		callBegun: time.Now(), sentAt: time.Now(), kept: p.kept, claimed: p.span, arrived: p.arrived, since: time.Now().Add(-reply.Age),
	}
	r.call = &r.claim.Call
	for _, piece := range p.kept {
		if err := r.log.Append(piece); err != nil {
			s.logger.Error("partial reply not gone on with", "reply_id", reply.ID.String(), "err", err)
			break
		}
	}
	return r
}

// prior is how many blocks of the log come from an attempt before it.
func (r *run) prior() uint32 { return uint32(len(r.kept)) }

// launch starts a run for which a place is taken; the run gives it back.
func (s *Service) launch(r *run) {
	ctx, cancel := context.WithCancelCause(s.life)
	r.cancel = cancel
	ctx = r.traced(ctx)
	s.register(r)
	go func() {
		defer func() {
			s.leavePlace(r.place)
			if r.inLine {
				s.advanceSoon(r.key) // there is a place for it now
			}
		}()
		defer func() {
			s.mu.Lock()
			delete(s.runs, r.reply.ID)
			s.mu.Unlock()
		}()
		defer r.limited()()
		defer cancel(nil)
		defer r.span.End()
		r.make(ctx)
	}()
}

// limited stops the run at its deadline, unless the function that it gives is called before. There are as many runs as streams,
// and a timer is less than another context would be.
func (r *run) limited() (lift func()) {
	left := time.Until(r.deadline)
	if left <= 0 {
		r.cancel(errDeadline)
		return func() {}
	}
	timer := time.AfterFunc(left, func() { r.cancel(errDeadline) })
	return func() { timer.Stop() }
}

// make makes calls until one of them decides the reply.
func (r *run) make(ctx context.Context) {
	if !r.rested(ctx) {
		return
	}
	c, over := r.begun, false
	if c == nil {
		c, over = r.attempt(ctx)
	}
	for !over {
		c, over = r.step(ctx, c)
	}
}

// rested waits before the first call; false says that the run is over.
func (r *run) rested(ctx context.Context) bool {
	if r.rest > 0 && !pause(ctx, r.rest) {
		r.stopped(ctx, context.Cause(ctx), notSent())
		return false
	}
	return true
}

// step acts on what a call came to, and gives what came of that; over says that the run is.
func (r *run) step(ctx context.Context, c *callResult) (after *callResult, over bool) {
	if cause := context.Cause(ctx); cause != nil && c.err != nil {
		r.stopped(ctx, cause, *c)
		return c, true
	}
	next := r.decide(*c)
	if c.err != nil {
		r.logFailure(ctx, c.err, next)
	}
	switch next.Action {
	case ActionComplete:
		r.complete(ctx, *c)
		if c.cut { // what comes behind the limit is wanted by nobody
			r.stopAtProvider(ctx, r.lostCall(nil))
		}
	case ActionAsk:
		told, over := r.ask(ctx, *c)
		return &told, over
	case ActionRetry, ActionRepeat:
		return r.another(ctx, c, next)
	case ActionReplace:
		r.replace(ctx, *c, next)
	case ActionHold:
		r.hold(ctx, *c)
	default:
		r.abandon(ctx, next.Reason, next.RetryAfter, *c)
	}
	return c, true
}

// decide says what comes after a call.
func (r *run) decide(c callResult) Next {
	fallback := false
	if c.err != nil && !r.owes { // another endpoint would not answer for a call that is owed
		_, fallback = r.nextEntry()
	}
	o := Outcome{Err: c.err, StopReason: c.stopReason, Content: r.log.HasContent(), Used: c.used,
		Askable: !r.asked && r.askable(), Enforced: r.repeatable(), Fallback: fallback,
		OnAmbiguous: r.reply.OnAmbiguous, OnPartial: r.reply.OnPartial}
	if c.err != nil && errors.Is(c.err.Cause, errDiverged) {
		o.Askable, o.Enforced = false, false // what the provider gave for the same is not the same
	}
	return Decide(o, r.budget(), r.random)
}

// attempt makes one call. over says that the run is.
func (r *run) attempt(ctx context.Context) (c *callResult, over bool) {
	c = new(callResult)
	if !r.fenced(ctx) {
		return c, true
	}
	if !r.readyToSend(ctx, c) {
		return c, false
	}
	r.send(ctx, c)
	r.owes = r.owes && !r.repeats(c)
	return c, false
}

// readyToSend does what comes before a call; false says that there is none, and c what came of it.
func (r *run) readyToSend(ctx context.Context, c *callResult) (ok bool) {
	wait, ok := r.generator.Ready(r.request.Route)
	if !ok {
		*c = breakerOpen(wait)
		return false
	}
	*c, ok = r.prepareCall(ctx)
	return ok
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
			r.leave(ctx, notSent(), wasteLost)
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
func (r *run) logFailure(ctx context.Context, err *CallError, next Next) {
	attempt := r.reply.Calls
	switch next.Action {
	case ActionRetry, ActionRepeat, ActionReplace:
		attempt++
	}
	r.logger.WarnContext(ctx, "provider call failed", "class", string(err.Class), "action", string(next.Action),
		"attempt", fmt.Sprintf("%d/%d", attempt, r.set.MaxCalls), "in", roundWait(next.Wait).String(),
		"turn_id", r.reply.Turn.String())
	r.logger.InfoContext(ctx, "provider call detail", "turn_id", r.reply.Turn.String(), "endpoint", r.request.Route.Endpoint,
		"model", r.request.Route.Model, "phase", string(err.Phase), "status", err.HTTPStatus, "code", err.Code, "err", err.Cause)
}

func roundWait(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

// another makes a further call of the same reply, after the wait that was decided on.
func (r *run) another(ctx context.Context, c *callResult, next Next) (after *callResult, over bool) {
	outcome, labels := r.outcome(*c, string(c.err.Class)), r.call.labels()
	if next.Fallback && !r.fallBack(ctx) {
		r.noFallback = true
		return r.step(ctx, c)
	}
	if next.Action == ActionRepeat {
		if err := r.compare(ctx); err != nil {
			r.abandon(ctx, ReasonAmbiguous, 0, *c)
			return c, true
		}
	}
	if !r.again(ctx, *c, next, outcome, labels) {
		return c, true
	}
	return r.attempt(ctx)
}

// again closes a call that failed, waits, and gets leave for the next one; false says that the run is over.
func (r *run) again(ctx context.Context, c callResult, next Next, outcome CallOutcome, labels callLabels) bool {
	if next.Action == ActionRepeat {
		// It used nothing of its own: the generation it began is answered again, and billed once, with the call that repeats it.
		outcome.Usage, outcome.WasteCause = Usage{Calls: 1}, ""
		r.owes, r.taken = true, r.log.Len()
	}
	r.mu.Lock()
	r.usage, r.past = r.usage.Add(outcome.Usage), append(r.past, pastCall{*r.call, outcome})
	r.mu.Unlock()
	r.unclosed = append(r.unclosed, outcome)
	r.closeCalls(context.WithoutCancel(ctx))
	r.metrics.callEnded(ctx, labels, outcome)
	if c.err.HasRetryAfter && !next.Fallback {
		r.notBefore = time.Now().Add(c.err.RetryAfter)
	}
	if !pause(ctx, next.Wait) {
		r.stopped(ctx, context.Cause(ctx), callResult{closed: true})
		return false
	}
	return r.permit(ctx, next.Wait)
}

// permit gets leave for the next call: its row in the ledger, written before it is sent.
func (r *run) permit(ctx context.Context, waited time.Duration) bool {
	call := r.nextCall()
	for said := false; ; {
		results, err := r.store.PermitCalls(ctx, []CallPermit{{Fence: r.currentFence(), Tenant: r.claim.Tenant, Call: call, Turn: r.reply.Turn, MaxCalls: r.set.MaxCalls, Waited: waited}})
		switch {
		case err == nil && results[0].Granted:
			r.permitted(call, results[0].Calls, waited)
			return true
		case err == nil && !r.rowVanished(ctx):
			// A stop was asked for; or the reply is another's, which the ending finds out.
			r.abandon(ctx, ReasonCancelled, 0, callResult{closed: true})
			return false
		}
		if err != nil && answered(err) && !said {
			said = true
			r.logger.ErrorContext(ctx, "no leave for the next call; asking until the deadline", "turn_id", r.reply.Turn.String(),
				"reply_id", r.reply.ID.String(), "err", err)
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
	r.call, r.session, r.unsent, r.asked, r.layer = &call, "", call.Unsent, false, ""
	r.sentAt = time.Now()
	r.responseID.Store(nil)
	r.noted = ""
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
		r.logger.WarnContext(ctx, "call not closed yet", "turn_id", r.reply.Turn.String(), "err", err)
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
		r.leave(ctx, c, wasteLost)
	case errors.Is(cause, errDeleted):
		r.leaveDeleted(ctx, c)
	case errors.Is(cause, errHole):
		r.abandon(ctx, ReasonAmbiguous, 0, c)
	case errors.Is(cause, errRequested):
		r.abandonAndStop(ctx, ReasonCancelled, 0, c)
	case errors.Is(cause, errLeft):
		r.abandonAndStop(ctx, ReasonDisconnected, 0, c)
	case r.holdsInstead(c):
		r.hold(ctx, c)
	case errors.Is(cause, errDeadline):
		r.abandonAndStop(ctx, ReasonDeadline, r.waitLeft(), c)
	case !c.closed && r.handOver(ctx):
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

// leave lets go of a reply that is no longer this worker's. What is known of it and of its call is kept all the same; what
// the call took is wasted for a cause.
func (r *run) leave(ctx context.Context, c callResult, waste string) {
	r.closeCalls(context.WithoutCancel(ctx))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	defer r.log.Move()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
	defer cancel()
	e := Ending{Fence: r.fence, Usage: r.usage, ResponseID: r.knownResponse()}
	if !c.closed {
		outcome := r.outcome(c, waste)
		e.Usage, e.Call = e.Usage.Add(outcome.Usage), &outcome
	}
	pieces, length, err := r.whole(ctx)
	if err == nil || errors.Is(err, errHole) {
		e.Content, e.Length = pieces, length
		r.settle(ctx, e)
	} else if e.Call != nil {
		r.closeLost(ctx, *e.Call)
	}
	r.settleSoon(r.key, r.reply.Turn, r.reply.Generation)
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
			r.logger.ErrorContext(ctx, "lost reply not kept", "reply_id", r.reply.ID.String(), "err", err)
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
// stands; where the reply is in flight or held, the call is still to be answered, by its new owner or a lookup.
func (r *run) closeLost(ctx context.Context, outcome CallOutcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
	defer cancel()
	row, err := r.store.ReadReply(ctx, r.key, r.reply.ID)
	if err == nil && (row.Status == StatusInFlight || row.Status == StatusHeld) {
		return
	}
	if problem := r.store.CloseCalls(ctx, []CallOutcome{outcome}); problem != nil {
		r.logger.WarnContext(ctx, "call of a lost reply not closed", "turn_id", r.reply.Turn.String(), "err", problem)
		return
	}
	if isGone(err) && outcome.ID != r.counted {
		r.metrics.callEnded(ctx, r.call.labels(), outcome) // who deleted it left that to its owner
	}
}

// deadlineLeft is the time to the run's own deadline.
func (r *run) deadlineLeft() time.Duration { return time.Until(r.deadline) }

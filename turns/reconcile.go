package turns

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/turnd/turnd/internal/instrument"
)

// The bounds of a look at held replies: how many in one pass, how many at once, and how long one may take.
const (
	reconcileBatch  = 16
	reconcileAtOnce = 4
	reconcileTime   = 2 * time.Minute
)

// keepReconciled looks at held replies each interval, and at once when one is woken, until ctx ends.
func (s *Service) keepReconciled(ctx context.Context) {
	ticker := time.NewTicker(s.set.Sweep)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-s.woken:
		}
		s.reconcile(ctx)
	}
}

// reconcile asks providers for the answers of held replies whose lookup is due. Each is asked for by one worker at a time,
// at growing distances.
func (s *Service) reconcile(ctx context.Context) {
	due, err := s.store.DueLookups(ctx, heldLookup, heldLookupMost, reconcileBatch)
	if err != nil {
		s.logger.WarnContext(ctx, "held replies not looked up", "err", err)
		return
	}
	var all sync.WaitGroup
	places := make(chan struct{}, reconcileAtOnce)
	for _, h := range due {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			ctx, cancel := context.WithTimeout(ctx, reconcileTime)
			defer cancel()
			if err := s.lookUp(ctx, h); err != nil {
				s.logger.InfoContext(ctx, "held reply not resolved yet", "reply_id", h.Reply.ID.String(), "turn_id", h.Reply.Turn.String(), "err", err)
			}
		})
	}
	all.Wait()
}

// errNoOpenCall says that a held reply has no call that could be asked for.
var errNoOpenCall = errors.New("the reply has no open call")

// errMayContinue says that a held reply may have gone on from an earlier attempt, so that the answer to its call is not the
// whole of it.
var errMayContinue = errors.New("the reply may go on from an earlier attempt; it is for an operator")

// lookUp asks for the answer of a held reply and adopts it, if it is whole and begins with what is stored; a reply whose
// call is known to have failed is released.
func (s *Service) lookUp(ctx context.Context, h HeldReply) error {
	if len(h.OpenCalls) == 0 {
		return errNoOpenCall
	}
	row, err := s.store.ReadReply(ctx, h.Key, h.Reply.ID)
	if err != nil || row.Status != StatusHeld {
		return err
	}
	if row.OnPartial == OnPartialContinue && row.Attempt > 1 {
		return errMayContinue
	}
	call := newest(h.OpenCalls)
	f, err := newFound(row, s.set.MaxOutputBytes)
	if err != nil {
		return err
	}
	lost := s.lostOf(h.Key, row, call)
	var result callResult
	asking, span := s.lookupSpan(ctx, row, lost.Request.Route)
	i := inference{operation: instrument.OperationFetch, route: lost.Request.Route, begun: time.Now()}
	for delta, err := range s.generator.Recover(asking, lost) {
		if err != nil {
			result.err = asCallError(err)
			break
		}
		if err := f.take(&result, delta); err != nil {
			result.fail(err)
			break
		}
	}
	s.metrics.inferred(asking, i, result)
	asked := result
	asked.reported = nil // what the call used is counted once, with the call
	asked.came(span)
	span.End()
	var told *OutcomeError
	switch {
	case result.err != nil && errors.As(result.err.Cause, &told) && !mayHaveRun(told.Call):
		return s.releaseFailed(ctx, h, row, told.Call)
	case result.err != nil:
		return result.err
	case !result.finished:
		return errUnfinished
	}
	return s.adopt(ctx, h, row, call, f, result)
}

// adopt completes a held reply with the answer that was found.
func (s *Service) adopt(ctx context.Context, h HeldReply, row Reply, call OpenCall, f *found, c callResult) error {
	pieces, length, err := f.whole()
	if err != nil {
		return err
	}
	o := CallOutcome{Key: h.Key, ID: call.ID, Class: ClassOK, Phase: PhaseDone, HTTPStatus: c.httpStatus, RequestID: c.requestID,
		ResponseID: c.responseID}
	c.replyBytes = f.ownBytes
	o.Usage, o.Low, o.High = s.usageOf(s.routeOf(row.Model, call.Endpoint, call.ProviderModel), call.RequestBytes, c)
	r := Resolution{Fence: Fence{Key: h.Key, Reply: row.ID, Epoch: row.Epoch}, Verb: VerbAdopt, Status: StatusComplete,
		Content: pieces, Length: length, StopReason: c.stopReason, Usage: row.Usage.Add(o.Usage), ResponseID: c.responseID,
		Calls: []CallOutcome{o}}
	_, err = s.resolveHeld(ctx, row, r, h.OpenCalls)
	return err
}

// releaseFailed gives up a held reply whose call is known to have come to nothing.
func (s *Service) releaseFailed(ctx context.Context, h HeldReply, row Reply, failed *CallError) error {
	var outcomes []CallOutcome
	usage := row.Usage
	for _, call := range h.OpenCalls {
		o := CallOutcome{Key: h.Key, ID: call.ID, Class: failed.Class, Phase: failed.Phase, HTTPStatus: failed.HTTPStatus, Usage: Usage{Calls: 1}}
		if row.Length > 0 { // it had generated something before it failed
			route := s.routeOf(row.Model, call.Endpoint, call.ProviderModel)
			o.Usage, o.Low, o.High = s.estimate(route, call.RequestBytes, int(row.Length))
			o = o.wasted(string(ReasonHeldReleased))
		}
		outcomes, usage = append(outcomes, o), usage.Add(o.Usage)
	}
	_, err := s.resolveHeld(ctx, row, Resolution{Fence: Fence{Key: h.Key, Reply: row.ID, Epoch: row.Epoch}, Verb: VerbRelease,
		Status: StatusAbandoned, Reason: ReasonHeldReleased, Content: row.Content, Length: row.Length, Usage: usage,
		Calls: outcomes}, h.OpenCalls)
	return err
}

// resolveHeld writes a resolution and counts what it closed. One that somebody else was faster with is no error.
func (s *Service) resolveHeld(ctx context.Context, row Reply, r Resolution, open []OpenCall) (won bool, err error) {
	result, err := s.store.ResolveHeld(ctx, r)
	if err != nil || !result.Won {
		return false, err
	}
	for _, o := range r.Calls {
		for _, call := range open {
			if call.ID == o.ID {
				s.metrics.callEnded(ctx, call.labels(), o)
			}
		}
	}
	s.settleSoon(r.Fence.Key, row.Turn, row.Generation)
	s.metrics.replyEnded(ctx, r.Status, r.Reason)
	s.logger.InfoContext(ctx, "held reply resolved", "reply_id", r.Fence.Reply.String(), "status", string(r.Status), "verb", string(r.Verb))
	return true, nil
}

// finishHeld resolves a reply that was held while its owner could not be reached: it is whole after all, or its call is known
// to have failed. Any other stays held, with its call open. The caller holds mu.
func (r *run) finishHeld(ctx context.Context, e Ending) (ended Reply, ok bool, err error) {
	res := Resolution{Fence: e.Fence, Verb: VerbFinish, Status: StatusComplete, Content: e.Content, Length: e.Length,
		StopReason: e.StopReason, Usage: e.Usage, ResponseID: e.ResponseID}
	if e.Status != StatusComplete {
		if e.Call == nil || !knownFailure(e.Call.Class) {
			return Reply{}, false, nil
		}
		e.Status, e.Reason = StatusAbandoned, ReasonHeldReleased
		res.Verb, res.Status, res.Reason, res.Fence.Owner = VerbRelease, e.Status, e.Reason, WorkerID{}
	}
	if e.Call != nil {
		res.Calls = []CallOutcome{*e.Call}
	}
	result, err := r.store.ResolveHeld(ctx, res)
	if err != nil || !result.Won {
		return Reply{}, false, err
	}
	return r.endedReply(e, result.EndTime), true, nil
}

// knownFailure reports a class that says that nothing is left behind at the provider.
func knownFailure(c CallClass) bool {
	return c == ClassNotSent || c == ClassTransient || c == ClassThrottled || c == ClassTerminal
}

// Wake has the replies that wait for a response of an endpoint looked up now: it is what a provider's callback is good for,
// whose own words are never taken as an answer. Waking what does not wait is no error.
func (s *Service) Wake(ctx context.Context, endpoint, responseID string) error {
	origin, err := s.generator.OriginOf(ctx, endpoint, responseID)
	if err != nil || origin.IsZero() {
		return err
	}
	woken, err := s.store.WakeLookup(ctx, origin.Conversation, origin.Turn, origin.Generation)
	if err != nil {
		return err
	}
	if woken {
		select {
		case s.woken <- struct{}{}:
		default: // a look is due already
		}
		return nil
	}
	return s.lookUpNamed(ctx, origin, responseID)
}

// lookUpNamed asks for a response that answers a held reply whose call never learned its id: nobody could ask before.
func (s *Service) lookUpNamed(ctx context.Context, o Origin, responseID string) error {
	st, err := s.store.Lookup(ctx, LookupQuery{Key: o.Conversation, Turn: o.Turn})
	if err != nil || st.Live == nil || st.Live.Status != StatusHeld || st.Live.Generation != o.Generation {
		return err
	}
	c, err := s.store.ReadConversation(ctx, o.Conversation)
	if err != nil {
		return err
	}
	h, ok, err := s.heldLike(ctx, c.Tenant, *st.Live)
	if err != nil || !ok || len(h.OpenCalls) == 0 {
		return err
	}
	call := newest(h.OpenCalls)
	if call.ResponseID != "" {
		return nil // it is of another call
	}
	call.ResponseID = responseID
	h.OpenCalls = []OpenCall{call}
	return s.lookUp(ctx, h)
}

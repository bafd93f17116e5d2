package turns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// sweepBatch bounds how many stale replies one pass resolves; the next pass takes the rest.
const sweepBatch = 200

// workerMemory is how long a dead worker's row is kept for people to see.
const workerMemory = time.Hour

// tidy resolves, each interval, the claims of workers that are gone, replies past their deadline, and claims of this
// worker's own that nothing runs.
func (s *Service) tidy(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, max(s.set.Sweep, time.Second))
	defer cancel()
	if err := s.sweep(ctx, StaleQuery{Limit: sweepBatch}); err != nil {
		s.logger.WarnContext(ctx, "sweep failed", "err", err)
	}
	if err := s.store.ForgetWorkers(ctx, workerMemory); err != nil {
		s.logger.WarnContext(ctx, "old rows of dead workers not deleted", "err", err)
	}
	if err := s.audit(ctx); err != nil {
		s.logger.WarnContext(ctx, "audit of own claims failed", "err", err)
	}
	if err := s.findLines(ctx); err != nil {
		s.logger.WarnContext(ctx, "lines of waiting turns not looked for", "err", err)
	}
}

// auditAge is how old a claim must be before it is missed: Submit is done with it long before.
const auditAge = 2 * submitTime

// audit ends claims of this worker's own that nothing in it runs, which a lost commit or a bug may leave: under a live
// lease no sweep would take them.
func (s *Service) audit(ctx context.Context) error {
	fences, err := s.store.OwnedReplies(ctx, s.lease.worker(), auditAge, sweepBatch)
	if err != nil {
		return err
	}
	fences = slices.DeleteFunc(fences, func(f Fence) bool { return s.takeovers.has(f.Reply) || s.runOfReply(f.Reply) != nil })
	if len(fences) == 0 {
		return nil
	}
	spooled, err := s.inSpool(ctx)
	if err != nil {
		return err
	}
	for _, f := range fences {
		if spooled[f.Reply] {
			continue
		}
		reply, err := s.store.ReadReply(ctx, f.Key, f.Reply)
		if err != nil {
			return err
		}
		s.logger.ErrorContext(ctx, "a claim of this worker was not run", "reply_id", f.Reply.String())
		if _, err := s.store.End(ctx, []Ending{{Fence: f, Verb: VerbAbandon, Status: StatusAbandoned, Reason: ReasonShutdown,
			StoredLength: reply.Length, Content: reply.Content, Length: reply.Length, Usage: reply.Usage}}); err != nil {
			return err
		}
		s.settleSoon(f.Key, reply.Turn, reply.Generation)
	}
	return nil
}

// inSpool are the replies whose ending waits in the spool, the whole of it maybe: to end them as cut off would settle them
// with less. One that is never stored ends by its deadline, which leaves room for what its owner has.
func (s *Service) inSpool(ctx context.Context) (map[ReplyID]bool, error) {
	ids := map[ReplyID]bool{}
	_, err := s.spool.Kept(ctx, 1, func(id ReplyID) bool {
		ids[id] = true
		return true
	})
	return ids, err
}

// resolve sweeps one conversation for a request that met a claim with an expired lease.
func (s *Service) resolve(ctx context.Context, key ConversationKey) error {
	return s.sweep(ctx, StaleQuery{Key: &key, Limit: sweepBatch})
}

// sweep buries first, then judges: a worker that is not dead may still renew, and its claims are not touched.
func (s *Service) sweep(ctx context.Context, q StaleQuery) error {
	if err := s.bury(ctx); err != nil {
		return err
	}
	stale, err := s.store.StaleReplies(ctx, q)
	if err != nil {
		return err
	}
	var problems []error
	for _, reply := range stale { // one that can't be swept must not keep the others
		if err := s.sweepOne(ctx, reply); err != nil {
			problems = append(problems, fmt.Errorf("reply %s: %w", reply.Reply.ID, err))
		}
	}
	return errors.Join(problems...)
}

// stillRuns reads a stale reply with its log, and reports whether it is still what was found.
func (s *Service) stillRuns(ctx context.Context, stale StaleReply) (r Reply, ok bool, err error) {
	r, err = s.store.ReadReply(ctx, stale.Key, stale.Reply.ID)
	if errors.Is(err, ErrNotFound) {
		return Reply{}, false, nil
	}
	return r, err == nil && r.Status == StatusInFlight && r.under(stale.Reply.fence(stale.Key)), err
}

// sweepOne goes on with one stale reply, or ends it: what its worker had checkpointed is its partial content, and the calls
// it had open are booked by estimate, since the provider went on and bills them. Its log is read only now, so that many
// stale replies are not in memory at once and one that can't be read keeps no other from being swept.
func (s *Service) sweepOne(ctx context.Context, stale StaleReply) error {
	if !s.takeovers.enter(stale.Reply.ID) {
		return nil // somebody here is at it
	}
	defer s.takeovers.leave(stale.Reply.ID)
	defer s.advanceSoon(stale.Key)
	result, err := s.resolveStale(ctx, stale)
	if err != nil {
		result = sweptFailed
	}
	if result != "" {
		s.metrics.sweptOne(ctx, result)
	}
	return err
}

// resolveStale is sweepOne, and says what became of the reply; nothing if it is left as it is for now.
func (s *Service) resolveStale(ctx context.Context, stale StaleReply) (result string, err error) {
	r, ok, err := s.stillRuns(ctx, stale)
	switch {
	case err != nil:
		return "", err
	case !ok && r.Status == StatusComplete:
		return sweptCompleted, nil
	case !ok:
		return sweptLostRace, nil
	}
	taken, won, err := s.takeOver(ctx, stale, r)
	if err != nil {
		s.logger.WarnContext(ctx, "reply not taken over", "reply_id", r.ID.String(), "err", err)
	}
	switch {
	case errors.Is(err, ErrUnknownOutcome):
		return "", err
	case won:
		return sweptTakenOver, nil
	case taken:
		return "", nil
	}
	return s.sweepAway(ctx, stale, r)
}

// sweepAway ends a stale reply from outside.
func (s *Service) sweepAway(ctx context.Context, stale StaleReply, r Reply) (result string, err error) {
	sw := Sweeping{
		Fence: r.fence(stale.Key),
		Verb:  VerbSweep, Status: StatusAbandoned, Reason: ReasonLeaseExpired, Content: r.Content, Length: r.Length,
		Usage: stale.Reply.Usage,
	}
	switch {
	case stale.CancelRequested:
		sw.Reason = ReasonCancelled
	case !stale.OwnerDead:
		sw.Verb, sw.Reason = VerbExpire, ReasonDeadline
	}
	if stale.CancelRequested && !stale.OwnerDead {
		sw.Verb = VerbCancel
	}
	if sw.Reason == ReasonLeaseExpired && r.OnAmbiguous == OnAmbiguousHold && submitted(stale.OpenCalls) {
		return s.sweepHeld(ctx, stale, r, sw)
	}
	calls, lost := s.lostCalls(stale.Key, r, stale.OpenCalls, string(sw.Reason))
	sw.Calls, sw.Usage = calls, sw.Usage.Add(lost)
	won, err := s.store.Sweep(ctx, sw)
	if err != nil || !won {
		return sweptLostRace, err
	}
	for i, call := range stale.OpenCalls {
		s.metrics.callEnded(ctx, call.labels(), sw.Calls[i])
	}
	s.settleSoon(stale.Key, r.Turn, r.Generation)
	s.metrics.replyEnded(ctx, sw.Status, sw.Reason)
	s.logger.InfoContext(ctx, "stale reply swept", "reply_id", r.ID.String(), "turn_id", r.Turn.String(), "reason", string(sw.Reason))
	if stale.CancelRequested && len(stale.OpenCalls) > 0 {
		s.stopAtProvider(ctx, s.lostOf(stale.Key, r, newest(stale.OpenCalls)))
	}
	return sweptAbandoned, nil
}

// lostOutcome closes a call of which nobody knows what became: the provider went on, and bills it.
func (s *Service) lostOutcome(key ConversationKey, r Reply, call OpenCall) CallOutcome {
	o := CallOutcome{Key: key, ID: call.ID, Class: ClassAmbiguous, Phase: PhaseWritten, ResponseID: call.ResponseID}
	if !call.Submitted {
		o.Class, o.Phase, o.Usage = ClassNotSent, PhaseNone, Usage{Calls: 1}
		return o
	}
	route := s.routeOf(r.Model, call.Endpoint, call.ProviderModel)
	if route.Endpoint == "" {
		route = Route{Provider: call.Provider, ProviderModel: call.ProviderModel} // of a models file that is gone
	}
	o.Usage, o.Low, o.High = s.estimate(route, call.RequestBytes, int(r.Length))
	return o
}

// lostCalls closes the open calls of a reply of which nobody knows what became, and sums what they took. Its tokens are
// wasted for a cause; without one they were delivered.
func (s *Service) lostCalls(key ConversationKey, r Reply, open []OpenCall, waste string) (outcomes []CallOutcome, sum Usage) {
	for _, call := range open {
		o := s.lostOutcome(key, r, call)
		if waste != "" {
			o = o.wasted(waste)
		}
		outcomes, sum = append(outcomes, o), sum.Add(o.Usage)
	}
	return outcomes, sum
}

// submitted reports whether any of the calls may have been sent.
func submitted(calls []OpenCall) bool {
	return slices.ContainsFunc(calls, func(c OpenCall) bool { return c.Submitted })
}

// sweepHeld holds a stale reply whose call may have been sent, by policy: its calls stay open until that is resolved.
func (s *Service) sweepHeld(ctx context.Context, stale StaleReply, r Reply, sw Sweeping) (result string, err error) {
	lost := s.lostOf(stale.Key, r, newest(stale.OpenCalls))
	sw.Status, sw.Reason = StatusHeld, ""
	sw.LookupIn = lookupIn(askable(lost.Request.Route.Capabilities, lost.ResponseID))
	won, err := s.store.Sweep(ctx, sw)
	if err != nil || !won {
		return sweptLostRace, err
	}
	s.metrics.replyEnded(ctx, sw.Status, sw.Reason)
	s.logger.WarnContext(ctx, "stale reply held", "reply_id", r.ID.String(), "turn_id", r.Turn.String())
	return sweptHeld, nil
}

// lostOf names a call of a reply that nobody runs to its provider.
func (s *Service) lostOf(key ConversationKey, r Reply, call OpenCall) LostCall {
	return LostCall{ID: call.ID, Request: Request{Route: s.routeOf(r.Model, call.Endpoint, call.ProviderModel)}, Key: call.Key,
		Origin:  Origin{Conversation: key, Turn: r.Turn, Generation: r.Generation},
		Session: call.Session, ResponseID: call.ResponseID, Age: call.Age}
}

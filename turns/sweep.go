package turns

import (
	"context"
	"time"
)

// sweepBatch bounds how many stale replies one pass resolves; the next pass takes the rest.
const sweepBatch = 200

// workerMemory is how long a dead worker's row is kept for people to see.
const workerMemory = time.Hour

// sweepLoop resolves, each interval, the claims of workers that are gone and replies past their deadline.
func (s *Service) sweepLoop(ctx context.Context) error {
	ticker := time.NewTicker(s.set.Sweep)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			ctx, cancel := context.WithTimeout(ctx, max(s.set.Sweep, time.Second))
			if err := s.sweep(ctx, StaleQuery{Limit: sweepBatch}); err != nil {
				s.logger.Warn("sweep failed", "err", err)
			}
			if err := s.store.ForgetWorkers(ctx, workerMemory); err != nil {
				s.logger.Warn("dead workers not forgotten", "err", err)
			}
			cancel()
		}
	}
}

// resolve sweeps one conversation for a request that met a claim with an expired lease.
func (s *Service) resolve(ctx context.Context, key ConversationKey) error {
	return s.sweep(ctx, StaleQuery{Key: &key, Limit: sweepBatch})
}

// sweep buries first, then judges: a worker that is not dead may still renew, and its claims are not touched.
func (s *Service) sweep(ctx context.Context, q StaleQuery) error {
	if s.lease.mayCondemn() {
		buried, err := s.store.BuryWorkers(ctx)
		if err != nil {
			return err
		}
		for _, id := range buried {
			s.logger.Warn("worker declared dead", "worker_id", id.String())
		}
	}
	stale, err := s.store.StaleReplies(ctx, q)
	if err != nil {
		return err
	}
	for _, reply := range stale {
		if err := s.sweepOne(ctx, reply); err != nil {
			return err
		}
	}
	return nil
}

// sweepOne ends one stale reply: what its worker had checkpointed is its partial content, and the calls it had open are
// booked by estimate, since the provider went on and bills them.
func (s *Service) sweepOne(ctx context.Context, stale StaleReply) error {
	r := stale.Reply
	sw := Sweeping{
		Fence: Fence{Key: stale.Key, Reply: r.ID, Epoch: r.Epoch, Owner: r.Owner},
		Verb:  VerbSweep, Status: StatusAbandoned, Reason: ReasonLeaseExpired, Content: r.Content, Length: r.Length, Usage: r.Usage,
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
	for _, call := range stale.OpenCalls {
		usage := EstimateUsage(call.RequestBytes, int(r.Length))
		usage.Wasted = usage.Total()
		sw.Calls = append(sw.Calls, CallOutcome{Key: stale.Key, ID: call.ID, Class: ClassAmbiguous, Phase: PhaseWritten,
			Usage: usage, WasteCause: string(sw.Reason)})
		sw.Usage = sw.Usage.Add(usage)
	}
	won, err := s.store.Sweep(ctx, sw)
	if err != nil || !won {
		return err
	}
	for i, call := range stale.OpenCalls {
		s.metrics.callEnded(ctx, callLabels{first: call.First, provider: call.Provider, model: call.Model}, sw.Calls[i])
	}
	s.metrics.replyEnded(ctx, sw.Status, sw.Reason)
	s.logger.Info("stale reply swept", "reply_id", r.ID.String(), "turn_id", r.Turn.String(), "reason", string(sw.Reason))
	return nil
}

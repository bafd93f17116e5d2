package turns

import (
	"context"
	"time"
)

// stopTime bounds asking a provider to stop a response.
const stopTime = 5 * time.Second

// abandonAndStop ends the run, and stops what its provider would go on with although nobody listens any more.
func (r *run) abandonAndStop(ctx context.Context, reason Reason, retryAfter time.Duration, c callResult) {
	stopped := make(chan struct{})
	lost := r.lostCall(nil)
	go func() {
		defer close(stopped)
		if !c.closed {
			r.stopAtProvider(ctx, lost)
		}
	}()
	r.abandon(ctx, reason, retryAfter, c)
	<-stopped
}

// stopAtProvider asks a provider to stop a response, where that can be asked for. It is paid for in any case, and only less
// is.
func (s *Service) stopAtProvider(ctx context.Context, lost LostCall) {
	if !lost.Request.Route.Capabilities.Cancel || lost.ResponseID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if err := s.generator.Stop(ctx, lost); err != nil {
		s.logger.WarnContext(ctx, "provider not asked to stop", "turn_id", lost.Origin.Turn.String(), "err", err)
	}
}

// handOver leaves a reply, as far as it is, to the worker that takes it over once this one is retired: its provider can be
// asked about it from there, and may go on with it. ok is false where that can't be, or the store did not take what there is.
func (r *run) handOver(ctx context.Context) (ok bool) {
	if !r.askable() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTry)
	defer cancel()
	results, err := r.store.Checkpoint(ctx, []Checkpoint{r.tail()})
	if err != nil || !results[0].Held || results[0].CancelRequested {
		return false
	}
	r.over = true
	r.log.Move()
	r.logger.InfoContext(ctx, "reply left to be taken over", "turn_id", r.reply.Turn.String(), "reply_id", r.reply.ID.String())
	return true
}

package turns

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// complete ends the run with a reply that is whole.
func (r *run) complete(ctx context.Context, c callResult) {
	outcome := r.outcome(c, "")
	r.finish(ctx, Ending{Verb: VerbComplete, Status: StatusComplete, StopReason: c.stopReason, Call: &outcome})
}

// abandon ends the run without a result that counts; the partial content is kept for display.
func (r *run) abandon(ctx context.Context, reason Reason, retryAfter time.Duration, c callResult) {
	e := Ending{Verb: VerbAbandon, Status: StatusAbandoned, Reason: reason, RetryAfter: retryAfter}
	if c.err != nil {
		e.ProviderCode = c.err.Code
	}
	if !c.closed {
		outcome := r.outcome(c, string(reason))
		e.Call = &outcome
	}
	r.finish(ctx, e)
}

// refusals is how often an ending is tried again that the database answers with an error of its own.
const refusals = 8

// finish commits an ending and only then tells the followers. While the database is out of reach the commit is tried for
// as long as the service lives: paid output is not thrown away for that. Its outcome is never assumed: after an error the
// row is read again. An ending that the database keeps refusing is given up, and said so.
func (r *run) finish(ctx context.Context, e Ending) {
	r.closeCalls(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	e.Fence = r.fence
	e.Content, e.Length = r.log.Tail(0)
	e.StoredLength, e.ResponseID = r.stored, r.knownResponse()
	e.Usage = r.usage
	if e.Call != nil {
		e.Usage = e.Usage.Add(e.Call.Usage)
	}
	begun, refused := time.Now(), 0
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		ended, ok, err := r.end(ctx, &e)
		if err == nil {
			r.announce(ctx, e, ended, ok)
			return
		}
		r.logger.Warn("reply's ending not stored yet", "turn_id", r.reply.Turn.String(), "err", err)
		if time.Since(begun) > r.set.Lease {
			r.log.Stall(err)
		}
		if !errors.Is(err, ErrStoreUnavailable) && !errors.Is(err, ErrUnknownOutcome) {
			refused++
		}
		if refused > refusals || !pause(r.last, time.Duration(rand.Int64N(int64(wait)))+wait/2) {
			r.countLost()
			r.logger.Error("reply's ending lost", "turn_id", r.reply.Turn.String(), "reply_id", r.reply.ID.String())
			r.log.Move()
			return
		}
	}
}

func (s *Service) countLost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost++
}

// end writes the ending once and finds out what became of it. ok is false if the reply is no longer this worker's.
func (r *run) end(ctx context.Context, e *Ending) (ended Reply, ok bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
	defer cancel()
	results, err := r.store.End(ctx, []Ending{*e})
	if err == nil && results[0].Won {
		return r.endedReply(*e, results[0].EndTime), true, nil
	}
	if err != nil && !errors.Is(err, ErrUnknownOutcome) {
		return Reply{}, false, err
	}
	row, readErr := r.store.ReadReply(ctx, r.key, r.reply.ID)
	if errors.Is(readErr, ErrNotFound) {
		return Reply{}, false, nil
	}
	if readErr != nil {
		return Reply{}, false, readErr
	}
	mine := row.Epoch == r.fence.Epoch && row.Owner == r.fence.Owner
	switch {
	case mine && row.Settled && row.Status == e.Status && row.Reason == e.Reason && row.Length == e.Length:
		return r.endedReply(*e, row.EndTime), true, nil
	case mine && row.Status == StatusInFlight:
		e.StoredLength = row.Length // a checkpoint whose answer was lost had landed
		if err == nil {
			err = errors.New("stored log has another length")
		}
		return Reply{}, false, err
	case mine && row.Status == StatusAbandoned && !row.Settled:
		return r.comeBack(ctx, *e, row)
	}
	return Reply{}, false, nil
}

func (r *run) endedReply(e Ending, at time.Time) Reply {
	reply := r.reply
	reply.Status, reply.Reason, reply.StopReason = e.Status, e.Reason, e.StopReason
	reply.Length, reply.Usage, reply.EndTime = e.Length, e.Usage, at
	reply.ProviderCode, reply.RetryAfter = e.ProviderCode, e.RetryAfter
	return reply
}

// announce tells followers and counters how the reply ended. A reply that is no longer this worker's has its call closed
// all the same, and its followers read on from the store.
func (r *run) announce(ctx context.Context, e Ending, ended Reply, ok bool) {
	if e.Call != nil && !ok {
		if e.Call.Usage.Total() > 0 {
			e.Call.WasteCause, e.Call.Usage.Wasted = wasteLost, e.Call.Usage.Total()
		}
		r.closeLost(ctx, *e.Call)
	} else if e.Call != nil {
		r.metrics.callEnded(ctx, r.labels(), *e.Call)
	}
	if !ok {
		r.log.Move()
		return
	}
	r.metrics.replyEnded(ctx, ended.Status, ended.Reason)
	r.log.End(ended)
}

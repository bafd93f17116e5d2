package turns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// complete ends the run with a reply that is whole.
func (r *run) complete(ctx context.Context, c callResult) {
	outcome := r.outcome(c, "")
	if outcome.Usage.Source == SourceReported && outcome.Extra == 0 {
		r.estimates.learn(r.request.Route, r.call.RequestBytes, c.replyBytes, outcome.Usage)
	}
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
		r.payFor(&outcome, string(reason))
		e.Call = &outcome
	}
	r.finish(ctx, e)
}

// refusals is how often an ending is tried again that the database answers with an error of its own.
const refusals = 8

// finish commits an ending and only then tells the followers. While the database is out of reach the commit is tried for
// as long as the service lives, and from one lease on the ending lies in the spool too: paid output is not thrown away.
// Its outcome is never assumed: after an error the row is read again. An ending that the database keeps refusing is left
// to the spool.
func (r *run) finish(ctx context.Context, e Ending) {
	ctx, span := r.endingSpan(ctx, e)
	defer span.End()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	f := r.finishing(e)
	begun, refused := time.Now(), 0
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		ended, ok, err := f.store(ctx)
		if err == nil {
			r.announce(ctx, f.ending, ended, ok)
			f.drop(ctx)
			if r.inLine {
				r.advanceSoon(r.key)
			}
			return
		}
		if errors.Is(err, errNoPlace) {
			f.giveUp(ctx, err)
			r.announce(ctx, f.ending, Reply{}, false)
			return
		}
		f.say(ctx, err)
		left := r.set.Lease - time.Since(begun)
		if left <= 0 {
			f.keep(ctx)
			r.log.Stall(err)
		}
		if answered(err) {
			refused++
		}
		nap := time.Duration(rand.Int64N(int64(wait))) + wait/2
		if left > 0 {
			nap = min(nap, left) // a kill after the lease finds the ending spooled
		}
		if refused > refusals || !pause(r.last, nap) {
			f.giveUp(ctx, err)
			return
		}
	}
}

// lastTry is how long a write of an ending may go on once the service must end.
const lastTry = 2 * time.Second

// errNoPlace says that the store can have no row for what became of a reply: its user turn is gone, or the reply was
// settled with less than its owner has.
var errNoPlace = errors.New("the store has no place for it")

// say logs why the ending is not stored yet.
func (f *finishing) say(ctx context.Context, err error) {
	if f.said && !answered(err) {
		return
	}
	f.said = true
	f.logger.WarnContext(ctx, "reply's ending not stored yet", "turn_id", f.reply.Turn.String(), "reply_id", f.reply.ID.String(), "err", err)
}

// answered reports an error that the database gave itself, so that trying again is no sure cure.
func answered(err error) bool {
	for _, away := range []error{errPutBack, ErrStoreUnavailable, ErrUnknownOutcome, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, away) {
			return false
		}
	}
	return true
}

// finishing is a run's ending on its way into the store. Its run's mu is held.
type finishing struct {
	*run
	ending Ending
	// filled says that ending holds the whole log, failed that the spool did not take it, and said that the log tells of a
	// database that is away: once for each reply, since there may be many of them and of tries.
	filled, failed, said bool
	// keptAs is the fence under which it lies in the spool; zero if it does not.
	keptAs Fence
}

func (r *run) finishing(e Ending) *finishing {
	e.Fence = r.fence
	e.StoredLength, e.ResponseID = r.stored, r.knownResponse()
	e.Usage = r.usage
	if e.Call != nil {
		e.Usage = e.Usage.Add(e.Call.Usage)
	}
	return &finishing{run: r, ending: e}
}

// store closes the calls that are still open and writes the ending once. ok is false if the reply is no longer this
// worker's.
func (f *finishing) store(ctx context.Context) (ended Reply, ok bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
	defer cancel()
	// A database that does not answer must not take the time in which the process may still spool.
	defer context.AfterFunc(f.last, func() {
		pause(ctx, lastTry)
		cancel()
	})()
	f.closeCalls(ctx)
	if err := f.fill(ctx); err != nil {
		return Reply{}, false, err
	}
	return f.end(ctx, &f.ending)
}

// fill takes the whole log into the ending. A reply of which a part is lost is not complete, whatever the provider said:
// it keeps what there is before the gap.
func (f *finishing) fill(ctx context.Context) error {
	if f.filled {
		return nil
	}
	pieces, length, err := f.whole(ctx)
	if isGone(err) {
		return nil // the ending finds that out, and needs no content
	}
	if err != nil && !errors.Is(err, errHole) {
		return err
	}
	e := &f.ending
	e.Content, e.Length, f.filled = pieces, length, true
	if err == nil || e.Status != StatusComplete {
		return nil
	}
	f.logger.ErrorContext(ctx, "a part of a reply's log is lost", "turn_id", f.reply.Turn.String(), "reply_id", f.reply.ID.String())
	e.Verb, e.Status, e.Reason, e.StopReason = VerbAbandon, StatusAbandoned, ReasonAmbiguous, ""
	if e.Call != nil {
		call := e.Call.wasted(wasteLost)
		e.Usage.Wasted += call.Usage.Wasted - e.Call.Usage.Wasted
		e.Call = &call
	}
	return nil
}

// keep puts the ending into the spool, once for each fence: a row that is put back has another one.
func (f *finishing) keep(ctx context.Context) {
	if f.keptAs == f.ending.Fence {
		return
	}
	ctx = context.WithoutCancel(ctx)
	err := f.spool.Keep(ctx, f.spooled())
	if err == nil {
		f.drop(ctx)
		f.keptAs = f.ending.Fence
	} else if !f.failed {
		f.failed = true
		f.logger.ErrorContext(ctx, "reply's ending not spooled", "turn_id", f.reply.Turn.String(), "err", err)
	}
}

// spooled is the ending as it is kept, with the part of the log that is in memory.
func (f *finishing) spooled() Spooled {
	s := Spooled{Claim: f.claim, Reply: f.reply, Call: *f.call, Unclosed: f.unclosed, Reviver: f.reviver, Ending: f.ending,
		KeptAt: time.Now().UTC()}
	s.Claim.NewTurn, s.Reply.Content = nil, nil
	for _, p := range f.past {
		s.Past = append(s.Past, SpooledCall{p.call, p.outcome})
	}
	if !f.filled {
		s.First = f.log.First()
		s.Ending.Content, s.Ending.Length = f.log.Tail(s.First)
	}
	return s
}

// drop removes what lies in the spool of an ending that is stored. What stays there by an error is found stored later.
func (f *finishing) drop(ctx context.Context) {
	if f.keptAs == (Fence{}) {
		return
	}
	if err := f.spool.Drop(context.WithoutCancel(ctx), f.keptAs); err != nil {
		f.logger.WarnContext(ctx, "spooled ending not removed", "reply_id", f.reply.ID.String(), "err", err)
	}
	f.keptAs = Fence{}
}

// giveUp leaves the ending to the spool, or loses it.
func (f *finishing) giveUp(ctx context.Context, why error) {
	f.failed = false
	f.keep(ctx)
	kept := f.keptAs == f.ending.Fence
	f.countUnstored(kept)
	attrs := []any{"turn_id", f.reply.Turn.String(), "reply_id", f.reply.ID.String(), "err", why}
	if kept {
		f.logger.WarnContext(ctx, "reply's ending is left to the spool", attrs...)
	} else {
		f.logger.ErrorContext(ctx, "reply's ending lost", attrs...)
	}
	f.log.Move()
}

// countUnstored counts an ending that was not stored by the run that made it.
func (s *Service) countUnstored(spooled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if spooled {
		s.spooled++
		return
	}
	s.lost++
	s.metrics.endingLost(context.Background())
}

// end writes the ending once and finds out what became of it. ok is false if the reply is no longer this worker's.
func (r *run) end(ctx context.Context, e *Ending) (ended Reply, ok bool, err error) {
	e.Tenant = r.claim.Tenant
	results, err := r.store.End(ctx, []Ending{*e})
	if err == nil && results[0].Won {
		r.inLine = results[0].InLine
		return r.endedReply(*e, results[0].EndTime), true, nil
	}
	if err != nil && !errors.Is(err, ErrUnknownOutcome) {
		return Reply{}, false, err
	}
	row, readErr := r.store.ReadReply(ctx, r.key, r.reply.ID)
	if errors.Is(readErr, ErrNotFound) {
		return r.endLost(ctx, e)
	}
	if isGone(readErr) {
		return Reply{Status: StatusAbandoned, Reason: ReasonDeleted}, false, nil
	}
	if readErr != nil {
		return Reply{}, false, readErr
	}
	if r.adopts(ctx, row) {
		e.Fence = r.fence
	}
	mine := row.under(r.fence)
	switch {
	case mine && (row.Settled || row.Status == StatusHeld) && row.Status == e.Status && row.Reason == e.Reason && row.Length == e.Length:
		return r.endedReply(*e, row.EndTime), true, nil
	case mine && row.Status == StatusInFlight:
		e.StoredLength = row.Length // a checkpoint whose answer was lost had landed
		if err == nil {
			err = errors.New("stored log has another length")
		}
		return Reply{}, false, err
	case mine && row.Status == StatusAbandoned && !row.Settled:
		return r.comeBack(ctx, *e, row)
	case mine && row.Status == StatusHeld:
		return r.finishHeld(ctx, *e)
	case mine && row.Settled && row.Status == StatusAbandoned && row.Length < e.Length:
		return Reply{}, false, fmt.Errorf("it is settled with less: %w", errNoPlace)
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
	defer r.settleSoon(r.key, r.reply.Turn, r.reply.Generation)
	if e.Call != nil && !ok {
		r.closeLost(ctx, e.Call.wasted(cmp.Or(string(ended.Reason), wasteLost)))
	} else if e.Call != nil && e.Call.ID != r.counted {
		r.metrics.callEnded(ctx, r.call.labels(), *e.Call)
	}
	if !ok {
		r.log.Move()
		return
	}
	r.metrics.replyEnded(ctx, ended.Status, ended.Reason)
	r.saw(ctx, ended.Status, ended.Reason)
	r.metrics.replyTook(ctx, ended.Status, r.since)
	r.answerAttached(ctx, ended)
	r.log.End(ended)
}

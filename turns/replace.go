package turns

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/turnd/turnd/internal/instrument"
)

// replace ends the reply and starts the next attempt of its generation in the same commit, where policy says that a further
// call is made by itself: after content or an unknown outcome another call is always another reply, so that there are never
// two different bytes under one reply and offset. Followers are told that the next one takes its place.
func (r *run) replace(ctx context.Context, c callResult, next Next) {
	if !pause(ctx, next.Wait) {
		r.stopped(ctx, context.Cause(ctx), c)
		return
	}
	outcome := r.outcome(c, string(next.Reason))
	r.payFor(&outcome, string(next.Reason))
	e := Ending{Verb: VerbReplace, Status: StatusAbandoned, Reason: next.Reason, Call: &outcome}
	if c.err != nil {
		e.ProviderCode = c.err.Code
	}
	successor, err := r.commitReplacement(ctx, &e, next)
	if err != nil {
		r.logger.WarnContext(ctx, "reply not replaced", "turn_id", r.reply.Turn.String(), "reply_id", r.reply.ID.String(), "err", err)
		r.abandon(ctx, next.Reason, 0, c)
		return
	}
	if outcome.ID != r.counted {
		r.metrics.callEnded(ctx, r.call.labels(), outcome)
	}
	r.metrics.replyEnded(ctx, e.Status, e.Reason)
	r.saw(ctx, e.Status, e.Reason)
	r.metrics.replyTook(ctx, e.Status, r.since)
	successor.attached = r.detach()
	r.logger.InfoContext(ctx, "reply replaced", "turn_id", r.reply.Turn.String(), "reply_id", r.reply.ID.String(),
		"by", successor.reply.ID.String(), "attempt", successor.reply.Attempt)
	r.launch(successor)
}

// errNoSuccessor says that the generation may have no further attempt: it was stopped, a later turn was started, or the
// reply is another's by now.
var errNoSuccessor = errors.New("the generation may have no further attempt")

// commitReplacement writes a replacement and gives the run of the reply that took the place. The successor's own place among
// the running replies is taken.
func (r *run) commitReplacement(ctx context.Context, e *Ending, next Next) (successor *run, err error) {
	ctx, span := r.tracer.start(ctx, instrument.SpanReplace)
	defer span.End()
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
	defer cancel()
	f := r.finishing(*e)
	f.closeCalls(ctx)
	if err := f.fill(ctx); err != nil {
		return nil, err
	}
	var kept []Piece
	if next.Continue {
		kept = continuable(f.ending.Content)
	}
	if next.Continue && kept == nil && next.Reason != ReasonAmbiguous {
		return nil, errNoSuccessor // there is nothing to go on from, and no policy wants a call of its own
	}
	id, owner := ReplyID{newID()}, r.lease.worker()
	for range lostRounds {
		pending, err := r.successor(ctx, id, owner, kept, next.Wait)
		if err != nil {
			return nil, err
		}
		pending.tracedSuccessor(span)
		f.ending.StoredLength = r.stored
		result, err := r.store.Replace(ctx, Replacement{Ending: f.ending, Claim: pending.claim})
		won := err == nil && result.Won
		for wait := unsurePause; !won; wait *= 2 {
			var readErr error
			if won, readErr = r.foundReplaced(ctx, id, owner); readErr == nil || !errors.Is(err, ErrUnknownOutcome) || !pause(ctx, wait) {
				break // a commit without an answer is never assumed: it is read again until it is known
			}
		}
		if won {
			return r.succeeded(f.ending, e, pending), nil
		}
		if err != nil && !errors.Is(err, ErrUnknownOutcome) {
			return nil, err
		}
		if !pause(ctx, unsurePause) {
			return nil, err
		}
	}
	return nil, lostRace()
}

// foundReplaced reads whether a replacement without an answer has landed, and how long the stored log is if it has not. The
// caller holds mu.
func (r *run) foundReplaced(ctx context.Context, id ReplyID, owner WorkerID) (landed bool, err error) {
	row, err := r.store.ReadReply(ctx, r.key, id)
	switch {
	case err == nil:
		return row.Status == StatusInFlight && row.Owner == owner, nil
	case !errors.Is(err, ErrNotFound):
		return false, err
	}
	old, err := r.store.ReadReply(ctx, r.key, r.reply.ID)
	if err == nil && old.Status == StatusInFlight && old.under(r.fence) {
		r.stored = old.Length
	}
	return false, err
}

// succeeded hands the slot over to the run of the successor. The caller holds mu.
func (r *run) succeeded(ended Ending, e *Ending, p pendingRun) *run {
	*e = ended
	r.over = true
	row := p.claim.row(r.reply.CreateTime)
	s := r.newRun(p, row)
	old := r.endedReply(ended, row.CreateTime)
	old.ReplacedBy = row.ID
	s.place = r.place
	r.admission.carry(s.place)
	r.log.End(old)
	return s
}

// successor is the claim of the next attempt of the run's generation, from how things stand now. The caller holds mu.
func (r *run) successor(ctx context.Context, id ReplyID, owner WorkerID, kept []Piece, waited time.Duration) (pendingRun, error) {
	st, err := r.store.Lookup(ctx, LookupQuery{Key: r.key, Turn: r.reply.Turn, Cursor: r.reply.ID})
	if err != nil {
		return pendingRun{}, err
	}
	mine := st.Running != nil && st.Running.ID == r.reply.ID && st.Running.under(r.fence)
	if st.Deleted || !mine || st.Turn == nil || st.erased() || st.LastTurn != r.reply.Turn || st.CancelledGeneration >= r.reply.Generation ||
		st.Turn.Generation > r.reply.Generation || !r.lease.holds(owner) {
		return pendingRun{}, errNoSuccessor
	}
	q := r.question(r.request.Route)
	q.Partial = kept
	built, err := r.requestOf(ctx, r.key, q)
	if err != nil {
		return pendingRun{}, err
	}
	request := built.Request
	if kept == nil && r.kept == nil {
		r.metrics.rebuiltRequest(ctx, request.Hash == r.request.Hash)
	}
	p := pendingRun{request: request, made: r.made, turn: r.turn, limit: r.deadlineLeft(), claim: r.claim, kept: kept}
	c := &p.claim
	c.ExpectVersion, c.NextSeq, c.NewTurn, c.Start, c.Supersede = st.Version, max(st.NextSeq, 1), nil, nil, ReplyID{}
	c.Reserve = nil // its generation has its share
	n := &c.Reply
	n.ID, n.Owner, n.Epoch, n.Attempt = id, owner, 1, r.attemptAfter(st)
	n.Calls, n.Waited = r.reply.Calls+1, r.reply.Waited+waited
	n.Route, n.RequestHash, n.BuilderVersion, n.WindowStart = request.Route, slices.Clone(request.Hash[:]), request.BuilderVersion, built.Start
	n.Deadline = max(r.deadlineLeft(), 0) + replyGrace
	c.Call = newCall(CallID{newID()}, 1, keyOf(r.place.Tenant, r.origin(), request), request, n.OnAmbiguous)
	c.Call.Layer = cmp.Or(r.layer, LayerProvider)
	return p, nil
}

// Successor is the reply that followers of an abandoned one go on with: policy made the next attempt by itself. A reply that
// another took the place of by a person's choice has none.
func (r Reply) Successor() (ReplyID, bool) {
	return r.ReplacedBy, r.Status == StatusAbandoned && r.Reason != ReasonSuperseded && !r.ReplacedBy.IsZero()
}

package turns

import (
	"context"
	"errors"
	"slices"
)

// A failover to a standby that had not yet received the last commits takes rows away that were acknowledged. The worker
// that runs such a reply notices by its next write, which finds no row at all, and puts the row back through the same
// guards as any claim: its followers see nothing of it. Where the slot was given away meanwhile, what was made is kept as
// an abandoned reply, so that what was paid for stays on the ledger.

// lostRounds bounds how often a reply that is put back loses a race and looks again before the next tick.
const lostRounds = 4

// errPutBack says that a reply's row was put back, so that its ending is to be written again under its new fence.
var errPutBack = errors.New("the reply's row was lost and is put back")

// pastCall is an earlier call of a run with its outcome.
type pastCall struct {
	call    NewCall
	outcome CallOutcome
}

// vanished acts on a write that found no row. The caller holds mu.
func (r *run) vanished(ctx context.Context) {
	back, err := r.reclaim(ctx)
	switch {
	case err != nil:
		r.logger.WarnContext(ctx, "lost reply not put back yet", "reply_id", r.reply.ID.String(), "err", err)
	case !back:
		r.over = true
		r.cancel(errLost)
	case r.log.First() > 0:
		// Its chunks went with it, and memory no longer holds the beginning.
		r.over = true
		r.cancel(errHole)
	}
}

// reclaim inserts the row of a reply that the store has lost, under the next epoch. back is false if that can't be: its
// slot is taken, its generation was stopped, or its conversation is gone. After an error it is not known; the caller tries
// again. The caller holds mu.
func (r *run) reclaim(ctx context.Context) (back bool, err error) {
	owner := r.lease.worker()
	if !r.lease.holds(owner) {
		return false, Unavailable(errLeaseOut)
	}
	for range lostRounds {
		st, err := r.store.Lookup(ctx, LookupQuery{Key: r.key, Turn: r.reply.Turn, Cursor: r.reply.ID})
		if err != nil {
			return false, err
		}
		if st.Cursor != nil {
			return r.isBack(ctx, *st.Cursor, owner), nil
		}
		claim, ok := r.claimAgain(st, owner)
		if !ok {
			return false, nil
		}
		results, err := r.store.Claim(ctx, []Claim{claim})
		switch {
		case errors.Is(err, ErrUnknownOutcome):
			if !pause(ctx, unsurePause) {
				return false, err
			}
		case errors.Is(err, ErrNotFound):
			return false, nil // the row it hung below is lost too
		case err != nil:
			return false, err
		case results[0].Won:
			r.putBack(ctx, claim.Reply.Epoch, owner, 0)
			return true, nil
		}
	}
	return false, lostRace()
}

// isBack takes over the fence of a row that was found after all: an insertion without an answer had landed.
func (r *run) isBack(ctx context.Context, row Reply, owner WorkerID) bool {
	if row.Status != StatusInFlight || row.Owner != owner || row.Epoch < r.fence.Epoch || row.Epoch > r.fence.Epoch+1 {
		return false
	}
	r.putBack(ctx, row.Epoch, owner, row.Length)
	return true
}

// putBack goes on with a reply whose row is there again, and stores again what was lost with it.
func (r *run) putBack(ctx context.Context, epoch int64, owner WorkerID, stored uint32) {
	r.goOn(epoch, owner, stored)
	r.noted = ""
	r.logger.WarnContext(ctx, "reply was lost by the database and is put back", "reply_id", r.reply.ID.String(),
		"turn_id", r.reply.Turn.String(), "epoch", epoch)
	r.bookAgain(ctx)
}

// claimAgain is the claim that inserts the reply again, if things stand so that it may.
func (r *run) claimAgain(st Standing, owner WorkerID) (Claim, bool) {
	c := r.claim
	c.ExpectVersion, c.NextSeq = st.Version, max(st.NextSeq, 1)
	c.NewTurn, c.Start, c.Supersede, c.Call, c.Reserve = nil, nil, ReplyID{}, *r.call, r.claim.Reserve.again()
	if st.Deleted || st.erased() || st.Running != nil || r.fence.Epoch >= MaxEpoch {
		return c, false
	}
	if st.Live != nil {
		if st.Live.Status != StatusComplete || st.Live.ID != r.claim.Supersede {
			return c, false
		}
		c.Supersede = st.Live.ID // the reply whose place it had taken is live again: that was lost in the same commit
	}
	switch {
	case st.Turn == nil:
		if c.NewTurn = r.turn; r.turn == nil {
			return c, false
		}
	case st.placeInLine(r.reply.Turn) >= 0 && r.turn != nil:
		c.Start = &Start{Parent: r.turn.Parent} // only its start was lost
	case st.LastTurn != r.reply.Turn, st.CancelledGeneration >= r.reply.Generation, st.Turn.Generation > r.reply.Generation:
		return c, false
	}
	n := &c.Reply
	r.keepOptions(n, st)
	n.ID, n.Epoch, n.Owner, n.Attempt = r.reply.ID, r.fence.Epoch+1, owner, r.attemptAfter(st)
	n.Calls, n.Waited = r.reply.Calls-len(r.earlier()), r.reply.Waited
	n.Deadline = max(r.deadlineLeft(), 0) + replyGrace
	return c, true
}

// attemptAfter is the reply's place among the attempts that are stored.
func (r *run) attemptAfter(st Standing) int32 {
	if st.Newest == nil {
		return r.reply.Attempt
	}
	return max(r.reply.Attempt, st.Newest.Attempt+1)
}

// earlier are the calls before the one whose row comes with the claim.
func (r *run) earlier() []pastCall {
	return slices.DeleteFunc(slices.Clone(r.past), func(p pastCall) bool { return p.call.ID == r.call.ID })
}

// bookAgain puts the rows of earlier calls back, which were lost with the reply's.
func (r *run) bookAgain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, submitTime)
	defer cancel()
	for _, p := range r.earlier() {
		permit := CallPermit{Fence: r.fence, Call: p.call, Turn: r.reply.Turn, MaxCalls: r.set.MaxCalls}
		if _, err := r.store.PermitCalls(ctx, []CallPermit{permit}); err != nil {
			r.logger.WarnContext(ctx, "row of an earlier call not put back", "turn_id", r.reply.Turn.String(), "err", err)
		}
	}
	for _, p := range r.past { // one for each conversation in a statement
		if err := r.store.CloseCalls(ctx, []CallOutcome{p.outcome}); err != nil {
			r.logger.WarnContext(ctx, "earlier call not closed again", "turn_id", r.reply.Turn.String(), "err", err)
		}
	}
}

// endLost is what becomes of an ending whose reply has no row: the row is put back and the ending written again, which
// errPutBack asks for, or what there is of it is kept as waste. The caller holds mu.
func (r *run) endLost(ctx context.Context, e *Ending) (ended Reply, ok bool, err error) {
	back, err := r.reclaim(ctx)
	if err != nil {
		return Reply{}, false, err
	}
	if back {
		e.Fence, e.StoredLength = r.fence, r.stored
		return Reply{}, false, errPutBack
	}
	return Reply{}, false, r.keepLost(ctx, *e)
}

// keepLost keeps a reply whose row is lost and whose slot is taken by now: abandoned, with all that is known of it. A whole
// one can be selected later. It is kept once, however often it is tried. The caller holds mu.
func (r *run) keepLost(ctx context.Context, e Ending) error {
	lost := r.lostReply(e)
	for range lostRounds {
		st, err := r.store.Lookup(ctx, LookupQuery{Key: r.key, Turn: r.reply.Turn, Cursor: r.reply.ID})
		switch {
		case err != nil:
			return err
		case st.Cursor != nil:
			return nil // it is kept, or was put back and ended by somebody
		case st.Deleted || st.erased():
			if e.Call != nil {
				r.closeLost(ctx, e.Call.wasted(string(ReasonDeleted)))
			}
			return nil
		case st.Turn == nil:
			r.logger.ErrorContext(ctx, "reply was lost by the database with its turn", "reply_id", r.reply.ID.String())
			return errNoPlace
		}
		r.keepOptions(&lost.Reply, st)
		lost.ExpectVersion, lost.NextSeq, lost.Reply.Attempt = st.Version, max(st.NextSeq, 1), r.attemptAfter(st)
		won, err := r.store.Restore(ctx, lost)
		switch {
		case won:
			if n := len(lost.Calls) - 1; e.Call != nil { // those before it were counted as they ended
				r.metrics.callEnded(ctx, lost.Calls[n].labels(), lost.Outcomes[n])
			}
			r.metrics.replyEnded(ctx, StatusAbandoned, lost.Ending.Reason)
			r.logger.WarnContext(ctx, "reply was lost by the database and its slot is taken", "reply_id", r.reply.ID.String(), "turn_id", r.reply.Turn.String())
			return nil
		case err != nil && !errors.Is(err, ErrUnknownOutcome):
			return err
		case err != nil && !pause(ctx, unsurePause):
			return err
		}
	}
	return lostRace()
}

// lostReply is what is kept of a reply whose slot is taken.
func (r *run) lostReply(e Ending) LostReply {
	reason := ReasonLeaseExpired
	if e.Status == StatusComplete {
		reason = ReasonSuperseded
	}
	e.Verb, e.Status, e.Reason = VerbAbandon, StatusAbandoned, reason
	l := LostReply{Key: r.key, Tenant: r.claim.Tenant, Conversation: r.claim.Conversation, Turn: r.reply.Turn, Reply: r.claim.Reply}
	l.Reply.ID, l.Reply.Epoch, l.Reply.Owner = r.reply.ID, r.fence.Epoch, r.fence.Owner
	l.Reply.Calls, l.Reply.Waited = r.reply.Calls, r.reply.Waited
	calls := slices.Clone(r.past)
	if e.Call != nil {
		calls = append(calls, pastCall{*r.call, *e.Call})
	}
	e.Usage = Usage{}
	for _, p := range calls {
		o := p.outcome.wasted(wasteLost)
		l.Calls, l.Outcomes = append(l.Calls, p.call), append(l.Outcomes, o)
		e.Usage = e.Usage.Add(o.Usage)
	}
	l.Ending = e
	return l
}

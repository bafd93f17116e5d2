package turns

import (
	"context"
	"errors"
	"time"

	"github.com/turnd/turnd/internal/instrument"
)

// cancelGrace is how long a canceller waits for the owner to end the reply itself, with the exact partial; stopPoll is how
// often it looks.
const (
	cancelGrace = time.Second
	stopPoll    = 25 * time.Millisecond
)

// Cancel stops the reply that an id names: a reply's own, or a user turn's, which stands for its live reply. Nothing of
// its generation starts after it. It returns the reply, without content, once that has ended, with the state it reached:
// complete, if that came first. Cancelling what has ended changes nothing and is no error.
func (s *Service) Cancel(ctx context.Context, caller Caller, conversation ConversationID, id RowID) (Reply, error) {
	ctx, span := s.tracer.start(ctx, instrument.SpanCancel)
	defer span.End()
	key := KeyOf(caller.Tenant, conversation)
	turn, err := s.store.FindTurn(ctx, key, id)
	if err != nil {
		return Reply{}, err
	}
	q := LookupQuery{Tenant: caller.Tenant, Key: key, Turn: turn.ID}
	if turn.ID.Row() != id {
		q.Cursor = ReplyID(id)
	}
	// A dead worker's reply is not resolved first: it ends as cancelled, by the stop.
	st, err := s.takeOut(ctx, q)
	if err != nil {
		return Reply{}, outOfTime(err)
	}
	target := st.target()
	if !q.Cursor.IsZero() {
		target = st.Cursor
	}
	switch {
	case st.Deleted:
		return Reply{}, ConversationDeleted()
	case st.erased():
		return Reply{}, TurnDeleted()
	case target == nil:
		return Reply{}, NotFound("reply", "reply_id")
	case !st.stoppable(*target):
		LinkReply(ctx, *target)
		return *target, nil
	}
	LinkReply(ctx, *target)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
	defer cancel()
	var atWork *LostCall
	if target.Status == StatusHeld {
		if atWork, err = s.cancelHeld(ctx, caller.Tenant, key, target.ID); err != nil {
			return Reply{}, outOfTime(err)
		}
	}
	reply, err := s.stopTurn(ctx, key, *target, TurnID{})
	if atWork != nil {
		s.stopAtProvider(ctx, *atWork)
	}
	if err == nil && !q.Cursor.IsZero() && reply.ID != target.ID {
		reply, err = s.store.ReadReply(ctx, key, target.ID)
		reply.Content = nil
	}
	return reply, outOfTime(err)
}

// target is the turn's live reply, or its newest.
func (st Standing) target() *Reply {
	if st.Live != nil {
		return st.Live
	}
	return st.Newest
}

// stoppable reports whether a stop of a reply's generation is still to be asked for: the reply runs or is held, or it is
// the last attempt of a generation that sending the turn again would go on with.
func (st Standing) stoppable(r Reply) bool {
	return r.Status.stoppable() || st.Live == nil && st.Newest.ID == r.ID && r.Reason.Curable()
}

// stoppable reports whether a reply in this status is still to be ended.
func (s Status) stoppable() bool { return s == StatusInFlight || s == StatusHeld }

// stopTurn asks for a stop of a reply's generation and sees it through, for a turn that is to be answered instead if by is
// not zero. A later generation of the turn stays as it is: it was asked for after what is to be stopped.
func (s *Service) stopTurn(ctx context.Context, key ConversationKey, target Reply, by TurnID) (Reply, error) {
	reply, err := s.store.RequestStop(ctx, key, target.Turn, target.Generation, by)
	if errors.Is(err, ErrNotFound) {
		if _, gone := s.store.FindTurn(ctx, key, target.Turn.Row()); isGone(gone) {
			err = gone
		}
	}
	if err != nil || reply.Status != StatusInFlight || reply.Generation != target.Generation {
		s.settleSoon(key, target.Turn, target.Generation)
		return reply, err
	}
	if r := s.runOfReply(reply.ID); r != nil {
		r.cancel(errRequested)
	} else {
		s.logs.HintStop(reply.ID)
	}
	reply, err = s.awaitStop(ctx, key, reply)
	if err != nil || reply.Status != StatusHeld {
		return reply, err
	}
	return s.store.RequestStop(ctx, key, target.Turn, target.Generation, by) // its owner held it before it heard of the stop
}

// awaitStop waits for the owner to end a reply that was asked to stop. A buried owner's reply is ended at once, a silent
// one's after the grace.
func (s *Service) awaitStop(ctx context.Context, key ConversationKey, reply Reply) (Reply, error) {
	forced := time.Now().Add(cancelGrace)
	for reply.Status == StatusInFlight {
		if reply.stale() || time.Now().After(forced) {
			if err := s.sweep(ctx, StaleQuery{Key: &key, Stopped: true, Limit: sweepBatch}); err != nil {
				return Reply{}, err
			}
		}
		id := reply.ID
		var err error
		if reply, err = s.store.ReadReply(ctx, key, id); err != nil {
			return Reply{}, err
		}
		if reply.Status == StatusInFlight && !pause(ctx, stopPoll) {
			return Reply{}, Unavailable(context.Cause(ctx))
		}
	}
	reply.Content = nil
	return reply, nil
}

// interrupt stops the reply that keeps a conversation busy, for a turn that is to be answered at once, below it or, under
// OnBusySupersede, beside it. First it sees that the turn can be: what is refused stops nothing.
func (a *arrival) interrupt(ctx context.Context, st Standing) error {
	if err := a.ready(ctx, st); err != nil {
		return err
	}
	if err := a.checkQuota(ctx); err != nil {
		return err
	}
	if waited, err := a.admitAfter(st.Running.ID); waited || err != nil {
		return err // who has waited looks again
	}
	if st.Busy != nil {
		a.beside = st.Busy
	}
	a.stopped = true
	_, err := a.stopTurn(ctx, a.key, *st.Running, a.Input.Turn)
	if errors.Is(err, ErrNotFound) || isGone(err) {
		return nil // gone meanwhile; the next look decides
	}
	return err
}

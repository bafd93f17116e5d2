package turns

import (
	"context"
	"errors"
	"time"
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
	key := KeyOf(caller.Tenant, conversation)
	turn, err := s.store.FindTurn(ctx, key, id)
	if err != nil {
		return Reply{}, err
	}
	if turn.ID.Row() != id {
		st, err := s.lookup(ctx, LookupQuery{Key: key, Turn: turn.ID, Cursor: ReplyID(id)})
		if err != nil {
			return Reply{}, err
		}
		if named := st.Cursor; named != nil && (st.Newest == nil || named.ID != st.Newest.ID) && !named.Status.stoppable() {
			return *named, nil
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
	defer cancel()
	reply, err := s.stopTurn(ctx, key, turn.ID)
	return reply, outOfTime(err)
}

// stoppable reports whether there is something to stop.
func (s Status) stoppable() bool { return s == StatusInFlight || s == StatusHeld }

// stopTurn asks for the stop and sees it through.
func (s *Service) stopTurn(ctx context.Context, key ConversationKey, turn TurnID) (Reply, error) {
	reply, err := s.store.RequestStop(ctx, key, turn)
	if err != nil || reply.Status != StatusInFlight {
		return reply, err
	}
	s.stopRun(reply.ID)
	return s.awaitStop(ctx, key, reply)
}

// stopRun tells a run of this worker to stop, if it is one.
func (s *Service) stopRun(id ReplyID) {
	s.mu.Lock()
	r := s.runs[id]
	s.mu.Unlock()
	if r != nil {
		r.cancel(errRequested)
	}
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
		} else if !pause(ctx, stopPoll) {
			return Reply{}, Unavailable(context.Cause(ctx))
		}
		id := reply.ID
		var err error
		if reply, err = s.store.ReadReply(ctx, key, id); err != nil {
			return Reply{}, err
		}
	}
	reply.Content = nil
	return reply, nil
}

// interrupt stops the reply that keeps a conversation busy, for a turn that is to be answered at once.
func (a *arrival) interrupt(ctx context.Context, running Reply) error {
	_, err := a.stopTurn(ctx, a.key, running.Turn)
	if errors.Is(err, ErrNotFound) {
		return nil // gone meanwhile; the next look decides
	}
	return err
}

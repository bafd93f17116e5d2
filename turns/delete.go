package turns

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// maxBelow bounds the rows that one DeleteTurn erases, replies among them, since they go in one commit.
	maxBelow = 50_000
	// eraseRows is how many rows of a deleted conversation go in one commit, eraseTime how long the call that deleted it goes
	// on with that, and eraseBatch how many conversations a look for others takes.
	eraseRows  = 200
	eraseTime  = time.Second
	eraseBatch = 20
	// deleteTries bounds how often a deletion without an answer is sent again.
	deleteTries = 4
	// stopsAtOnce bounds how many providers are asked to stop at the same time.
	stopsAtOnce = 8
)

// erased says that the turn was deleted.
func (st Standing) erased() bool { return st.Turn != nil && st.Turn.Erased }

// DeleteConversation stops what runs in a conversation and erases it: once it returns, nothing of it is read any more by
// anybody. Rows that are left by then go later, by any worker. What was paid stays on the ledger. Again is no error.
func (s *Service) DeleteConversation(ctx context.Context, caller Caller, id ConversationID) error {
	key := KeyOf(caller.Tenant, id)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
	defer cancel()
	d, err := surely(ctx, func() (Deletion, error) { return s.store.DeleteConversation(ctx, key) })
	if err != nil {
		return outOfTime(err)
	}
	s.endedByDeletion(ctx, key, d.Ended)
	if err := s.erase(ctx, key, time.Now().Add(eraseTime)); err != nil {
		s.logger.WarnContext(ctx, "deleted conversation not erased yet", "conversation_id", id.String(), "err", err)
	}
	return nil
}

// DeleteTurn stops what runs in a user turn's subtree and erases it, and says how many user turns went: 0 if they had gone
// before. What was paid stays on the ledger.
func (s *Service) DeleteTurn(ctx context.Context, caller Caller, conversation ConversationID, turn TurnID) (deleted int, err error) {
	key := KeyOf(caller.Tenant, conversation)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
	defer cancel()
	d, err := surely(ctx, func() (Deletion, error) { return s.store.DeleteTurn(ctx, key, turn, maxBelow) })
	if err != nil {
		return 0, outOfTime(err)
	}
	s.endedByDeletion(ctx, key, d.Ended)
	return d.Turns, nil
}

// surely sends a write that may be repeated until it has an answer.
func surely[T any](ctx context.Context, write func() (T, error)) (result T, err error) {
	for range deleteTries {
		if result, err = write(); !errors.Is(err, ErrUnknownOutcome) || !pause(ctx, unsurePause) {
			break
		}
	}
	return result, err
}

// endedByDeletion has those stop who are at work on replies that were deleted: their owners, which learn of it at their next
// checkpoint anyway, and providers whose answers nobody waits for here.
func (s *Service) endedByDeletion(ctx context.Context, key ConversationKey, ended []EndedReply) {
	var all sync.WaitGroup
	places := make(chan struct{}, stopsAtOnce)
	for _, e := range ended {
		r := e.Reply
		s.metrics.replyEnded(ctx, StatusAbandoned, ReasonDeleted)
		s.settleSoon(key, r.Turn, r.Generation)
		s.logger.InfoContext(ctx, "reply deleted", "reply_id", r.ID.String(), "turn_id", r.Turn.String())
		if r.Status == StatusInFlight && !r.OwnerDead {
			s.stopDeleted(r.ID)
			continue
		}
		s.countDeleted(ctx, key, e)
		if len(e.OpenCalls) == 0 {
			continue
		}
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			s.stopAtProvider(ctx, s.lostOf(key, r, newest(e.OpenCalls)))
		})
	}
	all.Wait()
}

// countDeleted counts the calls that a deletion closed of a reply that nobody runs, as the store estimates them: nobody else
// will.
func (s *Service) countDeleted(ctx context.Context, key ConversationKey, e EndedReply) {
	if len(e.OpenCalls) == 0 {
		return
	}
	last := newest(e.OpenCalls).Number
	for _, call := range e.OpenCalls {
		o := CallOutcome{Key: key, ID: call.ID, Class: ClassNotSent, Phase: PhaseNone, Usage: Usage{Calls: 1}}
		if call.Submitted {
			received := 0
			if call.Number == last {
				received = int(e.Reply.Length)
			}
			o.Class, o.Phase, o.Usage = ClassAmbiguous, PhaseWritten, EstimateUsage(call.RequestBytes, received)
			o = o.wasted(string(ReasonDeleted))
		}
		s.metrics.callEnded(ctx, call.labels(), o)
	}
}

// stopDeleted stops the run of a reply that was deleted, here or by a hint to its owner.
func (s *Service) stopDeleted(id ReplyID) {
	if r := s.runOfReply(id); r != nil {
		r.cancel(errDeleted)
		return
	}
	s.logs.HintStop(id)
}

// leaveDeleted lets go of a reply that was deleted. What its call took goes on the ledger, and nothing else is kept.
func (r *run) leaveDeleted(ctx context.Context, c callResult) {
	stopped := make(chan struct{})
	lost := r.lostCall(nil)
	go func() {
		defer close(stopped)
		if !c.closed {
			r.stopAtProvider(ctx, lost)
		}
	}()
	r.leave(ctx, c, string(ReasonDeleted))
	<-stopped
}

// erase removes the rows of a deleted conversation until none is left, or a time has come.
func (s *Service) erase(ctx context.Context, key ConversationKey, until time.Time) error {
	for {
		left, err := s.store.EraseConversation(ctx, key, eraseRows)
		if err != nil || !left || !time.Now().Before(until) {
			return err
		}
	}
}

// eraseDeleted goes on with the erasing of conversations that were deleted, on whichever worker.
func (s *Service) eraseDeleted(ctx context.Context) {
	until := time.Now().Add(s.set.Sweep)
	keys, err := s.store.ConversationsToErase(ctx, eraseBatch)
	for _, key := range keys {
		if err != nil || !time.Now().Before(until) {
			break
		}
		err = s.erase(ctx, key, until)
	}
	if err != nil && ctx.Err() == nil {
		s.logger.WarnContext(ctx, "deleted conversations not erased yet", "err", err)
	}
}

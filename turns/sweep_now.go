package turns

import (
	"context"
	"slices"
	"time"
)

// sweepNowTime bounds a sweep that somebody waits for.
const sweepNowTime = 20 * time.Second

// Swept is what a sweep came to.
type Swept struct {
	Replies []SweptReply
	// More says that there may be more to sweep: a pass is bounded.
	More bool
}

// SweptReply is what became of a stale reply.
type SweptReply struct {
	Key   ConversationKey
	Reply Reply
	// Result is one of the constants below.
	Result SweepResult
}

// SweepResult is what became of a stale reply, whoever did it.
type SweepResult string

// The results of a sweep.
const (
	SweptTakenOver SweepResult = "taken_over"
	SweptCompleted SweepResult = "completed"
	SweptAbandoned SweepResult = "abandoned"
	SweptHeld      SweepResult = "held"
	SweptDeleted   SweepResult = "deleted"
	// SweptWaits: it is worth to be taken over, and this worker has no room for it; another may have.
	SweptWaits  SweepResult = "waits"
	SweptFailed SweepResult = "failed"
)

// SweepNow is a pass of the sweep that each worker makes by itself now and then, and says what became of what was stale.
// Others may sweep at the same time: each reply is resolved once, and is told of by all.
func (s *Service) SweepNow(ctx context.Context) (Swept, error) {
	ctx, cancel := context.WithTimeout(ctx, sweepNowTime)
	defer cancel()
	if err := s.bury(ctx); err != nil {
		return Swept{}, err
	}
	stale, err := s.store.StaleReplies(ctx, StaleQuery{Limit: sweepBatch})
	if err != nil {
		return Swept{}, err
	}
	swept := Swept{More: len(stale) == sweepBatch}
	for i, reply := range stale {
		if ctx.Err() != nil {
			return Swept{Replies: swept.Replies, More: i < len(stale)}, nil
		}
		result := SweptFailed
		if err := s.sweepOne(ctx, reply); err != nil {
			s.logger.Warn("stale reply not swept", "reply_id", reply.Reply.ID.String(), "err", err)
		} else {
			result = s.becameOf(ctx, reply)
		}
		swept.Replies = append(swept.Replies, SweptReply{reply.Key, reply.Reply, result})
	}
	return swept, nil
}

// becameOf reads how a reply stands that was stale.
func (s *Service) becameOf(ctx context.Context, stale StaleReply) SweepResult {
	replies, err := s.store.RepliesTo(ctx, stale.Key, stale.Reply.Turn, storyReplies)
	if err != nil {
		return SweptFailed
	}
	i := slices.IndexFunc(replies, func(r Reply) bool { return r.ID == stale.Reply.ID })
	if i < 0 {
		return SweptDeleted
	}
	switch r := replies[i]; {
	case r.Status == StatusComplete:
		return SweptCompleted
	case r.Status == StatusAbandoned:
		return SweptAbandoned
	case r.Status == StatusHeld:
		return SweptHeld
	case r.Epoch > stale.Reply.Epoch:
		return SweptTakenOver
	}
	return SweptWaits
}

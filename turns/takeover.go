package turns

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"
)

// takeovers are the replies that this worker is taking over: until their runs are known nobody else here may judge them.
// The zero value is ready.
type takeovers struct {
	mu  sync.Mutex
	ids map[ReplyID]bool
}

// enter reports whether nobody else here is at it; leave must follow then.
func (t *takeovers) enter(id ReplyID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ids[id] {
		return false
	}
	if t.ids == nil {
		t.ids = map[ReplyID]bool{}
	}
	t.ids[id] = true
	return true
}

func (t *takeovers) leave(id ReplyID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.ids, id)
}

func (t *takeovers) has(id ReplyID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ids[id]
}

// takeover is a stale reply on its way to a new owner.
type takeover struct {
	// again says that a call is sent again, under the key of the one that was lost.
	again   bool
	pending pendingRun
	item    Takeover
}

// takeOver goes on with the reply of a worker that is dead, where that is free or safe, so that work which nobody waits for
// is finished all the same:
//
//   - free: no call is open and nothing was written. The worker died between two calls, and the next one is made.
//   - safe: the endpoint enforces the key that the open call carries, so the same request under the same key is no second
//     generation. Its answer comes from the beginning and must repeat what is stored.
//
// Everything else is swept; so is what this worker itself still runs, under an id that was declared dead: its run revives
// it, and no call is made again. taken is false if the reply is to be swept.
func (s *Service) takeOver(ctx context.Context, stale StaleReply, r Reply) (taken bool, err error) {
	owner := s.lease.worker()
	if s.runOfReply(r.ID) != nil || !s.mayTakeOver(stale, r) || !s.lease.holds(owner) || !s.admission.try() {
		return false, nil
	}
	run, err := s.takenRun(ctx, stale, r, owner)
	if run == nil {
		s.leavePlace()
		return false, err
	}
	s.launch(run)
	s.logger.Info("reply taken over", "reply_id", r.ID.String(), "turn_id", r.Turn.String(), "epoch", run.fence.Epoch)
	return true, nil
}

// mayTakeOver looks at what is known without asking the store: of a worker that died with many replies most are swept.
func (s *Service) mayTakeOver(stale StaleReply, r Reply) bool {
	if !stale.OwnerDead || stale.CancelRequested || r.CancelRequested || stale.DeadlinePassed || r.Epoch >= MaxEpoch ||
		r.Calls >= s.set.MaxCalls {
		return false
	}
	if len(stale.OpenCalls) == 0 {
		return r.Length == 0
	}
	routes, err := s.generator.Routes(r.Model)
	return err != nil || resendable(routes[0].Capabilities, r.Age) // rebuild says what is wrong with the model
}

// takenRun takes a reply over and gives its run, nil if it is not this worker's.
func (s *Service) takenRun(ctx context.Context, stale StaleReply, r Reply, owner WorkerID) (*run, error) {
	t, ok := s.planTakeover(ctx, stale, r, owner)
	if !ok {
		return nil, nil
	}
	result, err := s.commitTakeover(ctx, t.item)
	if err != nil || !result.Won {
		return nil, err
	}
	r.Epoch, r.Owner, r.Calls = t.item.Fence.Epoch+1, owner, result.Calls
	if result.Left > 0 {
		t.pending.limit = min(t.pending.limit, result.Left-replyGrace)
	}
	run := s.newRun(t.pending, r)
	run.reply.Content, run.stored = nil, r.Length
	run.usage = stale.Reply.Usage
	for i, o := range t.item.Closed {
		run.usage = run.usage.Add(o.Usage)
		s.metrics.callEnded(ctx, stale.OpenCalls[i].labels(), o)
	}
	if t.again {
		run.log, run.owes, run.taken = newRepeatLog(run.log, r.Content), true, r.Length
		s.metrics.duplicate(ctx, "takeover")
	} else {
		// How long the provider wanted to be left alone died with the last owner.
		run.rest = backoff(s.set.Backoff, r.Calls, s.random)
	}
	return run, nil
}

// repeats reports whether a call was answered with the generation that the last owner's call began.
func (r *run) repeats(c callResult) bool {
	return r.callUsage(c).Total() > 0 && (c.err == nil || !errors.Is(c.err.Cause, errDiverged))
}

// payFor books with a reply's last call what the last owner's call took, if no call of this one repeated it.
func (r *run) payFor(o *CallOutcome, waste string) {
	if !r.owes {
		return
	}
	lost := EstimateUsage(r.call.RequestBytes, int(r.taken))
	lost.Wasted, lost.Calls = lost.Total(), 0
	o.Usage, o.WasteCause = o.Usage.Add(lost), waste
}

// takeoverTries bounds how often a takeover without an answer is sent.
const takeoverTries = 4

// commitTakeover writes a takeover. Its outcome is never assumed: after an error the same is sent again, which waits for the
// one that was lost, and then the row is read.
func (s *Service) commitTakeover(ctx context.Context, t Takeover) (result TakeoverResult, err error) {
	unsure := false
	for range takeoverTries {
		result, err = s.store.TakeOver(ctx, t)
		switch {
		case err == nil && (result.Won || !unsure):
			return result, nil
		case err == nil:
			row, err := s.store.ReadReply(ctx, t.Fence.Key, t.Fence.Reply)
			won := err == nil && row.Status == StatusInFlight && row.Owner == t.Owner && row.Epoch == t.Fence.Epoch+1
			return TakeoverResult{Won: won, Calls: row.Calls}, err
		case !errors.Is(err, ErrUnknownOutcome):
			return result, err
		}
		if unsure = true; !pause(ctx, unsurePause) {
			break
		}
	}
	return result, err
}

// planTakeover works out whether a reply can be gone on with, and how.
func (s *Service) planTakeover(ctx context.Context, stale StaleReply, r Reply, owner WorkerID) (t takeover, ok bool) {
	t.again = len(stale.OpenCalls) > 0
	pending, err := s.rebuild(ctx, stale.Key, r, owner)
	if err != nil {
		s.logger.Info("reply not taken over", "reply_id", r.ID.String(), "turn_id", r.Turn.String(), "err", err)
		return t, false
	}
	made := len(stale.OpenCalls) + int(stale.Reply.Usage.Calls)
	pending.claim.Call = NewCall{ID: CallID{newID()}, Number: made + 1, RequestBytes: len(pending.request.Body),
		Key: KeyFor(r.Turn, r.Generation, pending.request.Hash), Route: pending.request.Route,
		RequestHash: pending.request.Hash[:], BuilderVersion: pending.request.BuilderVersion}
	t.pending = pending
	t.item = Takeover{Fence: r.fence(stale.Key), StoredLength: r.Length,
		Owner: owner, Call: pending.claim.Call, MaxCalls: s.set.MaxCalls}
	for _, open := range stale.OpenCalls {
		// It used nothing of its own: the generation it began is answered again, and billed once, with the call that repeats
		// it.
		t.item.Closed = append(t.item.Closed, CallOutcome{Key: stale.Key, ID: open.ID, Class: ClassAmbiguous, Phase: PhaseWritten,
			Usage: Usage{Calls: 1}})
	}
	return t, true
}

// resendable reports whether an endpoint answers the same key with the same generation, of a call that is at most so old.
func resendable(c Capabilities, age time.Duration) bool {
	return c.Idempotency == IdempotencyEnforced && age < c.Retention
}

// errOtherRequest says that the bytes of a request can't be made again.
var errOtherRequest = errors.New("the request can't be built again to the same bytes")

// rebuild makes a reply's request again, and the claim that would have made it. It must be the same to the byte.
func (s *Service) rebuild(ctx context.Context, key ConversationKey, r Reply, owner WorkerID) (pendingRun, error) {
	turn, err := s.store.FindTurn(ctx, key, r.Turn.Row())
	if err != nil {
		return pendingRun{}, err
	}
	c, err := s.store.ReadConversation(ctx, key)
	if err != nil {
		return pendingRun{}, err
	}
	st, err := s.store.Lookup(ctx, LookupQuery{Key: key, Turn: r.Turn})
	if err != nil {
		return pendingRun{}, err
	}
	request, start, err := s.requestOf(ctx, key, turn, pinnedOptions(r, turn.Options), r.WindowStart)
	if err != nil {
		return pendingRun{}, err
	}
	route := request.Route
	if start != r.WindowStart || !bytes.Equal(request.Hash[:], r.RequestHash) || route.Endpoint != r.Endpoint {
		return pendingRun{}, errOtherRequest
	}
	return pendingRun{
		request: request, limit: route.Limits.Total + s.set.MaxWait - r.Age,
		turn: &NewTurn{Parent: turn.Parent, InputHash: st.InputHash, Content: turn.Content, Options: turn.Options},
		claim: Claim{Key: key, Tenant: c.Tenant, Subject: c.Subject, Conversation: c.ID, Turn: r.Turn, Reply: NewReply{
			ID: r.ID, Attempt: r.Attempt, Epoch: r.Epoch, Generation: r.Generation, Options: r.Options, Owner: owner, Route: route,
			RequestHash: r.RequestHash, BuilderVersion: request.BuilderVersion, WindowStart: r.WindowStart,
			DisconnectGrace: r.DisconnectGrace,
		}},
	}, nil
}

package turns

import (
	"bytes"
	"context"
	"errors"
	"slices"
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
	// way is how it is gone on with; empty: it is not, and is swept.
	way TakeoverWay
	// call is the newest open call, and route who it was sent to.
	call    OpenCall
	route   Route
	pending pendingRun
	item    Takeover
}

// takeOver goes on with the reply of a worker that is dead, where that is free or safe or policy wants it, so that work
// which nobody waits for is finished all the same. Everything else is swept; so is what this worker itself still runs,
// under an id that was declared dead: its run revives it, and no call is made again. taken is false if the reply is to be
// swept; true, it is not, or not yet.
func (s *Service) takeOver(ctx context.Context, stale StaleReply, r Reply) (taken, won bool, err error) {
	owner := s.lease.worker()
	if s.runOfReply(r.ID) != nil {
		return false, false, nil
	}
	t := s.wayOf(stale, r)
	switch {
	case t.way == "":
		return false, false, nil
	case !s.lease.holds(owner) || !s.admission.try(Caller{}):
		// This worker has no room for it, or is leaving; another may have, and gets another lease's time to find it.
		return r.LeaseLeft > -s.set.Lease, false, nil
	}
	run, err := s.takenRun(ctx, t, stale, r, owner)
	if run == nil {
		s.leavePlace(Caller{})
		return false, false, err
	}
	s.launch(run)
	s.logger.InfoContext(ctx, "reply taken over", "reply_id", r.ID.String(), "turn_id", r.Turn.String(), "epoch", run.fence.Epoch, "way", string(t.way))
	return true, true, nil
}

// wayOf looks at what is known without asking the store: of a worker that died with many replies most are swept.
func (s *Service) wayOf(stale StaleReply, r Reply) (t takeover) {
	if !stale.OwnerDead || stale.CancelRequested || r.CancelRequested || stale.DeadlinePassed || r.Epoch >= MaxEpoch {
		return t
	}
	spent := r.Calls >= s.set.MaxCalls
	if len(stale.OpenCalls) == 0 {
		t.route, t.way = s.routeOf(r.Model, r.Endpoint, r.ProviderModel), TakenFree
		if spent || r.Length > 0 || t.route.Endpoint == "" {
			t.way = ""
		}
		return t
	}
	t.call = newest(stale.OpenCalls)
	t.route = s.routeOf(r.Model, t.call.Endpoint, t.call.ProviderModel)
	caps := t.route.Capabilities
	switch {
	case t.route.Endpoint == "": // it is not configured any more
	case !t.call.Submitted && !spent && r.Length == 0:
		t.way = TakenFree
	case askable(caps, t.call.ResponseID):
		t.way = TakenAsked
	case spent:
	case resendable(caps, t.call.Age) && t.call.Credential == t.route.Credential:
		t.way = TakenAgain
	case r.OnAmbiguous == OnAmbiguousRetry:
		t.way = TakenReplaced
	}
	return t
}

// newest is the call that was made last.
func newest(calls []OpenCall) OpenCall {
	return slices.MaxFunc(calls, func(a, b OpenCall) int { return a.Number - b.Number })
}

// routeOf is the entry of a model's route by which a call was made; zero if it is not configured any more.
func (s *Service) routeOf(model, endpoint, providerModel string) Route {
	routes, err := s.routes(model)
	if err != nil {
		return Route{}
	}
	i := slices.IndexFunc(routes, func(r Route) bool { return r.Endpoint == endpoint && r.ProviderModel == providerModel })
	if i < 0 {
		return Route{}
	}
	return routes[i]
}

// takenRun takes a reply over and gives its run, nil if it is not this worker's.
func (s *Service) takenRun(ctx context.Context, t takeover, stale StaleReply, r Reply, owner WorkerID) (*run, error) {
	ctx, span := s.takeoverSpan(ctx, r)
	defer span.End()
	if err := s.planTakeover(ctx, &t, stale, r, owner); err != nil {
		s.logger.InfoContext(ctx, "reply not taken over", "reply_id", r.ID.String(), "turn_id", r.Turn.String(), "err", err)
		return nil, nil
	}
	t.pending.span = span.SpanContext()
	t.item.Traceparent = traceparent(t.pending.span)
	t.pending.claim.Reply.Traceparent = t.item.Traceparent
	result, err := s.commitTakeover(ctx, t.item)
	tookOver(span, t, r, err == nil && result.Won)
	if err != nil || !result.Won {
		return nil, err
	}
	r.Epoch, r.Owner, r.Calls, r.Traceparent = t.item.Fence.Epoch+1, owner, result.Calls, t.item.Traceparent
	if result.Left > 0 {
		t.pending.limit = min(t.pending.limit, result.Left-replyGrace)
	}
	run := s.newRun(t.pending, r)
	run.reply.Content, run.stored = nil, r.Length
	run.usage, run.place = stale.Reply.Usage, Caller{} // it was let in where it began
	for i, o := range t.item.Closed {
		run.usage = run.usage.Add(o.Usage)
		s.metrics.callEnded(ctx, stale.OpenCalls[i].labels(), o)
	}
	run.begin(ctx, t, r)
	return run, nil
}

// begin says what the run of a reply that was taken over does first.
func (r *run) begin(ctx context.Context, t takeover, row Reply) {
	r.callBegun = time.Now().Add(-t.call.Age)
	r.sentAt = r.callBegun
	switch t.way {
	case TakenFree:
		// How long the provider wanted to be left alone died with the last owner.
		r.rest = backoff(r.set.Backoff, row.Calls, r.random)
		return
	case TakenAgain:
		r.log, r.owes, r.taken = newRepeatLog(r.log, row.Content), true, row.Length
	default:
		r.layer = LayerTakeover
		r.session, r.unsent, r.asked = t.call.Session, false, t.way == TakenReplaced
		if t.call.ResponseID != "" {
			r.responseID.Store(&t.call.ResponseID)
			r.noted = t.call.ResponseID
		}
		r.begun = &callResult{err: &CallError{Class: ClassAmbiguous, Phase: PhaseWritten, Cause: errOwnerGone}, used: row.Length > 0,
			replyBytes: int(row.Length)}
	}
	r.metrics.duplicate(ctx, LayerTakeover)
}

// errOwnerGone is what is known of a call whose worker is dead.
var errOwnerGone = errors.New("the worker that made the call is gone")

// repeats reports whether a call was answered with the generation that the last owner's call began.
func (r *run) repeats(c *callResult) bool {
	return r.callUsage(*c).Total() > 0 && (c.err == nil || !errors.Is(c.err.Cause, errDiverged))
}

// payFor books with a reply's last call what the last owner's call took, if no call of this one repeated it.
func (r *run) payFor(o *CallOutcome, waste string) {
	if !r.owes {
		return
	}
	lost, _, _ := r.estimate(r.request.Route, r.call.RequestBytes, int(r.taken))
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

// planTakeover works out how a reply is taken over.
func (s *Service) planTakeover(ctx context.Context, t *takeover, stale StaleReply, r Reply, owner WorkerID) (err error) {
	if t.pending, err = s.rebuild(ctx, t, stale.Key, r, owner); err != nil {
		return err
	}
	t.item = Takeover{Way: t.way, Fence: r.fence(stale.Key), StoredLength: r.Length, Owner: owner, MaxCalls: s.set.MaxCalls}
	if t.way == TakenAsked || t.way == TakenReplaced {
		t.pending.claim.Call = t.call.row(t.route)
		return nil
	}
	request := t.pending.request
	made := len(stale.OpenCalls) + int(stale.Reply.Usage.Calls)
	t.pending.claim.Call = newCall(CallID{newID()}, made+1, keyOf(t.pending.claim.Tenant, Origin{stale.Key, r.Turn, r.Generation}, request), request, r.OnAmbiguous)
	t.pending.claim.Call.Layer = LayerTakeover
	t.item.Call = t.pending.claim.Call
	for _, open := range stale.OpenCalls {
		// It used nothing of its own: the generation it began is answered again, and billed once, with the call that repeats
		// it; or it was never sent.
		o := CallOutcome{Key: stale.Key, ID: open.ID, Class: ClassAmbiguous, Phase: PhaseWritten, Usage: Usage{Calls: 1}}
		if !open.Submitted {
			o.Class, o.Phase = ClassNotSent, PhaseNone
		}
		t.item.Closed = append(t.item.Closed, o)
	}
	return nil
}

// row is the ledger's row of an open call, as its run knows it.
func (c OpenCall) row(route Route) NewCall {
	return NewCall{ID: c.ID, Number: c.Number, First: c.First, Layer: c.Layer, Key: c.Key, Route: route, RequestHash: c.RequestHash,
		BuilderVersion: c.BuilderVersion, RequestBytes: c.RequestBytes}
}

// askable reports whether a provider can be asked what became of a call.
func askable(c Capabilities, responseID string) bool {
	return c.Lookup || c.Resume && responseID != ""
}

// resendable reports whether an endpoint answers the same key with the same generation, of a call that is at most so old.
func resendable(c Capabilities, age time.Duration) bool {
	return c.Idempotency == IdempotencyEnforced && age < c.Retention
}

// errOtherRequest says that the bytes of a request can't be made again.
var errOtherRequest = errors.New("the request can't be built again to the same bytes")

// rebuild makes a reply's request again, and the claim that would have made it. Where it is sent again it must be the same
// to the byte, or its body have been kept.
func (s *Service) rebuild(ctx context.Context, t *takeover, key ConversationKey, r Reply, owner WorkerID) (pendingRun, error) {
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
	made, err := s.pinnedLayers(ctx, key, r, turn.Options, layers{defaults: c.Defaults, version: c.DefaultsVersion})
	if err != nil {
		return pendingRun{}, err
	}
	q := Question{Turn: turn, Route: t.route, Pinned: r.WindowStart, Origin: Origin{Conversation: key, Turn: r.Turn, Generation: r.Generation}}
	made.ask(&q)
	built, err := s.requestOf(ctx, key, q)
	if err != nil {
		return pendingRun{}, err
	}
	request := built.Request
	s.countRebuilt(ctx, r, request)
	if same := built.Start == r.WindowStart && bytes.Equal(request.Hash[:], r.RequestHash); !same {
		if r.OnPartial == OnPartialContinue && t.way != TakenReplaced {
			// It may have been asked to go on from an earlier attempt, and where its own text begins then is not stored.
			return pendingRun{}, errOtherRequest
		}
		if request, err = s.keptRequest(ctx, t, key, request); err != nil {
			return pendingRun{}, err
		}
	}
	return pendingRun{
		request: request, made: made, limit: t.route.Limits.Total + s.set.MaxWait - r.Age,
		turn: &NewTurn{Parent: turn.Parent, InputHash: st.InputHash, Content: turn.Content, Options: turn.Options},
		claim: Claim{Key: key, Tenant: c.Tenant, Subject: c.Subject, Conversation: c.ID, Turn: r.Turn, Reply: NewReply{
			ID: r.ID, Attempt: r.Attempt, Epoch: r.Epoch, Generation: r.Generation, Options: r.Options, DefaultsVersion: r.DefaultsVersion, Owner: owner, Route: t.route,
			RequestHash: r.RequestHash, BuilderVersion: request.BuilderVersion, WindowStart: r.WindowStart,
			DisconnectGrace: r.DisconnectGrace, OnAmbiguous: r.OnAmbiguous, OnPartial: r.OnPartial,
		}},
	}, nil
}

// keptRequest is a request that can't be built again, from the body that was kept of it. Where it is not to be sent again
// what was built will do.
func (s *Service) keptRequest(ctx context.Context, t *takeover, key ConversationKey, built Request) (Request, error) {
	if t.way == TakenAsked || t.way == TakenReplaced {
		return built, nil
	}
	if !t.call.HasBody {
		return Request{}, errOtherRequest
	}
	call, err := s.store.ReadCall(ctx, key, t.call.ID)
	if err != nil {
		return Request{}, err
	}
	kept := NewRequest(t.route, call.Body, call.BuilderVersion)
	if !bytes.Equal(kept.Hash[:], t.call.RequestHash) {
		return Request{}, errOtherRequest
	}
	return kept, nil
}

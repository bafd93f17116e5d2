package turns

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// prepare builds the request and the claim of a turn's next attempt, from the standing that was just read. The claim is
// good only while the conversation stays at that standing's version.
func (a *arrival) prepare(ctx context.Context, st Standing) (pendingRun, error) {
	if err := a.checkCaps(ctx, st); err != nil {
		return pendingRun{}, err
	}
	parent, err := a.parent(ctx, st)
	if err != nil {
		return pendingRun{}, err
	}
	made, err := a.layers(ctx, st)
	if err != nil {
		return pendingRun{}, err
	}
	var pinned RowID
	again := st.Newest != nil && a.regenerate == nil
	if again {
		pinned = st.Newest.WindowStart
	}
	routes, err := a.routes(made.options.Model)
	if err != nil {
		return pendingRun{}, a.refused(err, made, again)
	}
	q := Question{Turn: UserTurn{ID: a.Input.Turn, Parent: parent, Content: a.Input.Content},
		Pinned: pinned, Route: a.firstReady(routes), Origin: Origin{Conversation: a.key, Turn: a.Input.Turn, Generation: a.generation(st)}}
	made.ask(&q)
	if q.Partial, err = a.partial(ctx, st); err != nil {
		return pendingRun{}, err
	}
	if q.Path, err = a.pathOf(ctx, a.key, q); err != nil {
		return pendingRun{}, err
	}
	if err := a.checkNew(st, q.Path); err != nil {
		return pendingRun{}, err
	}
	built, err := a.build(ctx, q)
	if err != nil {
		return pendingRun{}, a.refused(err, made, again)
	}
	request := built.Request
	limit := request.Route.Limits.Total + a.set.MaxWait
	if a.Deadline > 0 {
		limit = min(limit, a.Deadline)
	}
	p := pendingRun{claim: a.claimOf(ctx, st, built, limit+replyGrace), request: request, made: made, limit: limit, kept: q.Partial}
	p.claim.Reserve = a.reservation(built.Tokens + outputLimit(made.options, request.Route.Limits))
	if again && q.Partial == nil {
		a.countRebuilt(ctx, *st.Newest, built.Request)
	}
	p.turn = a.newTurn(st, parent)
	if st.Turn == nil {
		p.claim.NewTurn = p.turn
	}
	if a.starts || st.uncalled() {
		p.claim.Start = &Start{Parent: parent}
	}
	if a.OnDisconnect == OnDisconnectCancel {
		p.claim.Reply.DisconnectGrace = a.DisconnectGrace
		if a.DisconnectGrace == 0 {
			p.claim.Reply.DisconnectGrace = defaultGrace
		}
	}
	p.claim.Reply.Options, p.claim.Reply.DefaultsVersion = a.ownOptions(st), made.version
	return p, nil
}

// requestOf reads the path of a question and builds its request.
func (s *Service) requestOf(ctx context.Context, key ConversationKey, q Question) (Built, error) {
	path, err := s.pathOf(ctx, key, q)
	if err != nil {
		return Built{}, err
	}
	q.Path = path
	return s.build(ctx, q)
}

// pathOf reads the path of a question.
func (s *Service) pathOf(ctx context.Context, key ConversationKey, q Question) ([]PathRow, error) {
	if q.Turn.Parent.IsZero() {
		return nil, nil
	}
	path, err := s.store.ReadPath(ctx, key, q.Turn.Parent, q.Limit())
	for _, row := range path {
		if row.Unreadable {
			s.metrics.healed(ctx, Healed{HealedUnreadable: 1})
			s.logger.WarnContext(ctx, "a stored row does not decode, so requests go without it", "row_id", row.ID.String())
		}
	}
	return path, err
}

// checkNew refuses a turn that does not fit what is above it. What was tried once is not asked again: a turn that was taken
// stays taken, whatever later versions think of it.
func (a *arrival) checkNew(st Standing, path []PathRow) error {
	if st.Newest != nil && !st.uncalled() {
		return nil
	}
	if err := checkResults(path, a.Input.Content); err != nil {
		return err
	}
	if a.OverrideNoProgress {
		return nil
	}
	return checkProgress(path, a.Input.Content)
}

// build builds the request of a question.
func (s *Service) build(ctx context.Context, q Question) (Built, error) {
	built, err := BuildRequest(s.generator, q)
	s.metrics.healed(ctx, built.Request.Healed)
	return built, err
}

// countRebuilt counts a request that was built again for a generation, after an attempt of it. Where it goes to another endpoint
// it can't be the same, nor where that attempt may have gone on from the one before it.
func (s *Service) countRebuilt(ctx context.Context, before Reply, request Request) {
	if route := request.Route; len(before.RequestHash) == 0 || before.Endpoint != route.Endpoint ||
		before.ProviderModel != route.ProviderModel || before.OnPartial == OnPartialContinue && before.Attempt > 1 {
		return
	}
	s.metrics.rebuiltRequest(ctx, bytes.Equal(before.RequestHash, request.Hash[:]))
}

// routes are the entries of a model's route, in their places.
func (s *Service) routes(model string) ([]Route, error) {
	routes, err := s.generator.Routes(model)
	if err != nil {
		return nil, err
	}
	routes = slices.Clone(routes)
	for i := range routes {
		routes[i].Entry = i
	}
	return routes, nil
}

// generation is the one that the attempt belongs to.
func (a *arrival) generation(st Standing) int32 {
	switch {
	case a.regenerate != nil:
		return st.Turn.Generation + 1
	case st.Newest != nil:
		return st.Newest.Generation
	}
	return 1
}

// partial is what the attempt goes on from, under OnPartialContinue: the text of the generation's last attempt, where that
// was cut off.
func (a *arrival) partial(ctx context.Context, st Standing) ([]Piece, error) {
	n := st.Newest
	if a.regenerate != nil || n == nil || n.OnPartial != OnPartialContinue || n.Length == 0 || !n.Reason.Curable() {
		return nil, nil
	}
	row, err := a.store.ReadReply(ctx, a.key, n.ID)
	if err != nil {
		return nil, err
	}
	return continuable(row.Content), nil
}

// defaultGrace is how long the last follower may be gone where a client asks to stop then and says no time.
const defaultGrace = 30 * time.Second

// parent resolves where the turn hangs: where it was stored, where the client says, beside the turn whose place it takes, or
// below the leaf.
func (a *arrival) parent(ctx context.Context, st Standing) (RowID, error) {
	switch {
	case a.starts && !a.Input.ParentSet:
		return st.Leaf, nil
	case st.uncalled():
		return a.answered(ctx, st.Turn.Parent)
	case st.Turn != nil:
		return st.Turn.Parent, nil
	case a.Input.ParentSet && !a.Input.Parent.IsZero() && !st.ParentFound:
		return RowID{}, a.noParent(ctx)
	case a.Input.ParentSet:
		return a.Input.Parent, nil
	}
	if t := a.takesPlaceOf(st); t != nil {
		return t.Parent, nil
	}
	return st.Leaf, nil
}

// answered is where a turn hangs that was put below an attempt before it could be answered: below the reply that its turn has
// come to since, if the attempt failed.
func (a *arrival) answered(ctx context.Context, parent RowID) (RowID, error) {
	if parent.IsZero() {
		return parent, nil
	}
	above, err := a.store.FindTurn(ctx, a.key, parent)
	if err != nil || above.ID.Row() == parent {
		return parent, err
	}
	st, err := a.store.Lookup(ctx, LookupQuery{Tenant: a.caller.Tenant, Key: a.key, Turn: above.ID, Cursor: ReplyID(parent)})
	if err != nil || st.Live == nil || st.Cursor.counts() {
		return parent, err
	}
	return st.Live.ID.Row(), nil
}

// noParent says why the parent that the client names can't be hung below.
func (a *arrival) noParent(ctx context.Context) error {
	_, err := a.store.FindTurn(ctx, a.key, a.Input.Parent)
	if !errors.Is(err, ErrTurnDeleted) {
		return NotFound("parent in this conversation", "input.parent_id")
	}
	gone := TurnDeleted()
	gone.Field, gone.Problem = "input.parent_id", "was deleted; hang the turn below another"
	return gone
}

// newTurn is the user turn as it is stored, or is to be.
func (a *arrival) newTurn(st Standing, parent RowID) *NewTurn {
	t := &NewTurn{Parent: parent, InputHash: a.hash, Content: a.Input.Content, Options: a.Input.Options}
	if st.Turn != nil {
		t.InputHash = st.InputHash
	}
	return t
}

func (a *arrival) claimOf(ctx context.Context, st Standing, built Built, deadline time.Duration) Claim {
	request, route := built.Request, built.Request.Route
	c := Claim{
		Key: a.key, Tenant: a.caller.Tenant, Subject: a.caller.Subject, Conversation: a.Input.ConversationID(),
		ExpectVersion: st.Version, NextSeq: max(st.NextSeq, 1), Turn: a.Input.Turn,
		Reply: NewReply{
			ID: a.reply, Attempt: 1, Generation: 1, Owner: a.lease.worker(), Route: route, Calls: 1,
			RequestHash: slices.Clone(request.Hash[:]), BuilderVersion: request.BuilderVersion, WindowStart: built.Start,
			Deadline: deadline,
		},
	}
	if n := st.Newest; n != nil {
		c.Reply.Attempt = n.Attempt + 1
	}
	c.Reply.Generation = a.generation(st)
	c.Reply.OnAmbiguous, c.Reply.OnPartial = a.policies(route)
	if n := st.Newest; a.regenerate != nil {
		if st.Live != nil {
			c.Supersede = st.Live.ID
		}
	} else if n != nil {
		c.Reply.Calls, c.Reply.Waited = n.Calls+1, n.Waited
		if !bytes.Equal(n.RequestHash, request.Hash[:]) {
			a.logger.WarnContext(ctx, "request differs from the last attempt's, so its key does too", "turn_id", a.Input.Turn.String())
		}
	}
	c.Call = newCall(a.call, 1, keyOf(a.caller.Tenant, Origin{a.key, a.Input.Turn, c.Reply.Generation}, request), request, c.Reply.OnAmbiguous)
	if c.Call.First = c.Reply.Calls == 1; !c.Call.First {
		c.Call.Layer = a.layer()
	}
	return c
}

// policies are those of the delivery, else of the endpoint, else of the process.
func (a *arrival) policies(route Route) (OnAmbiguous, OnPartial) {
	return cmp.Or(a.OnAmbiguous, route.OnAmbiguous, a.set.OnAmbiguous, OnAmbiguousAbandon),
		cmp.Or(a.OnPartial, route.OnPartial, a.set.OnPartial, OnPartialDiscard)
}

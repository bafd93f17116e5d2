package turns

import (
	"bytes"
	"context"
	"reflect"
	"time"
)

// prepare builds the request and the claim of a turn's next attempt, from the standing that was just read. The claim is
// good only while the conversation stays at that standing's version.
func (a *arrival) prepare(ctx context.Context, st Standing) (pendingRun, error) {
	parent, err := a.parent(st)
	if err != nil {
		return pendingRun{}, err
	}
	options := a.options(st)
	var pinned RowID
	if st.Newest != nil && a.regenerate == nil {
		pinned = st.Newest.WindowStart
	}
	turn := UserTurn{ID: a.Input.Turn, Parent: parent, Content: a.Input.Content}
	request, start, err := a.requestOf(ctx, a.key, turn, options, pinned)
	if err != nil {
		return pendingRun{}, err
	}
	limit := request.Route.Limits.Total + a.set.MaxWait
	if a.Deadline > 0 {
		limit = min(limit, a.Deadline)
	}
	p := pendingRun{claim: a.claimOf(st, request, start, limit+replyGrace), request: request, limit: limit}
	p.turn = a.newTurn(st, parent)
	if st.Turn == nil {
		p.claim.NewTurn = p.turn
	}
	if a.OnDisconnect == OnDisconnectCancel {
		p.claim.Reply.DisconnectGrace = a.DisconnectGrace
		if a.DisconnectGrace == 0 {
			p.claim.Reply.DisconnectGrace = defaultGrace
		}
	}
	if !reflect.DeepEqual(options, a.Input.Options) {
		p.claim.Reply.Options = options
	}
	return p, nil
}

// requestOf builds a turn's request and says where its window starts: at pinned, unless that is zero.
func (s *Service) requestOf(ctx context.Context, key ConversationKey, turn UserTurn, options Options, pinned RowID) (Request, RowID, error) {
	routes, err := s.generator.Routes(options.Model)
	if err != nil {
		return Request{}, RowID{}, err
	}
	route := routes[0]
	var path []PathRow
	if !turn.Parent.IsZero() {
		if path, err = s.store.ReadPath(ctx, key, turn.Parent, PathLimit{Rows: pathRows, Bytes: pathBytes}); err != nil {
			return Request{}, RowID{}, err
		}
	}
	w, err := buildWindow(path, turn.ID, turn.Content, options, route.Limits, pinned)
	if err != nil {
		return Request{}, RowID{}, err
	}
	request, err := s.generator.Build(route, w.prompt)
	return request, w.start, err
}

// defaultGrace is how long the last follower may be gone where a client asks to stop then and says no time.
const defaultGrace = 30 * time.Second

// options are what the attempt is made with. A further attempt of a generation uses those of its first, so that a change
// of the conversation's defaults in between does not make another request of it.
func (a *arrival) options(st Standing) Options {
	switch {
	case a.regenerate != nil:
		return a.regenerate.Options.Or(a.Input.Options).Or(st.Defaults)
	case st.Newest != nil:
		return pinnedOptions(*st.Newest, a.Input.Options)
	}
	return a.Input.Options.Or(st.Defaults)
}

// pinnedOptions are what a reply's request was built with; asked are the turn's own.
func pinnedOptions(r Reply, asked Options) Options {
	pinned := r.Options
	if reflect.DeepEqual(pinned, Options{}) {
		pinned = asked
	}
	pinned.Model = r.Model
	return pinned
}

// parent resolves where the turn hangs: where it was stored, where the client says, or below the leaf.
func (a *arrival) parent(st Standing) (RowID, error) {
	switch {
	case st.Turn != nil:
		return st.Turn.Parent, nil
	case a.Input.ParentSet && !a.Input.Parent.IsZero() && !st.ParentFound:
		return RowID{}, NotFound("parent in this conversation", "input.parent_id")
	case a.Input.ParentSet:
		return a.Input.Parent, nil
	}
	return st.Leaf, nil
}

// newTurn is the user turn as it is stored, or is to be.
func (a *arrival) newTurn(st Standing, parent RowID) *NewTurn {
	t := &NewTurn{Parent: parent, InputHash: a.hash, Content: a.Input.Content, Options: a.Input.Options}
	if st.Turn != nil {
		t.InputHash = st.InputHash
	}
	return t
}

func (a *arrival) claimOf(st Standing, request Request, start RowID, deadline time.Duration) Claim {
	route := request.Route
	c := Claim{
		Key: a.key, Tenant: a.caller.Tenant, Subject: a.caller.Subject, Conversation: a.Input.ConversationID(),
		ExpectVersion: st.Version, NextSeq: max(st.NextSeq, 1), Turn: a.Input.Turn,
		Reply: NewReply{
			ID: a.reply, Attempt: 1, Generation: 1, Owner: a.lease.worker(), Route: route, Calls: 1,
			RequestHash: request.Hash[:], BuilderVersion: request.BuilderVersion, WindowStart: start,
			Deadline: deadline,
		},
	}
	if n := st.Newest; n != nil {
		c.Reply.Attempt = n.Attempt + 1
	}
	if n := st.Newest; a.regenerate != nil {
		c.Reply.Generation = st.Turn.Generation + 1
		if st.Live != nil {
			c.Supersede = st.Live.ID
		}
	} else if n != nil {
		c.Reply.Generation = n.Generation
		c.Reply.Calls, c.Reply.Waited = n.Calls+1, n.Waited
		if !bytes.Equal(n.RequestHash, request.Hash[:]) {
			a.logger.Warn("request differs from the last attempt's, so its key does too", "turn_id", a.Input.Turn.String())
		}
	}
	c.Call = NewCall{ID: a.call, Number: 1, First: c.Reply.Calls == 1,
		Key: KeyFor(a.Input.Turn, c.Reply.Generation, request.Hash), RequestBytes: len(request.Body),
		Route: route, RequestHash: request.Hash[:], BuilderVersion: request.BuilderVersion}
	return c
}

package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/turnd/turnd/internal/tenanttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// houseSecret stands in every text of the houses.
const houseSecret = "xyzzy"

// houseScript breaks off what is to be held, has what runs and what stops wait at a gate, and answers all else at once.
var houseScript = object{"rules": []object{
	{"name": "holds", "match": object{"text": "holds$"}, "plan": object{"reply": object{"deltas": 64, "delta_bytes": 16, "seed": 3},
		"steps": []object{{"at": "delta:20", "do": "reset"}}}},
	gated("runs$", "runs", 64, 20), gated("stops$", "stops", 64, 20), plain(1),
}}

// house is a tenant that has something in every state.
type house struct {
	tenant string
	ctx    context.Context
	s      *service
	have   map[string]tenanttest.IDs
}

// newHouse fills a tenant, the nth on its server. In ctx calls are the tenant's.
func newHouse(ctx context.Context, s *service, p *provider, tenant string, nth int) (*house, error) {
	h := &house{tenant: tenant, s: s, have: map[string]tenanttest.IDs{}, ctx: ctx}
	for _, fill := range []func() error{
		h.completed,
		func() error { return h.ended("deleted turn", "") },
		func() error { return h.ended("deleted conversation", "") },
		h.deleted,
		func() error { return h.ended("held before", "holds") }, // after so many that went well, since a breaker watches
		func() error { return h.ended("held", "holds") },
		func() error { return h.stopped(p, nth) },
		func() error { return h.running(p, nth) },
		h.noteTokens,
	} {
		if err := fill(); err != nil {
			return nil, fmt.Errorf("%s: %w", tenant, err)
		}
	}
	return h, nil
}

func (h *house) input(conversation, how string) *turnsv1.TurnInput {
	in := textInput(conversation, uuid.NewString(), houseSecret+" "+how, "")
	in.OnAmbiguous = turnsv1.OnAmbiguous_ON_AMBIGUOUS_HOLD
	return in
}

// ended has a turn whose reply has ended, in a conversation of its own.
func (h *house) ended(state, how string) error {
	return h.endedIn(uuid.NewString(), state, how)
}

func (h *house) endedIn(conversation, state, how string) error {
	in := h.input(conversation, how)
	var heard listener
	if err := heard.send(h.ctx, h.s, in, nil); err != nil {
		return err
	}
	if (heard.held != nil) != (how == "holds") {
		return fmt.Errorf("%s: the reply ended otherwise", state)
	}
	h.have[state] = tenanttest.IDs{Conversation: conversation, Turn: in.GetTurnId(), Reply: heard.reply}
	return nil
}

// completed is a conversation of two turns, so that its list has a second page.
func (h *house) completed() error {
	conversation := uuid.NewString()
	if err := h.endedIn(conversation, "complete", ""); err != nil {
		return err
	}
	return h.endedIn(conversation, "newest", "")
}

func (h *house) deleted() error {
	turn := h.have["deleted turn"]
	_, err := h.s.turns.DeleteTurn(h.ctx, &turnsv1.DeleteTurnRequest{ConversationId: turn.Conversation, TurnId: turn.Turn})
	if err != nil {
		return err
	}
	_, err = turnsv1.NewConversationServiceClient(h.s.conn).DeleteConversation(h.ctx,
		&turnsv1.DeleteConversationRequest{ConversationId: h.have["deleted conversation"].Conversation})
	return err
}

// waiting has a turn whose reply waits at the gate of its name.
func (h *house) waiting(p *provider, state, gate string, nth int) error {
	in := h.input(uuid.NewString(), gate)
	got, err := h.s.turns.SubmitTurn(h.ctx, &turnsv1.SubmitTurnRequest{Input: in})
	if err != nil {
		return err
	}
	h.have[state] = tenanttest.IDs{Conversation: in.GetConversationId(), Turn: in.GetTurnId(), Reply: got.GetReply().GetReplyId()}
	return p.arrived(gate, nth)
}

func (h *house) stopped(p *provider, nth int) error {
	if err := h.waiting(p, "cancelled", "stops", nth); err != nil {
		return err
	}
	_, err := h.s.turns.CancelReply(h.ctx, &turnsv1.CancelReplyRequest{ConversationId: h.have["cancelled"].Conversation,
		Target: &turnsv1.CancelReplyRequest_ReplyId{ReplyId: h.have["cancelled"].Reply}})
	return err
}

// running has a reply that runs to the end of the check, and a turn in line behind it.
func (h *house) running(p *provider, nth int) error {
	if err := h.waiting(p, "in flight", "runs", nth); err != nil {
		return err
	}
	in := h.input(h.have["in flight"].Conversation, "waits")
	in.OnBusy = turnsv1.OnBusy_ON_BUSY_ENQUEUE
	_, err := h.s.turns.SubmitTurn(h.ctx, &turnsv1.SubmitTurnRequest{Input: in})
	h.have["in line"] = tenanttest.IDs{Conversation: in.GetConversationId(), Turn: in.GetTurnId(), Reply: uuid.NewString()}
	return err
}

// noteTokens asks each list for its second page.
func (h *house) noteTokens() error {
	tokens := map[string]string{}
	listed, err := h.s.turns.ListTurns(h.ctx, &turnsv1.ListTurnsRequest{ConversationId: h.have["complete"].Conversation, PageSize: 1})
	if err != nil {
		return err
	}
	tokens["TurnService.ListTurns"] = listed.GetNextPageToken()
	conversations, err := turnsv1.NewConversationServiceClient(h.s.conn).ListConversations(h.ctx, &turnsv1.ListConversationsRequest{PageSize: 1})
	if err != nil {
		return err
	}
	tokens["ConversationService.ListConversations"] = conversations.GetNextPageToken()
	operator := turnsv1.NewOperatorServiceClient(h.s.conn)
	replies, err := operator.ListHeldReplies(h.ctx, &turnsv1.ListHeldRepliesRequest{PageSize: 1})
	if err != nil {
		return err
	}
	tokens["OperatorService.ListHeldReplies"] = replies.GetNextPageToken()
	calls, err := operator.ListProviderCalls(h.ctx, &turnsv1.ListProviderCallsRequest{PageSize: 1})
	if err != nil {
		return err
	}
	tokens["OperatorService.ListProviderCalls"] = calls.GetNextPageToken()
	for state, ids := range h.have {
		ids.Tokens = tokens
		h.have[state] = ids
	}
	return nil
}

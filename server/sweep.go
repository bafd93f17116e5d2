package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// Sweep has this worker sweep once. It does so for all tenants, as workers do, and names the replies of the caller's own.
func (o operatorService) Sweep(ctx context.Context, _ *turnsv1.SweepRequest) (*turnsv1.SweepResponse, error) {
	swept, err := o.cfg.Service.SweepNow(ctx)
	if err != nil {
		return nil, err
	}
	out := &turnsv1.SweepResponse{Results: map[string]int32{}, More: swept.More}
	tenant := callerOf(ctx).Tenant
	for _, s := range swept.Replies {
		out.Results[string(s.Result)]++
		if turns.KeyOf(tenant, s.Reply.Conversation) != s.Key {
			continue
		}
		out.Replies = append(out.Replies, &turnsv1.SweptReply{ConversationId: idText(s.Reply.Conversation.UUID), TurnId: idText(s.Reply.Turn.UUID),
			ReplyId: idText(s.Reply.ID.UUID), Epoch: s.Reply.Epoch, Result: string(s.Result)})
	}
	return out, nil
}

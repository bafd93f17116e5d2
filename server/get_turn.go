package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// GetTurn returns a user turn with all its replies, each with up to 1 MiB of content.
func (t turnService) GetTurn(ctx context.Context, req *turnsv1.GetTurnRequest) (*turnsv1.GetTurnResponse, error) {
	conversation, err := parseConversation(req.GetConversationId())
	if err != nil {
		return nil, err
	}
	target, err := parseTarget(req.GetTurnId(), req.GetReplyId())
	if err != nil {
		return nil, err
	}
	turn, replies, err := t.cfg.Service.GetTurn(ctx, callerOf(ctx), conversation, target)
	if err != nil {
		return nil, err
	}
	out := &turnsv1.GetTurnResponse{Turn: turnToWire(turn)}
	out.Replies, err = t.repliesToWire(replies)
	return out, err
}

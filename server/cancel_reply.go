package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// CancelReply stops a reply and answers once it has ended, with the state it reached.
func (t turnService) CancelReply(ctx context.Context, req *turnsv1.CancelReplyRequest) (*turnsv1.CancelReplyResponse, error) {
	conversation, err := parseConversation(req.GetConversationId())
	if err != nil {
		return nil, err
	}
	target, err := parseTarget(req.GetTurnId(), req.GetReplyId())
	if err != nil {
		return nil, err
	}
	reply, err := t.cfg.Service.Cancel(ctx, callerOf(ctx), conversation, target)
	if err != nil {
		return nil, err
	}
	return &turnsv1.CancelReplyResponse{Reply: t.replyHeadToWire(reply)}, nil
}

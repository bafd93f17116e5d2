package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// SelectReply makes another finished reply of its user turn the live one.
func (t turnService) SelectReply(ctx context.Context, req *turnsv1.SelectReplyRequest) (*turnsv1.SelectReplyResponse, error) {
	conversation, id, err := parseReplyOf(req)
	if err != nil {
		return nil, err
	}
	reply, err := t.cfg.Service.Select(ctx, callerOf(ctx), conversation, id)
	if err != nil {
		return nil, err
	}
	return &turnsv1.SelectReplyResponse{Reply: t.replyHeadToWire(reply)}, nil
}

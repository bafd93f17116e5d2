package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// ReleaseHeldReply gives a held reply up.
func (o operatorService) ReleaseHeldReply(ctx context.Context, req *turnsv1.ReleaseHeldReplyRequest) (*turnsv1.ReleaseHeldReplyResponse, error) {
	conversation, id, err := parseReplyOf(req)
	if err != nil {
		return nil, err
	}
	reply, err := o.cfg.Service.ReleaseHeld(ctx, callerOf(ctx), conversation, id, req.GetExpectedEpoch())
	if err != nil {
		return nil, err
	}
	shown, err := o.replyToWire(reply, replyContentLimit)
	if err != nil {
		return nil, err
	}
	return &turnsv1.ReleaseHeldReplyResponse{Reply: shown}, nil
}

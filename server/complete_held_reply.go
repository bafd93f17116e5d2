package server

import (
	"context"
	"fmt"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// CompleteHeldReply completes a held reply with content from the operator.
func (o operatorService) CompleteHeldReply(ctx context.Context, req *turnsv1.CompleteHeldReplyRequest) (*turnsv1.CompleteHeldReplyResponse, error) {
	conversation, id, err := parseReplyOf(req)
	if err != nil {
		return nil, err
	}
	for i, b := range req.GetContent() {
		if err := refuseUnknown(b.ProtoReflect(), fmt.Sprintf("content[%d]", i)); err != nil {
			return nil, err
		}
	}
	reply, err := o.cfg.Service.CompleteHeld(ctx, callerOf(ctx), conversation, id, req.GetExpectedEpoch(), contentFromWire(req.GetContent()))
	if err != nil {
		return nil, err
	}
	shown, err := o.replyToWire(reply, replyContentLimit)
	if err != nil {
		return nil, err
	}
	return &turnsv1.CompleteHeldReplyResponse{Reply: shown}, nil
}

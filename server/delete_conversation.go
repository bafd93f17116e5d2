package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// DeleteConversation stops what runs in a conversation and erases it. Again is no error.
func (c conversationService) DeleteConversation(ctx context.Context, req *turnsv1.DeleteConversationRequest) (*turnsv1.DeleteConversationResponse, error) {
	id, err := parseConversation(req.GetConversationId())
	if err != nil {
		return nil, err
	}
	if err := c.cfg.Service.DeleteConversation(ctx, callerOf(ctx), id); err != nil {
		return nil, err
	}
	return &turnsv1.DeleteConversationResponse{}, nil
}

package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// GetConversation returns a conversation.
func (c conversationService) GetConversation(ctx context.Context, req *turnsv1.GetConversationRequest) (*turnsv1.GetConversationResponse, error) {
	id, err := parseConversation(req.GetConversationId())
	if err != nil {
		return nil, err
	}
	stored, err := c.cfg.Service.GetConversation(ctx, callerOf(ctx), id)
	if err != nil {
		return nil, err
	}
	return &turnsv1.GetConversationResponse{Conversation: conversationToWire(stored)}, nil
}

package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// CreateConversation adds a conversation; the same one again adds nothing. What is for output only is passed over.
func (c conversationService) CreateConversation(ctx context.Context, req *turnsv1.CreateConversationRequest) (*turnsv1.CreateConversationResponse, error) {
	conversation, err := conversationFromWire(req.GetConversation(), c.cfg.MaxContentBytes)
	if err != nil {
		return nil, err
	}
	stored, err := c.cfg.Service.CreateConversation(ctx, callerOf(ctx), conversation)
	if err != nil {
		return nil, err
	}
	return &turnsv1.CreateConversationResponse{Conversation: conversationToWire(stored)}, nil
}

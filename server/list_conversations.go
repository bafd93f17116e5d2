package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// ListConversations returns a page of the caller's conversations.
func (c conversationService) ListConversations(ctx context.Context, req *turnsv1.ListConversationsRequest) (*turnsv1.ListConversationsResponse, error) {
	if err := checkLabels("labels", req.GetLabels()); err != nil {
		return nil, err
	}
	page, next, err := c.cfg.Service.ListConversations(ctx, callerOf(ctx), req.GetLabels(), int(req.GetPageSize()), req.GetPageToken())
	if err != nil {
		return nil, err
	}
	out := &turnsv1.ListConversationsResponse{NextPageToken: next}
	for _, stored := range page {
		out.Conversations = append(out.Conversations, conversationToWire(stored))
	}
	return out, nil
}

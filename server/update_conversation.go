package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// UpdateConversation sets the fields that the mask names, and no others. An empty mask is refused: it could mean all
// fields or none, and one of the two erases.
func (c conversationService) UpdateConversation(ctx context.Context, req *turnsv1.UpdateConversationRequest) (*turnsv1.UpdateConversationResponse, error) {
	values, err := conversationFromWire(req.GetConversation(), c.cfg.MaxContentBytes)
	if err != nil {
		return nil, err
	}
	update, err := updateFromWire(values, req.GetUpdateMask().GetPaths())
	if err != nil {
		return nil, err
	}
	if req.GetExpectedVersion() < 0 {
		return nil, invalidField("expected_version", "must not be negative")
	}
	update.ExpectVersion = req.GetExpectedVersion()
	stored, err := c.cfg.Service.UpdateConversation(ctx, callerOf(ctx), update)
	if err != nil {
		return nil, err
	}
	return &turnsv1.UpdateConversationResponse{Conversation: conversationToWire(stored)}, nil
}

func updateFromWire(values turns.Conversation, mask []string) (turns.ConversationUpdate, error) {
	update := turns.ConversationUpdate{ID: values.ID}
	if values.ID.IsZero() {
		return update, invalidField("conversation.conversation_id", "is missing")
	}
	if len(mask) == 0 {
		return update, invalidField("update_mask", "must name one or more of title, defaults, labels")
	}
	for _, path := range mask {
		switch path {
		case "title":
			update.Title = &values.Title
		case "defaults":
			update.Defaults = &values.Defaults
		case "labels":
			update.Labels, update.SetLabels = values.Labels, true
		default:
			return update, invalidField("update_mask", "may name only title, defaults and labels")
		}
	}
	return update, nil
}

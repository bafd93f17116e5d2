package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// ExplainTurn returns the story of one of the tenant's turns.
func (o operatorService) ExplainTurn(ctx context.Context, req *turnsv1.ExplainTurnRequest) (*turnsv1.ExplainTurnResponse, error) {
	conversation, err := parseConversation(req.GetConversationId())
	if err != nil {
		return nil, err
	}
	id, err := parseID("turn_id", req.GetTurnId())
	if err != nil {
		return nil, err
	}
	story, err := o.cfg.Service.Explain(ctx, callerOf(ctx), conversation, turns.RowID{UUID: id})
	if err != nil {
		return nil, err
	}
	return storyToWire(story), nil
}

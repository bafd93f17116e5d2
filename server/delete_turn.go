package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// DeleteTurn stops what runs in a user turn's subtree and erases it, and says how many user turns went.
func (t turnService) DeleteTurn(ctx context.Context, req *turnsv1.DeleteTurnRequest) (*turnsv1.DeleteTurnResponse, error) {
	conversation, err := parseConversation(req.GetConversationId())
	if err != nil {
		return nil, err
	}
	turn, err := parseTurn(req.GetTurnId())
	if err != nil {
		return nil, err
	}
	deleted, err := t.cfg.Service.DeleteTurn(ctx, callerOf(ctx), conversation, turn)
	if err != nil {
		return nil, err
	}
	return &turnsv1.DeleteTurnResponse{DeletedTurns: int32(deleted)}, nil
}

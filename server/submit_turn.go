package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// SubmitTurn takes a user turn and leaves its reply to go on by itself. It answers once both are stored, or the turn is in
// line, so the turn's id is enough to find the reply later, from any worker.
func (t turnService) SubmitTurn(ctx context.Context, req *turnsv1.SubmitTurnRequest) (*turnsv1.SubmitTurnResponse, error) {
	delivery, err := deliveryFromWire(ctx, req.GetInput(), nil, t.cfg.MaxContentBytes)
	if err != nil {
		return nil, err
	}
	sub, err := t.cfg.Service.Submit(ctx, callerOf(ctx), delivery)
	if err != nil {
		return nil, err
	}
	out := &turnsv1.SubmitTurnResponse{Turn: turnHeadToWire(sub.Turn), Result: deliveryResults.wire(sub.Result)}
	if !sub.Waiting {
		out.Reply = t.replyHeadToWire(sub.Reply)
	}
	return out, nil
}

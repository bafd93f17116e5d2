package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// RegenerateReply replaces a reply by one of a new generation, once for each generation that the caller has seen.
func (t turnService) RegenerateReply(ctx context.Context, req *turnsv1.RegenerateReplyRequest) (*turnsv1.RegenerateReplyResponse, error) {
	g := turns.Regeneration{ExpectGeneration: req.GetExpectedGeneration()}
	var err error
	if g.Conversation, err = parseConversation(req.GetConversationId()); err != nil {
		return nil, err
	}
	if g.Reply, err = parseReply(req.GetReplyId()); err != nil {
		return nil, err
	}
	if g.Options, err = optionsFromWire("options", req.GetOptions()); err != nil {
		return nil, err
	}
	reply, replayed, err := t.cfg.Service.Regenerate(ctx, callerOf(ctx), g)
	if err != nil {
		return nil, err
	}
	return &turnsv1.RegenerateReplyResponse{Reply: t.replyHeadToWire(reply), Replayed: replayed}, nil
}

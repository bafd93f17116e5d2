package server

import (
	"context"

	"google.golang.org/grpc"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// FollowReply streams one reply from any offset, and starts nothing: whoever follows costs no provider call. A turn's id
// stands for the reply that is its live or newest one now, or of a turn in line will be; the stream stays with that reply.
func (t turnService) FollowReply(req *turnsv1.FollowReplyRequest, stream grpc.ServerStreamingServer[turnsv1.FollowReplyResponse]) error {
	ctx := stream.Context()
	key, reply, err := t.find(ctx, req)
	if err != nil {
		return err
	}
	nothing := func() error { return nil }
	send := func(e *turnsv1.Event) error { return stream.Send(&turnsv1.FollowReplyResponse{Event: e}) }
	return t.follow(ctx, key, reply.Turn, reply, req.GetOffset(), nothing, send, nil)
}

// find finds the reply that is named. It is apart from FollowReply, on whose stack there would be its room for as long as the
// stream goes on.
func (t turnService) find(ctx context.Context, req *turnsv1.FollowReplyRequest) (turns.ConversationKey, *turns.Reply, error) {
	conversation, err := parseConversation(req.GetConversationId())
	if err != nil {
		return turns.ConversationKey{}, nil, err
	}
	target, err := parseTarget(req.GetTurnId(), req.GetReplyId())
	if err != nil {
		return turns.ConversationKey{}, nil, err
	}
	find := t.cfg.Service.FollowTarget
	if req.GetReplyId() != "" {
		find = t.cfg.Service.FollowReply
	}
	key, reply, err := find(ctx, callerOf(ctx), conversation, target)
	if err == nil {
		turns.LinkReply(ctx, reply)
	}
	return key, &reply, err
}

package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// ListHeldReplies returns a page of the tenant's held replies.
func (o operatorService) ListHeldReplies(ctx context.Context, req *turnsv1.ListHeldRepliesRequest) (*turnsv1.ListHeldRepliesResponse, error) {
	replies, next, err := o.cfg.Service.HeldReplies(ctx, callerOf(ctx), int(req.GetPageSize()), req.GetPageToken())
	if err != nil {
		return nil, err
	}
	out := &turnsv1.ListHeldRepliesResponse{NextPageToken: next}
	for _, r := range replies {
		reply := o.replyHeadToWire(r)
		reply.ContentTruncated = r.Length > 0
		out.Replies = append(out.Replies, reply)
	}
	return out, nil
}

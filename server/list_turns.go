package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// ListTurns returns a page of the path from a leaf to its root.
func (t turnService) ListTurns(ctx context.Context, req *turnsv1.ListTurnsRequest) (*turnsv1.ListTurnsResponse, error) {
	conversation, err := parseConversation(req.GetConversationId())
	if err != nil {
		return nil, err
	}
	leaf, err := parseOptionalID("leaf_id", req.GetLeafId())
	if err != nil {
		return nil, err
	}
	entries, next, err := t.cfg.Service.ListTurns(ctx, callerOf(ctx), turns.ListQuery{
		Conversation: conversation,
		Leaf:         turns.RowID{UUID: leaf},
		PageSize:     int(req.GetPageSize()),
		PageToken:    req.GetPageToken(),
	})
	if err != nil {
		return nil, err
	}
	out := &turnsv1.ListTurnsResponse{NextPageToken: next}
	for _, e := range entries {
		entry, err := t.entryToWire(e)
		if err != nil {
			return nil, err
		}
		out.Entries = append(out.Entries, entry)
	}
	return out, nil
}

func (t turnService) entryToWire(e turns.TurnEntry) (*turnsv1.TurnEntry, error) {
	out := &turnsv1.TurnEntry{Turn: turnToWire(e.Turn), ReplyCount: int32(e.ReplyCount)}
	for _, id := range e.Siblings {
		out.SiblingTurnIds = append(out.SiblingTurnIds, idText(id.UUID))
	}
	if e.Reply == nil {
		return out, nil
	}
	reply, err := t.replyToWire(*e.Reply, replyContentLimit)
	out.Reply = reply
	return out, err
}

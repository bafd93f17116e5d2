package server

import (
	"context"
	"errors"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// maxMoves bounds the replies that a reply was replaced by, one after another: there are never more provider calls.
const maxMoves = 64

// resumption is where an event stream begins.
type resumption struct {
	key       turns.ConversationKey
	reply     turns.Reply
	offset    uint32
	restarted *turns.Restarted // comes first, if the cursor's reply is not the one that is followed
	over      bool             // there is nothing to follow any more
}

// resume finds where a reader goes on who comes with a cursor. Inside one stream policy can put another reply in the place of
// the one that its path names, so a cursor may be of a later reply: it is followed. One of an earlier reply of the same turn
// begins again, as a delivery with such a cursor does; so does one of a reply that nobody knows, which a failover has lost.
func (t turnService) resume(ctx context.Context, req *turnsv1.FollowReplyRequest, cursor *eventCursor) (resumption, error) {
	conversation, err := parseConversation(req.GetConversationId())
	if err != nil {
		return resumption{}, err
	}
	target, err := parseTarget(req.GetTurnId(), req.GetReplyId())
	if err != nil {
		return resumption{}, err
	}
	find := func(id turns.RowID) (turns.ConversationKey, turns.Reply, error) {
		return t.cfg.Service.FollowTarget(ctx, callerOf(ctx), conversation, id)
	}
	key, named, err := find(target)
	if err != nil || cursor == nil {
		return resumption{key: key, reply: named}, err
	}
	if cursor.reply == named.ID {
		return resumption{key: key, reply: named, offset: cursor.offset, over: cursor.ended}, nil
	}
	_, shown, err := find(cursor.reply.Row())
	if errors.Is(err, turns.ErrNotFound) {
		shown, err = turns.Reply{ID: cursor.reply, Turn: named.Turn}, nil
	}
	switch {
	case err != nil:
		return resumption{}, err
	case shown.Turn != named.Turn || shown.ID != cursor.reply:
		return resumption{}, &turns.Error{Code: turns.CodeInvalidCursor, Field: lastEventID,
			Problem: "is of a reply to another turn; leave it out to begin at the start"}
	case cursor.ended:
		return resumption{over: true}, nil
	case t.movedTo(find, named, shown.ID):
		return resumption{key: key, reply: shown, offset: cursor.offset}, nil
	case named.ID.IsZero():
		return resumption{key: key, reply: named}, nil
	}
	return resumption{key: key, reply: named, restarted: &turns.Restarted{Reply: named.ID, Previous: shown}}, nil
}

// movedTo reports whether policy put a reply in the place of another, or in that of one which it had put there before.
func (t turnService) movedTo(find func(turns.RowID) (turns.ConversationKey, turns.Reply, error), from turns.Reply, to turns.ReplyID) bool {
	for range maxMoves {
		next, ok := from.Successor()
		if !ok || next == to {
			return ok
		}
		var err error
		if _, from, err = find(next.Row()); err != nil {
			return false
		}
	}
	return false
}

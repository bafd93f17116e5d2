package client

import (
	"context"

	"google.golang.org/grpc"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// Cancel stops a reply and returns it, without content, in the state it reached: abandoned, or complete if that came
// first. By a turn's id, the turn's live reply is stopped. A repeat finds it stopped, so lost answers are asked for again.
// Streams that follow the reply get its terminal event as ever.
func (c *Client) Cancel(ctx context.Context, conversation string, target Target) (*turnsv1.Reply, error) {
	req := &turnsv1.CancelReplyRequest{ConversationId: conversation}
	req.Target = &turnsv1.CancelReplyRequest_TurnId{TurnId: target.TurnID}
	if target.ReplyID != "" {
		req.Target = &turnsv1.CancelReplyRequest_ReplyId{ReplyId: target.ReplyID}
	}
	answer, err := insist(ctx, c, c.rpc.CancelReply, req)
	return answer.GetReply(), err
}

// Regeneration says what is to be replaced.
type Regeneration struct {
	ConversationID string
	// ReplyID is the live reply of its turn or, where none is live, the latest.
	ReplyID string
	// Generation is the turn's as the caller has seen it last, such as Stream.Generation; 0 stands for the reply's own. It
	// is what makes a double click one regenerate, also after another reply was selected.
	Generation int32
	// Options differ from those of the turn; nil for none.
	Options *turnsv1.GenerationOptions
}

// Regenerate has a reply of a new generation made, which costs money, and returns it without content; Follow reads it. If
// the turn is past the generation that was seen, nothing is made, replayed is true and the latest reply is returned. That
// is so for a repeat too, hence a lost answer is asked for again under the same generation.
func (c *Client) Regenerate(ctx context.Context, g Regeneration) (reply *turnsv1.Reply, replayed bool, err error) {
	answer, err := insist(ctx, c, c.rpc.RegenerateReply, &turnsv1.RegenerateReplyRequest{
		ConversationId: g.ConversationID, ReplyId: g.ReplyID, Options: g.Options, ExpectedGeneration: g.Generation})
	return answer.GetReply(), answer.GetReplayed(), err
}

// Select makes another finished reply of its turn the live one, below which the conversation goes on, and returns it
// without content. It costs nothing and a repeat changes nothing.
func (c *Client) Select(ctx context.Context, conversation, reply string) (*turnsv1.Reply, error) {
	answer, err := insist(ctx, c, c.rpc.SelectReply, &turnsv1.SelectReplyRequest{ConversationId: conversation, ReplyId: reply})
	return answer.GetReply(), err
}

// Turn reads a turn and all its replies, the earliest first.
func (c *Client) Turn(ctx context.Context, conversation string, target Target) (*turnsv1.UserTurn, []*turnsv1.Reply, error) {
	req := &turnsv1.GetTurnRequest{ConversationId: conversation}
	req.Target = &turnsv1.GetTurnRequest_TurnId{TurnId: target.TurnID}
	if target.ReplyID != "" {
		req.Target = &turnsv1.GetTurnRequest_ReplyId{ReplyId: target.ReplyID}
	}
	answer, err := insist(ctx, c, c.rpc.GetTurn, req)
	return answer.GetTurn(), answer.GetReplies(), err
}

// LastTurn reads the turn at the end of a conversation, on the branch that is selected; nil if there is none.
func (c *Client) LastTurn(ctx context.Context, conversation string) (*turnsv1.TurnEntry, error) {
	answer, err := insist(ctx, c, c.rpc.ListTurns, &turnsv1.ListTurnsRequest{ConversationId: conversation, PageSize: 1})
	if err != nil || len(answer.GetEntries()) == 0 {
		return nil, err
	}
	return answer.GetEntries()[0], nil
}

// unary is a call of the wire that a repeat does no harm to.
type unary[Q, A any] func(context.Context, Q, ...grpc.CallOption) (A, error)

// insist makes a call until it is answered, by the rules that streams connect again by. The context bounds it in time.
func insist[Q, A any](ctx context.Context, c *Client, call unary[Q, A], req Q) (A, error) {
	for try := 1; ; try++ {
		answer, err := call(ctx, req, grpc.MaxCallRecvMsgSize(maxReceive))
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return answer, ctx.Err()
		}
		e := asError(err)
		if !sameID(e.Advice) {
			return answer, e
		}
		if err := c.holdBack(ctx, e, try, ""); err != nil {
			return answer, err
		}
	}
}

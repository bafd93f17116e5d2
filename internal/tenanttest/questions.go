package tenanttest

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// questions are what each method is asked. Where a request may name one of several things, each has a question. The first one
// of a method is refused if what it names was deleted.
//
// Not all that succeeds for a stranger is a leak. CreateConversation, and a turn without a parent, may use any
// conversation's id: it is free to everyone who has not used it himself, and what comes of it is the caller's own. The lists
// and SumProviderCalls show the caller's own tenant, whatever a filter or a page token names. ListWorkers is the same to
// all operators: workers serve every tenant, and it says nothing of what they serve. Sweep does for all tenants what every
// worker does by itself, and names the replies of the caller's own.
var questions = map[string]func(IDs) []proto.Message{
	"TurnService.Turn": func(id IDs) []proto.Message {
		cursor := &turnsv1.Cursor{ReplyId: id.Reply, Offset: 1}
		return []proto.Message{
			&turnsv1.TurnRequest{Input: below(id, id.Reply)},
			&turnsv1.TurnRequest{Input: below(id, id.Turn)},
			&turnsv1.TurnRequest{Input: input(id), Cursor: cursor},
			&turnsv1.TurnRequest{Input: input(id)},
		}
	},
	"TurnService.SubmitTurn": func(id IDs) []proto.Message {
		queued := below(id, id.Reply)
		queued.OnBusy = turnsv1.OnBusy_ON_BUSY_ENQUEUE
		instead := below(id, id.Turn)
		instead.OnBusy = turnsv1.OnBusy_ON_BUSY_INTERRUPT
		return []proto.Message{
			&turnsv1.SubmitTurnRequest{Input: queued},
			&turnsv1.SubmitTurnRequest{Input: instead},
			&turnsv1.SubmitTurnRequest{Input: input(id)},
		}
	},
	"TurnService.FollowReply": func(id IDs) []proto.Message {
		return []proto.Message{
			&turnsv1.FollowReplyRequest{ConversationId: id.Conversation, Target: &turnsv1.FollowReplyRequest_ReplyId{ReplyId: id.Reply}},
			&turnsv1.FollowReplyRequest{ConversationId: id.Conversation, Target: &turnsv1.FollowReplyRequest_TurnId{TurnId: id.Turn}},
			&turnsv1.FollowReplyRequest{ConversationId: id.Conversation, Offset: 1 << 20,
				Target: &turnsv1.FollowReplyRequest_ReplyId{ReplyId: id.Reply}},
		}
	},
	"TurnService.GetTurn": func(id IDs) []proto.Message {
		return []proto.Message{
			&turnsv1.GetTurnRequest{ConversationId: id.Conversation, Target: &turnsv1.GetTurnRequest_TurnId{TurnId: id.Turn}},
			&turnsv1.GetTurnRequest{ConversationId: id.Conversation, Target: &turnsv1.GetTurnRequest_ReplyId{ReplyId: id.Reply}},
		}
	},
	"TurnService.ListTurns": func(id IDs) []proto.Message {
		return []proto.Message{
			&turnsv1.ListTurnsRequest{ConversationId: id.Conversation, LeafId: id.Reply},
			&turnsv1.ListTurnsRequest{ConversationId: id.Conversation, LeafId: id.Turn},
			&turnsv1.ListTurnsRequest{ConversationId: id.Conversation},
			&turnsv1.ListTurnsRequest{ConversationId: id.Conversation, PageToken: id.Tokens["TurnService.ListTurns"]},
		}
	},
	"TurnService.CancelReply": func(id IDs) []proto.Message {
		return []proto.Message{
			&turnsv1.CancelReplyRequest{ConversationId: id.Conversation, Target: &turnsv1.CancelReplyRequest_ReplyId{ReplyId: id.Reply}},
			&turnsv1.CancelReplyRequest{ConversationId: id.Conversation, Target: &turnsv1.CancelReplyRequest_TurnId{TurnId: id.Turn}},
		}
	},
	"TurnService.RegenerateReply": func(id IDs) []proto.Message {
		return []proto.Message{
			&turnsv1.RegenerateReplyRequest{ConversationId: id.Conversation, ReplyId: id.Reply},
			&turnsv1.RegenerateReplyRequest{ConversationId: id.Conversation, ReplyId: id.Reply, ExpectedGeneration: 1},
		}
	},
	"TurnService.SelectReply": func(id IDs) []proto.Message {
		return []proto.Message{&turnsv1.SelectReplyRequest{ConversationId: id.Conversation, ReplyId: id.Reply}}
	},
	"TurnService.DeleteTurn": func(id IDs) []proto.Message {
		return []proto.Message{&turnsv1.DeleteTurnRequest{ConversationId: id.Conversation, TurnId: id.Turn}}
	},
	"ConversationService.CreateConversation": func(id IDs) []proto.Message {
		return []proto.Message{&turnsv1.CreateConversationRequest{Conversation: conversation(id)}}
	},
	"ConversationService.GetConversation": func(id IDs) []proto.Message {
		return []proto.Message{&turnsv1.GetConversationRequest{ConversationId: id.Conversation}}
	},
	"ConversationService.ListConversations": func(id IDs) []proto.Message {
		return []proto.Message{
			&turnsv1.ListConversationsRequest{},
			&turnsv1.ListConversationsRequest{PageToken: id.Tokens["ConversationService.ListConversations"]},
		}
	},
	"ConversationService.UpdateConversation": func(id IDs) []proto.Message {
		title := &fieldmaskpb.FieldMask{Paths: []string{"title"}}
		return []proto.Message{
			&turnsv1.UpdateConversationRequest{Conversation: conversation(id), UpdateMask: title},
			&turnsv1.UpdateConversationRequest{Conversation: conversation(id), UpdateMask: title, ExpectedVersion: 1},
		}
	},
	"ConversationService.DeleteConversation": func(id IDs) []proto.Message {
		return []proto.Message{&turnsv1.DeleteConversationRequest{ConversationId: id.Conversation}}
	},
	"OperatorService.ListHeldReplies": func(id IDs) []proto.Message {
		return []proto.Message{
			&turnsv1.ListHeldRepliesRequest{},
			&turnsv1.ListHeldRepliesRequest{PageToken: id.Tokens["OperatorService.ListHeldReplies"]},
		}
	},
	"OperatorService.ReleaseHeldReply": func(id IDs) []proto.Message {
		return []proto.Message{
			&turnsv1.ReleaseHeldReplyRequest{ConversationId: id.Conversation, ReplyId: id.Reply, ExpectedEpoch: 1},
			&turnsv1.ReleaseHeldReplyRequest{ConversationId: id.Conversation, ReplyId: id.Reply, ExpectedEpoch: 7},
		}
	},
	"OperatorService.CompleteHeldReply": func(id IDs) []proto.Message {
		return []proto.Message{&turnsv1.CompleteHeldReplyRequest{ConversationId: id.Conversation, ReplyId: id.Reply, ExpectedEpoch: 1,
			Content: text("an operator's words")}}
	},
	"OperatorService.ListProviderCalls": func(id IDs) []proto.Message {
		return []proto.Message{
			&turnsv1.ListProviderCallsRequest{},
			&turnsv1.ListProviderCallsRequest{Filter: &turnsv1.LedgerFilter{ConversationId: id.Conversation}},
			&turnsv1.ListProviderCallsRequest{Filter: &turnsv1.LedgerFilter{ConversationId: id.Conversation, TurnId: id.Turn}},
			&turnsv1.ListProviderCallsRequest{PageToken: id.Tokens["OperatorService.ListProviderCalls"]},
		}
	},
	"OperatorService.SumProviderCalls": func(id IDs) []proto.Message {
		return []proto.Message{
			&turnsv1.SumProviderCallsRequest{},
			&turnsv1.SumProviderCallsRequest{Filter: &turnsv1.LedgerFilter{ConversationId: id.Conversation}},
			&turnsv1.SumProviderCallsRequest{Filter: &turnsv1.LedgerFilter{ConversationId: id.Conversation, TurnId: id.Turn}},
		}
	},
	"OperatorService.ExplainTurn": func(id IDs) []proto.Message {
		return []proto.Message{
			&turnsv1.ExplainTurnRequest{ConversationId: id.Conversation, TurnId: id.Turn},
			&turnsv1.ExplainTurnRequest{ConversationId: id.Conversation, TurnId: id.Reply},
		}
	},
	"OperatorService.Sweep":       func(IDs) []proto.Message { return []proto.Message{&turnsv1.SweepRequest{}} },
	"OperatorService.ListWorkers": func(IDs) []proto.Message { return []proto.Message{&turnsv1.ListWorkersRequest{}} },
}

func text(s string) []*turnsv1.Block {
	return []*turnsv1.Block{{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: s}}}}
}

// input is a turn under an id that is taken, with words of a stranger's own.
func input(id IDs) *turnsv1.TurnInput {
	return &turnsv1.TurnInput{ConversationId: id.Conversation, TurnId: id.Turn, Content: text("a stranger's words")}
}

// below is a turn that hangs below a row. Its own id is none that is asked about.
func below(id IDs, row string) *turnsv1.TurnInput {
	in := input(id)
	in.TurnId = strangersTurn
	in.Parent = &turnsv1.TurnInput_ParentId{ParentId: row}
	return in
}

// strangersTurn is the id of turns that a stranger sends below what is not his.
const strangersTurn = "5a5a5a5a-0000-4000-8000-000000000001"

// conversation names a conversation, with every field that says what only the server decides.
func conversation(id IDs) *turnsv1.Conversation {
	return &turnsv1.Conversation{ConversationId: id.Conversation, Title: "a stranger's title", LeafId: id.Reply, RunningReplyId: id.Reply}
}

package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 1000, time.UTC)

func textReply(id uuid.UUID, size int) turns.Reply {
	r := replyOf(turns.StatusComplete)
	r.ID = turns.ReplyID{UUID: id}
	r.Content = []turns.Piece{{Kind: turns.KindText, Starts: true, Text: strings.Repeat("é", size/2), Ends: true}}
	r.Length = r.Content[0].Len()
	return r
}

func getTurn(t *testing.T, f *fake) *turnsv1.GetTurnResponse {
	resp, err := turnsv1.NewTurnServiceClient(start(t, f).Conn).GetTurn(t.Context(), &turnsv1.GetTurnRequest{
		ConversationId: conversationID.String(), Target: &turnsv1.GetTurnRequest_TurnId{TurnId: turnID.String()}})
	require.NoError(t, err)
	return resp
}

func TestATurnIsReadWithEverythingThatIsStoredOfIt(t *testing.T) {
	half := 0.5
	f := newFake()
	f.onGet = func(turns.Caller, turns.ConversationID, turns.RowID) (turns.UserTurn, []turns.Reply, error) {
		user := turns.UserTurn{Conversation: conversationID, ID: turnID, Parent: turns.RowID{UUID: otherID}, Seq: 3, Generation: 2, CreateTime: noon,
			Content: []turns.Block{turns.Text{Text: "hi"}, turns.Image{MediaType: "image/png", URL: "https://x"}, turns.Document{Title: "t", Data: []byte{1}},
				turns.ToolResult{ToolUseID: "u", Content: []turns.Block{turns.Text{Text: "r"}}}},
			Options: turns.Options{Model: "m", Temperature: &half, Tools: []turns.Tool{{Name: "n"}}, ToolChoice: &turns.ToolChoice{Mode: "any"}}}
		reply := replyOf(turns.StatusComplete)
		reply.StopReason, reply.CreateTime, reply.EndTime = turns.StopToolUse, noon, noon.Add(time.Second)
		reply.Usage = turns.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4, Reasoning: 5, Source: turns.SourceReported, Wasted: 6, CostMicros: 7, Calls: 8}
		reply.Content = []turns.Piece{
			{Block: 0, Kind: turns.KindThinking, Starts: true, Text: "hm", Ends: true},
			{Block: 1, Kind: turns.KindToolUse, Starts: true, ToolUseID: "u", ToolName: "f", Text: "{}", Ends: true},
			{Block: 2, Kind: turns.KindRefusal, Starts: true, Text: "no", Ends: true},
			{Block: 3, Kind: turns.KindOpaque, Starts: true, Ends: true},
		}
		reply.Length = 14
		return user, []turns.Reply{reply}, nil
	}
	want := &turnsv1.GetTurnResponse{
		Turn: &turnsv1.UserTurn{ConversationId: conversationID.String(), TurnId: turnID.String(), ParentId: otherID.String(), Seq: 3, Generation: 2,
			CreateTime: timestamppb.New(noon),
			Options: &turnsv1.GenerationOptions{Model: "m", Temperature: proto.Float64(0.5), Tools: []*turnsv1.Tool{{Name: "n"}},
				ToolChoice: &turnsv1.ToolChoice{Mode: turnsv1.ToolChoiceMode_TOOL_CHOICE_MODE_ANY}},
			Content: []*turnsv1.Block{textBlock("hi"),
				{Kind: &turnsv1.Block_Image{Image: &turnsv1.ImageBlock{MediaType: "image/png", Source: &turnsv1.ImageBlock_Url{Url: "https://x"}}}},
				{Kind: &turnsv1.Block_Document{Document: &turnsv1.DocumentBlock{Title: "t", Source: &turnsv1.DocumentBlock_Data{Data: []byte{1}}}}},
				{Kind: &turnsv1.Block_ToolResult{ToolResult: &turnsv1.ToolResultBlock{ToolUseId: "u", Content: []*turnsv1.Block{textBlock("r")}}}},
			}},
		Replies: []*turnsv1.Reply{{ConversationId: conversationID.String(), ReplyId: replyID.String(), TurnId: turnID.String(),
			Status: turnsv1.ReplyStatus_REPLY_STATUS_COMPLETE, StopReason: turnsv1.StopReason_STOP_REASON_TOOL_USE,
			Attempt: 1, Generation: 1, Epoch: 1, Length: 14, Provider: "scripted", Model: "demo",
			CreateTime: timestamppb.New(noon), EndTime: timestamppb.New(noon.Add(time.Second)),
			Usage: &turnsv1.Usage{InputTokens: 1, CacheReadTokens: 2, CacheWriteTokens: 3, OutputTokens: 4, ReasoningTokens: 5,
				Source: turnsv1.TokenSource_TOKEN_SOURCE_REPORTED, WastedTokens: 6, CostMicros: 7, ProviderCalls: 8},
			Content: []*turnsv1.Block{
				{Kind: &turnsv1.Block_Thinking{Thinking: &turnsv1.ThinkingBlock{Text: "hm"}}},
				{Kind: &turnsv1.Block_ToolUse{ToolUse: &turnsv1.ToolUseBlock{ToolUseId: "u", Name: "f", InputJson: "{}"}}},
				{Kind: &turnsv1.Block_Refusal{Refusal: &turnsv1.RefusalBlock{Text: "no"}}},
				{Kind: &turnsv1.Block_Opaque{Opaque: &turnsv1.OpaqueBlock{Provider: "scripted"}}},
			}}},
	}
	require.Empty(t, cmp.Diff(want, getTurn(t, f), protocmp.Transform()))
}

func TestALongReplyIsCutAtOneMebibyteAndSaysSo(t *testing.T) {
	f := newFake()
	f.onGet = func(turns.Caller, turns.ConversationID, turns.RowID) (turns.UserTurn, []turns.Reply, error) {
		return turns.UserTurn{}, []turns.Reply{textReply(otherID, 3<<20), textReply(replyID.UUID, 1000)}, nil
	}
	replies := getTurn(t, f).GetReplies()
	cut := replies[0].GetContent()[0].GetText().GetText()
	require.True(t, replies[0].GetContentTruncated())
	require.LessOrEqual(t, len(cut), 1<<20)
	require.Greater(t, len(cut), 1<<20-16)
	require.Equal(t, strings.Repeat("é", len(cut)/2), cut)
	require.Equal(t, uint32(3<<20)+2, replies[0].GetLength())
	require.False(t, replies[1].GetContentTruncated())
	require.Len(t, replies[1].GetContent()[0].GetText().GetText(), 1000)
}

func TestManyLongRepliesTogetherStayWithinOneMessageAndTheNewestIsShownFirst(t *testing.T) {
	f := newFake()
	f.onGet = func(turns.Caller, turns.ConversationID, turns.RowID) (turns.UserTurn, []turns.Reply, error) {
		var replies []turns.Reply
		for range 20 {
			replies = append(replies, textReply(uuid.New(), 1<<20-100))
		}
		return turns.UserTurn{}, replies, nil
	}
	resp := getTurn(t, f)
	require.Len(t, resp.GetReplies(), 20)
	require.Less(t, proto.Size(resp), 4<<20)
	require.False(t, resp.GetReplies()[19].GetContentTruncated())
	require.True(t, resp.GetReplies()[0].GetContentTruncated())
	require.Empty(t, resp.GetReplies()[0].GetContent())
}

func TestTheLeaseOfAReplyInFlightIsToldByTheDatabasesClock(t *testing.T) {
	f := newFake()
	f.onGet = func(turns.Caller, turns.ConversationID, turns.RowID) (turns.UserTurn, []turns.Reply, error) {
		r := replyOf(turns.StatusInFlight)
		r.CreateTime, r.Age, r.LeaseLeft = noon, 10*time.Second, 5*time.Second
		ended := replyOf(turns.StatusAbandoned)
		ended.Reason, ended.CreateTime = turns.ReasonShutdown, noon
		return turns.UserTurn{}, []turns.Reply{r, ended}, nil
	}
	replies := getTurn(t, f).GetReplies()
	require.Equal(t, noon.Add(15*time.Second), replies[0].GetLeaseExpireTime().AsTime())
	require.Equal(t, turnsv1.RetryAdvice_RETRY_ADVICE_UNSPECIFIED, replies[0].GetAdvice())
	require.Nil(t, replies[0].GetEndTime())
	require.Nil(t, replies[1].GetLeaseExpireTime())
	require.Equal(t, turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_NOW, replies[1].GetAdvice())
}

func TestASubmissionIsAnsweredWithoutContent(t *testing.T) {
	f := newFake()
	f.onSubmit = func(turns.Caller, turns.Delivery) (turns.Submission, error) {
		return turns.Submission{Turn: turns.UserTurn{ID: turnID, Content: []turns.Block{turns.Text{Text: "hi"}}},
			Reply: textReply(replyID.UUID, 100), Result: turns.ResultReplayed}, nil
	}
	resp, err := turnsv1.NewTurnServiceClient(start(t, f).Conn).SubmitTurn(t.Context(), &turnsv1.SubmitTurnRequest{Input: input()})
	require.NoError(t, err)
	require.Empty(t, resp.GetTurn().GetContent())
	require.Empty(t, resp.GetReply().GetContent())
	require.False(t, resp.GetReply().GetContentTruncated())
	require.Equal(t, uint32(102), resp.GetReply().GetLength())
	require.Equal(t, turnsv1.DeliveryResult_DELIVERY_RESULT_REPLAYED, resp.GetResult())
}

func TestATargetIsNamedByTurnOrByReply(t *testing.T) {
	f := newFake(whole())
	var asked []turns.RowID
	f.onTarget = func(_ turns.Caller, c turns.ConversationID, row turns.RowID) (turns.ConversationKey, turns.Reply, error) {
		require.Equal(t, conversationID, c)
		asked = append(asked, row)
		return turns.ConversationKey{}, replyOf(turns.StatusComplete), nil
	}
	client := turnsv1.NewTurnServiceClient(start(t, f).Conn)
	for _, req := range []*turnsv1.FollowReplyRequest{
		{Target: &turnsv1.FollowReplyRequest_ReplyId{ReplyId: strings.ToUpper(replyID.String())}},
		{Target: &turnsv1.FollowReplyRequest_TurnId{TurnId: turnID.String()}},
	} {
		req.ConversationId = strings.ToUpper(conversationID.String())
		stream, err := client.FollowReply(t.Context(), req)
		require.NoError(t, err)
		_, err = events(stream)
		require.NoError(t, err)
	}
	require.Equal(t, []turns.RowID{replyID.Row(), turnID.Row()}, asked)
}

func TestAPageOfTurnsIsAskedForAndShownAsItIs(t *testing.T) {
	f := newFake()
	reply := textReply(replyID.UUID, 10)
	f.onList = func(_ turns.Caller, q turns.ListQuery) ([]turns.TurnEntry, string, error) {
		require.Equal(t, turns.ListQuery{Conversation: conversationID, Leaf: turns.RowID{UUID: otherID}, PageSize: 7, PageToken: "p"}, q)
		return []turns.TurnEntry{
			{Turn: turns.UserTurn{ID: turnID}, Reply: &reply, ReplyCount: 2, Siblings: []turns.TurnID{turnID, {UUID: otherID}}},
			{Turn: turns.UserTurn{ID: turns.TurnID{UUID: otherID}}},
		}, "next", nil
	}
	resp, err := turnsv1.NewTurnServiceClient(start(t, f).Conn).ListTurns(t.Context(), &turnsv1.ListTurnsRequest{
		ConversationId: conversationID.String(), LeafId: otherID.String(), PageSize: 7, PageToken: "p"})
	require.NoError(t, err)
	require.Equal(t, "next", resp.GetNextPageToken())
	require.Equal(t, strings.Repeat("é", 5), resp.GetEntries()[0].GetReply().GetContent()[0].GetText().GetText())
	require.Equal(t, int32(2), resp.GetEntries()[0].GetReplyCount())
	require.Equal(t, []string{turnID.String(), otherID.String()}, resp.GetEntries()[0].GetSiblingTurnIds())
	require.Nil(t, resp.GetEntries()[1].GetReply())
}

func TestABadReadIsRefusedByItsField(t *testing.T) {
	h := start(t, newFake())
	client := turnsv1.NewTurnServiceClient(h.Conn)
	c := conversationID.String()
	_, noTarget := client.GetTurn(t.Context(), &turnsv1.GetTurnRequest{ConversationId: c})
	_, nilTarget := client.GetTurn(t.Context(), &turnsv1.GetTurnRequest{ConversationId: c, Target: &turnsv1.GetTurnRequest_ReplyId{ReplyId: nilID}})
	_, nilConversation := client.GetTurn(t.Context(), &turnsv1.GetTurnRequest{ConversationId: nilID, Target: &turnsv1.GetTurnRequest_ReplyId{ReplyId: replyID.String()}})
	_, pages := client.ListTurns(t.Context(), &turnsv1.ListTurnsRequest{ConversationId: c, PageSize: 201})
	_, leaf := client.ListTurns(t.Context(), &turnsv1.ListTurnsRequest{ConversationId: c, LeafId: nilID})
	for field, err := range map[string]error{"target": noTarget, "reply_id": nilTarget, "conversation_id": nilConversation, "page_size": pages, "leaf_id": leaf} {
		info(t, err, codes.InvalidArgument)
		require.Equal(t, field, fieldAt(err))
	}
}

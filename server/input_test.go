package server_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

const nilID = "00000000-0000-0000-0000-000000000000"

// unknownField puts a field into a message that its type does not have.
func unknownField(m proto.Message, num protowire.Number) {
	m.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), 1))
}

// badInputs break one rule each.
var badInputs = map[string]struct {
	break_ func(*turnsv1.TurnInput)
	reason string
	field  string
}{
	"no turn id":           {func(in *turnsv1.TurnInput) { in.TurnId = "" }, "INVALID_FIELD", "input.turn_id"},
	"turn id is no UUID":   {func(in *turnsv1.TurnInput) { in.TurnId = "msg_123" }, "INVALID_FIELD", "input.turn_id"},
	"nil turn id":          {func(in *turnsv1.TurnInput) { in.TurnId = nilID }, "INVALID_FIELD", "input.turn_id"},
	"nil conversation id":  {func(in *turnsv1.TurnInput) { in.ConversationId = nilID }, "INVALID_FIELD", "input.conversation_id"},
	"conversation no UUID": {func(in *turnsv1.TurnInput) { in.ConversationId = "x" }, "INVALID_FIELD", "input.conversation_id"},
	"nil parent":           {func(in *turnsv1.TurnInput) { in.Parent = &turnsv1.TurnInput_ParentId{ParentId: nilID} }, "INVALID_FIELD", "input.parent_id"},
	"parent no UUID":       {func(in *turnsv1.TurnInput) { in.Parent = &turnsv1.TurnInput_ParentId{ParentId: "x"} }, "INVALID_FIELD", "input.parent_id"},
	"root that is false":   {func(in *turnsv1.TurnInput) { in.Parent = &turnsv1.TurnInput_Root{} }, "INVALID_FIELD", "input.root"},
	"no content":           {func(in *turnsv1.TurnInput) { in.Content = nil }, "CONTENT_EMPTY", "input.content"},
	"block of no kind":     {func(in *turnsv1.TurnInput) { in.Content[0].Kind = nil }, "INVALID_FIELD", "input.content[0].kind"},
	"content of 5 MB":      {func(in *turnsv1.TurnInput) { in.Content[0] = textBlock(strings.Repeat("x", 5_000_000)) }, "CONTENT_TOO_LARGE", "input.content"},
	"options of 5 MB": {func(in *turnsv1.TurnInput) {
		in.Options = &turnsv1.GenerationOptions{System: strings.Repeat("x", 5_000_000)}
	}, "CONTENT_TOO_LARGE", "input.options"},
	"too many blocks": {func(in *turnsv1.TurnInput) { in.Content = make([]*turnsv1.Block, 1001); fill(in.Content) }, "INVALID_FIELD", "input.content"},
	"long model":      {func(in *turnsv1.TurnInput) { in.Options = &turnsv1.GenerationOptions{Model: strings.Repeat("m", 129)} }, "INVALID_FIELD", "input.options.model"},
	"hot":             {func(in *turnsv1.TurnInput) { in.Options = &turnsv1.GenerationOptions{Temperature: proto.Float64(3)} }, "INVALID_FIELD", "input.options.temperature"},
	"temperature no number": {func(in *turnsv1.TurnInput) {
		in.Options = &turnsv1.GenerationOptions{Temperature: proto.Float64(math.NaN())}
	}, "INVALID_FIELD", "input.options.temperature"},
	"on_busy not known": {func(in *turnsv1.TurnInput) { in.OnBusy = 99 }, "INVALID_FIELD", "input.on_busy"},
	"source not known":  {func(in *turnsv1.TurnInput) { in.Source = 99 }, "INVALID_FIELD", "input.source"},
	"negative deadline": {func(in *turnsv1.TurnInput) { in.Deadline = durationpb.New(-time.Second) }, "INVALID_FIELD", "input.deadline"},
	"impossible grace":  {func(in *turnsv1.TurnInput) { in.DisconnectGrace = &durationpb.Duration{Seconds: 1, Nanos: -1} }, "INVALID_FIELD", "input.disconnect_grace"},
	"unknown field":     {func(in *turnsv1.TurnInput) { unknownField(in, 77) }, "INVALID_FIELD", "input"},
	"unknown field deep": {func(in *turnsv1.TurnInput) {
		in.Content = append(in.Content, textBlock("x"))
		unknownField(in.Content[1].GetText(), 77)
	}, "INVALID_FIELD", "input.content[1].text"},
	"unknown field in options": {func(in *turnsv1.TurnInput) {
		in.Options = &turnsv1.GenerationOptions{ToolChoice: &turnsv1.ToolChoice{}}
		unknownField(in.Options.ToolChoice, 77)
	}, "INVALID_FIELD", "input.options.tool_choice"},
}

func fill(blocks []*turnsv1.Block) {
	for i := range blocks {
		blocks[i] = textBlock("x")
	}
}

func TestABadInputIsRefusedByItsFieldBeforeTheDomainHearsOfIt(t *testing.T) {
	f := newFake(whole())
	h := start(t, f)
	for name, c := range badInputs {
		t.Run(name, func(t *testing.T) {
			in := input()
			c.break_(in)
			_, unary := turnsv1.NewTurnServiceClient(h.Conn).SubmitTurn(t.Context(), &turnsv1.SubmitTurnRequest{Input: in})
			_, streamed := turn(t, h, &turnsv1.TurnRequest{Input: in})
			for _, err := range []error{unary, streamed} {
				got := info(t, err, codes.InvalidArgument)
				require.Equal(t, c.reason, got.GetReason())
				require.Equal(t, "DO_NOT_RETRY", got.GetMetadata()["retry"])
				require.Equal(t, c.field, fieldAt(err))
			}
			require.Zero(t, f.submissions())
		})
	}
}

func TestContentThatIsTooLargeSaysHowLargeAndWhatTheLimitIs(t *testing.T) {
	in := input()
	in.Content[0] = textBlock(strings.Repeat("x", 5_000_000))
	_, err := turn(t, start(t, newFake()), &turnsv1.TurnRequest{Input: in})
	meta := info(t, err, codes.InvalidArgument).GetMetadata()
	require.Equal(t, "5000000", meta["size"])
	require.Equal(t, "4194304", meta["limit"])
}

// grpc-go answers this one by itself, so there is nothing that could say more; the limit is far enough above that of
// content for a turn of 5 MB to get an answer of turnd's own.
func TestAMessageBeyondTheReceiveLimitIsRefusedByTheLibraryAndReachesNoCodeOfOurs(t *testing.T) {
	f := newFake()
	in := input()
	in.Content[0] = textBlock(strings.Repeat("x", 17<<20))
	_, err := turn(t, start(t, f), &turnsv1.TurnRequest{Input: in})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Zero(t, f.submissions())
}

func TestARequestWithoutAnInputOrWithABadCursorIsRefused(t *testing.T) {
	h := start(t, newFake())
	_, err := turn(t, h, &turnsv1.TurnRequest{})
	info(t, err, codes.InvalidArgument)
	require.Equal(t, "input", fieldAt(err))
	for _, id := range []string{"", "x", nilID} {
		_, err = turn(t, h, &turnsv1.TurnRequest{Input: input(), Cursor: &turnsv1.Cursor{ReplyId: id}})
		info(t, err, codes.InvalidArgument)
		require.Equal(t, "cursor.reply_id", fieldAt(err))
	}
}

func TestSeveralBrokenRulesAreNamedTogether(t *testing.T) {
	in := input()
	in.TurnId, in.ConversationId = "x", "y"
	_, err := turn(t, start(t, newFake()), &turnsv1.TurnRequest{Input: in})
	info(t, err, codes.InvalidArgument)
	require.Contains(t, err.Error(), "and 1 more")
}

func TestADeliveryArrivesInTheDomainAsItWasSent(t *testing.T) {
	f := newFake(whole())
	h := start(t, f)
	in := input()
	in.TurnId = strings.ToUpper(in.GetTurnId())
	in.Parent = &turnsv1.TurnInput_ParentId{ParentId: otherID.String()}
	in.Content = []*turnsv1.Block{
		textBlock("a"),
		{Kind: &turnsv1.Block_Image{Image: &turnsv1.ImageBlock{MediaType: "image/png", Source: &turnsv1.ImageBlock_Data{Data: []byte{1}}}}},
		{Kind: &turnsv1.Block_Image{Image: &turnsv1.ImageBlock{MediaType: "image/png", Source: &turnsv1.ImageBlock_Url{Url: "https://x"}}}},
		{Kind: &turnsv1.Block_Document{Document: &turnsv1.DocumentBlock{MediaType: "text/plain", Title: "t", Source: &turnsv1.DocumentBlock_Data{Data: []byte{2}}}}},
		{Kind: &turnsv1.Block_ToolResult{ToolResult: &turnsv1.ToolResultBlock{ToolUseId: "u", IsError: true, Content: []*turnsv1.Block{textBlock("b")}}}},
	}
	in.Options = &turnsv1.GenerationOptions{Model: "m", System: "s", MaxOutputTokens: 5, Temperature: proto.Float64(0), StopSequences: []string{"."},
		Tools:      []*turnsv1.Tool{{Name: "n", Description: "d", InputSchemaJson: "{}"}},
		ToolChoice: &turnsv1.ToolChoice{Mode: turnsv1.ToolChoiceMode_TOOL_CHOICE_MODE_TOOL, ToolName: "n"}, ThinkingBudgetTokens: 6}
	in.OnBusy, in.OnDisconnect = turnsv1.OnBusy_ON_BUSY_ENQUEUE, turnsv1.OnDisconnect_ON_DISCONNECT_CANCEL
	in.OnAmbiguous, in.OnPartial = turnsv1.OnAmbiguous_ON_AMBIGUOUS_HOLD, turnsv1.OnPartial_ON_PARTIAL_CONTINUE
	in.Deadline, in.Source = durationpb.New(time.Minute), turnsv1.DeliverySource_DELIVERY_SOURCE_REDELIVERY
	_, err := turn(t, h, &turnsv1.TurnRequest{Input: in, Cursor: &turnsv1.Cursor{ReplyId: replyID.String(), Offset: 3}})
	require.NoError(t, err)
	zero := 0.0
	require.Equal(t, turns.Delivery{
		Input: turns.Input{
			Conversation: conversationID, Turn: turnID, Parent: turns.RowID{UUID: otherID}, ParentSet: true,
			Content: []turns.Block{
				turns.Text{Text: "a"}, turns.Image{MediaType: "image/png", Data: []byte{1}}, turns.Image{MediaType: "image/png", URL: "https://x"},
				turns.Document{MediaType: "text/plain", Title: "t", Data: []byte{2}},
				turns.ToolResult{ToolUseID: "u", IsError: true, Content: []turns.Block{turns.Text{Text: "b"}}},
			},
			Options: turns.Options{Model: "m", System: "s", MaxOutputTokens: 5, Temperature: &zero, StopSequences: []string{"."},
				Tools:      []turns.Tool{{Name: "n", Description: "d", InputSchemaJSON: "{}"}},
				ToolChoice: &turns.ToolChoice{Mode: "tool", ToolName: "n"}, ThinkingBudgetTokens: 6},
		},
		Cursor: &turns.Cursor{Reply: replyID, Offset: 3}, Source: turns.SourceRedelivery, OnBusy: turns.OnBusyEnqueue,
		OnDisconnect: turns.OnDisconnectCancel, OnAmbiguous: turns.OnAmbiguousHold, OnPartial: turns.OnPartialContinue, Deadline: time.Minute,
	}, f.delivered[0])
}

func TestANewRootAndAParentLeftOpenAreTwoThings(t *testing.T) {
	f := newFake(whole())
	h := start(t, f)
	root, open := input(), input()
	root.Parent = &turnsv1.TurnInput_Root{Root: true}
	for _, in := range []*turnsv1.TurnInput{root, open} {
		_, err := turn(t, h, &turnsv1.TurnRequest{Input: in})
		require.NoError(t, err)
	}
	require.True(t, f.delivered[0].Input.ParentSet)
	require.True(t, f.delivered[0].Input.Parent.IsZero())
	require.False(t, f.delivered[1].Input.ParentSet)
}

func TestACallThatALibrarySentAgainIsAClientsRetryUnlessTheInputSaysMore(t *testing.T) {
	f := newFake(whole())
	h := start(t, f)
	send := func(attempts string, source turnsv1.DeliverySource) turns.DeliverySource {
		in := input()
		in.Source = source
		// A client may not set the header itself, so what the library would send goes through the one way that is open.
		ctx := metadata.AppendToOutgoingContext(t.Context(), "grpc-previous-rpc-attempts", attempts)
		_, err := turnsv1.NewTurnServiceClient(h.Conn).SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: in})
		require.NoError(t, err)
		return f.delivered[len(f.delivered)-1].Source
	}
	require.Equal(t, turns.SourceClientRetry, send("2", turnsv1.DeliverySource_DELIVERY_SOURCE_UNSPECIFIED))
	require.Equal(t, turns.SourceRedelivery, send("2", turnsv1.DeliverySource_DELIVERY_SOURCE_REDELIVERY))
	require.Equal(t, turns.DeliverySource(""), send("0", turnsv1.DeliverySource_DELIVERY_SOURCE_UNSPECIFIED))
	require.Equal(t, turns.DeliverySource(""), send("x", turnsv1.DeliverySource_DELIVERY_SOURCE_UNSPECIFIED))
}

func TestTextWithNULReachesTheDomainWhichHasTheRuleForIt(t *testing.T) {
	f := newFake(whole())
	in := input()
	in.Content[0] = textBlock("a\x00b")
	_, err := turn(t, start(t, f), &turnsv1.TurnRequest{Input: in})
	require.NoError(t, err)
	require.Equal(t, []turns.Block{turns.Text{Text: "a\x00b"}}, f.delivered[0].Input.Content)
}

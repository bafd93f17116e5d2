package server_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server/servertest"
	"github.com/turnd/turnd/turns"
)

// rawCodec sends and receives bytes as they are.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// sendRaw calls a method with bytes for a request, as a unary call or as a stream.
func sendRaw(t *testing.T, h *servertest.Harness, method string, raw []byte) error {
	var out []byte
	if method != turnsv1.TurnService_Turn_FullMethodName {
		return invoke(t, h, method, raw, &out, grpc.ForceCodecV2(rawCodec{}))
	}
	stream, err := h.Conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, method, grpc.ForceCodecV2(rawCodec{}))
	require.NoError(t, err)
	require.NoError(t, stream.SendMsg(raw))
	require.NoError(t, stream.CloseSend())
	return stream.RecvMsg(&out)
}

// placeholder is replaced by as many bytes that are not UTF-8.
const placeholder = "@@@@"

func broken(t *testing.T, m proto.Message) []byte {
	raw, err := proto.Marshal(m)
	require.NoError(t, err)
	require.Contains(t, string(raw), placeholder)
	return bytes.ReplaceAll(raw, []byte(placeholder), []byte("\xff\xfe\xc0\x80"))
}

func TestTextThatIsNotUTF8IsRefusedByItsField(t *testing.T) {
	h := start(t, newFake())
	nested := func(change func(*turnsv1.TurnInput)) *turnsv1.TurnInput {
		in := input()
		change(in)
		return in
	}
	text := nested(func(in *turnsv1.TurnInput) { in.Content = append(in.Content, textBlock("ok "+placeholder)) })
	for name, c := range map[string]struct {
		method string
		req    proto.Message
		field  string
	}{
		"content of a stream": {turnsv1.TurnService_Turn_FullMethodName, &turnsv1.TurnRequest{Input: text}, "input.content[1].text.text"},
		"content of a submit": {turnsv1.TurnService_SubmitTurn_FullMethodName, &turnsv1.SubmitTurnRequest{Input: text}, "input.content[1].text.text"},
		"an id":               {turnsv1.TurnService_SubmitTurn_FullMethodName, &turnsv1.SubmitTurnRequest{Input: nested(func(in *turnsv1.TurnInput) { in.TurnId = placeholder })}, "input.turn_id"},
		"one of several strings": {turnsv1.TurnService_SubmitTurn_FullMethodName, &turnsv1.SubmitTurnRequest{Input: nested(func(in *turnsv1.TurnInput) {
			in.Options = &turnsv1.GenerationOptions{StopSequences: []string{"a", "b", placeholder}}
		})}, "input.options.stop_sequences[2]"},
		"a tool result's text": {turnsv1.TurnService_SubmitTurn_FullMethodName, &turnsv1.SubmitTurnRequest{Input: nested(func(in *turnsv1.TurnInput) {
			in.Content = append(in.Content, &turnsv1.Block{Kind: &turnsv1.Block_ToolResult{ToolResult: &turnsv1.ToolResultBlock{
				ToolUseId: "x", Content: []*turnsv1.Block{textBlock(placeholder)}}}})
		})}, "input.content[1].tool_result.content[0].text.text"},
		"a label": {turnsv1.ConversationService_CreateConversation_FullMethodName, &turnsv1.CreateConversationRequest{
			Conversation: &turnsv1.Conversation{Labels: map[string]string{"k": placeholder}}}, "conversation.labels"},
		"a label's key": {turnsv1.ConversationService_CreateConversation_FullMethodName, &turnsv1.CreateConversationRequest{
			Conversation: &turnsv1.Conversation{Labels: map[string]string{placeholder: "v"}}}, "conversation.labels"},
		"a page token": {turnsv1.TurnService_ListTurns_FullMethodName, &turnsv1.ListTurnsRequest{
			ConversationId: conversationID.String(), PageToken: placeholder}, "page_token"},
	} {
		t.Run(name, func(t *testing.T) {
			err := sendRaw(t, h, c.method, broken(t, c.req))
			got := info(t, err, codes.InvalidArgument)
			require.Equal(t, "INVALID_FIELD", got.GetReason())
			require.Equal(t, c.field, fieldAt(err))
			require.Contains(t, err.Error(), "UTF-8")
		})
	}
}

func TestBytesThatAreNoMessageAreAnInvalidArgument(t *testing.T) {
	h := start(t, newFake())
	cut, err := proto.Marshal(&turnsv1.SubmitTurnRequest{Input: input()})
	require.NoError(t, err)
	for name, raw := range map[string][]byte{
		"garbage":         []byte("\xff\xff\xff\xff garbage"),
		"cut off":         cut[:len(cut)-3],
		"a broken inside": protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte{0x0f}),
	} {
		for _, method := range []string{turnsv1.TurnService_Turn_FullMethodName, turnsv1.TurnService_SubmitTurn_FullMethodName} {
			t.Run(name, func(t *testing.T) {
				require.Equal(t, "INVALID_FIELD", info(t, sendRaw(t, h, method, raw), codes.InvalidArgument).GetReason())
			})
		}
	}
}

func TestAClientCannotForgeTheMarkOfABrokenMessage(t *testing.T) {
	f := newFake()
	f.onRead = func(turns.Caller, turns.ConversationID) (turns.Conversation, error) {
		return turns.Conversation{ID: conversationID}, nil
	}
	raw, err := proto.Marshal(&turnsv1.GetConversationRequest{ConversationId: conversationID.String()})
	require.NoError(t, err)
	raw = protowire.AppendTag(raw, protowire.MaxValidNumber, protowire.BytesType)
	raw = protowire.AppendBytes(raw, append(make([]byte, 16), "\x01input.turn_id"...))
	require.NoError(t, sendRaw(t, start(t, f), turnsv1.ConversationService_GetConversation_FullMethodName, raw))
}

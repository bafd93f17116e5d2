package server_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// seal is what must never leave.
const seal = "a-seal-of-the-vendor"

// everyKind is a log with a block of each kind that a reply can have.
var everyKind = []turns.Piece{
	{Block: 0, Kind: turns.KindThinking, Starts: true, Text: "hm", Ends: true, Seal: seal},
	{Block: 1, Kind: turns.KindThinking, Starts: true, Redacted: true, Ends: true, Seal: seal},
	{Block: 2, Kind: turns.KindText, Starts: true, Text: "é", Ends: true},
	{Block: 3, Kind: turns.KindToolUse, Starts: true, ToolUseID: "t1", ToolName: "f", Text: `{"b": 1e99}`, Ends: true},
	{Block: 4, Kind: turns.KindRefusal, Starts: true, Text: "no", Ends: true},
	{Block: 5, Kind: turns.KindOpaque, Starts: true, Ends: true},
}

// events of one block, from the place it begins at.
func blockEvents(at, index uint32, kind turnsv1.BlockKind, id, name, text string) []*turnsv1.Event {
	event := func(size int, e *turnsv1.Event) *turnsv1.Event {
		e.ReplyId, e.Offset, e.NextOffset = replyID.String(), at, at+uint32(size)
		at += uint32(size)
		return e
	}
	out := []*turnsv1.Event{event(1, &turnsv1.Event{Kind: &turnsv1.Event_BlockStarted{BlockStarted: &turnsv1.BlockStarted{
		BlockIndex: index, Kind: kind, ToolUseId: id, ToolName: name}}})}
	if text != "" {
		out = append(out, event(len(text), &turnsv1.Event{Kind: &turnsv1.Event_Delta{Delta: &turnsv1.Delta{
			BlockIndex: index, Kind: kind, Text: text}}}))
	}
	return append(out, event(1, &turnsv1.Event{Kind: &turnsv1.Event_BlockCompleted{BlockCompleted: &turnsv1.BlockCompleted{BlockIndex: index}}}))
}

func TestEachKindOfBlockHasItsEventsAtItsOffsetsAndNoSeal(t *testing.T) {
	said := []turns.Event{turns.Started{Reply: replyOf(turns.StatusInFlight)}}
	var at uint32
	for _, p := range everyKind {
		said = append(said, turns.Grew{Offset: at, Next: at + p.Len(), Piece: p})
		at += p.Len()
	}
	got, err := follow(t, start(t, newFake(append(said, whole())...)), 0)
	require.NoError(t, err)
	var want []*turnsv1.Event
	want = append(want, blockEvents(0, 0, turnsv1.BlockKind_BLOCK_KIND_THINKING, "", "", "hm")...)
	want = append(want, blockEvents(4, 1, turnsv1.BlockKind_BLOCK_KIND_THINKING, "", "", "")...)
	want = append(want, blockEvents(6, 2, turnsv1.BlockKind_BLOCK_KIND_TEXT, "", "", "é")...)
	want = append(want, blockEvents(10, 3, turnsv1.BlockKind_BLOCK_KIND_TOOL_USE, "t1", "f", `{"b": 1e99}`)...)
	want = append(want, blockEvents(23, 4, turnsv1.BlockKind_BLOCK_KIND_REFUSAL, "", "", "no")...)
	want = append(want, blockEvents(27, 5, turnsv1.BlockKind_BLOCK_KIND_OPAQUE, "", "", "")...)
	equalEvents(t, want, got[1:len(got)-1])
	require.Equal(t, at, got[len(got)-1].GetNextOffset())
	for _, e := range got {
		requireNoSeal(t, e)
	}
}

func TestAStoredReplyShowsAllItsBlocksAndNoSeal(t *testing.T) {
	f := newFake()
	f.onGet = func(turns.Caller, turns.ConversationID, turns.RowID) (turns.UserTurn, []turns.Reply, error) {
		r := replyOf(turns.StatusComplete)
		r.StopReason, r.Length = turns.StopToolUse, 29
		r.Content = everyKind
		return turns.UserTurn{Conversation: conversationID, ID: turnID, Content: []turns.Block{
			turns.ToolResult{ToolUseID: "t0", IsError: true, Content: []turns.Block{turns.Text{Text: "out of order"}}}}}, []turns.Reply{r}, nil
	}
	got, err := turnsv1.NewTurnServiceClient(start(t, f).Conn).GetTurn(t.Context(), &turnsv1.GetTurnRequest{
		ConversationId: conversationID.String(), Target: &turnsv1.GetTurnRequest_TurnId{TurnId: turnID.String()}})
	require.NoError(t, err)
	reply := got.GetReplies()[0]
	require.Equal(t, turnsv1.StopReason_STOP_REASON_TOOL_USE, reply.GetStopReason())
	require.False(t, reply.GetContentTruncated())
	want := []*turnsv1.Block{
		{Kind: &turnsv1.Block_Thinking{Thinking: &turnsv1.ThinkingBlock{Text: "hm"}}},
		{Kind: &turnsv1.Block_Thinking{Thinking: &turnsv1.ThinkingBlock{Redacted: true}}},
		textBlock("é"),
		{Kind: &turnsv1.Block_ToolUse{ToolUse: &turnsv1.ToolUseBlock{ToolUseId: "t1", Name: "f", InputJson: `{"b": 1e99}`}}},
		{Kind: &turnsv1.Block_Refusal{Refusal: &turnsv1.RefusalBlock{Text: "no"}}},
		{Kind: &turnsv1.Block_Opaque{Opaque: &turnsv1.OpaqueBlock{Provider: "scripted"}}},
	}
	require.Len(t, reply.GetContent(), len(want))
	for i, b := range reply.GetContent() {
		require.True(t, proto.Equal(want[i], b), "block %d: %v", i, b)
	}
	result := got.GetTurn().GetContent()[0].GetToolResult()
	require.Equal(t, "t0", result.GetToolUseId())
	require.True(t, result.GetIsError())
	require.Equal(t, "out of order", result.GetContent()[0].GetText().GetText())
	requireNoSeal(t, got)
}

func requireNoSeal(t *testing.T, m proto.Message) {
	t.Helper()
	data, err := proto.Marshal(m)
	require.NoError(t, err)
	require.False(t, bytes.Contains(data, []byte(seal)), "%v", m)
}

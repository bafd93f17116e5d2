package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// fullRequest has a message of nearly every type and a string of nearly every field that a turn can have.
func fullRequest() *turnsv1.SubmitTurnRequest {
	text := func(s string) *turnsv1.Block {
		return &turnsv1.Block{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: s}}}
	}
	return &turnsv1.SubmitTurnRequest{Input: &turnsv1.TurnInput{
		ConversationId: "c0ffee00-0000-4000-8000-000000000001", TurnId: "c0ffee00-0000-4000-8000-000000000002",
		Parent: &turnsv1.TurnInput_ParentId{ParentId: "c0ffee00-0000-4000-8000-000000000003"},
		Content: []*turnsv1.Block{
			text("naïve 你好🦀"),
			{Kind: &turnsv1.Block_Image{Image: &turnsv1.ImageBlock{MediaType: "image/png", Source: &turnsv1.ImageBlock_Data{Data: []byte{0xff, 0xfe}}}}},
			{Kind: &turnsv1.Block_Document{Document: &turnsv1.DocumentBlock{Title: "title", Source: &turnsv1.DocumentBlock_Url{Url: "https://x"}}}},
			{Kind: &turnsv1.Block_ToolResult{ToolResult: &turnsv1.ToolResultBlock{ToolUseId: "u", Content: []*turnsv1.Block{text("inner")}}}},
		},
		Options: &turnsv1.GenerationOptions{Model: "model", System: "system", StopSequences: []string{"one", "two"},
			Tools: []*turnsv1.Tool{{Name: "name", Description: "what for", InputSchemaJson: "{}"}}, ToolChoice: &turnsv1.ToolChoice{ToolName: "name"}},
	}}
}

func TestWhereverBytesAreBrokenTheFaultIsFoundAndIsOfTheKindTheDecoderMeans(t *testing.T) {
	whole, err := proto.Marshal(fullRequest())
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		raw := append([]byte(nil), whole...)
		for range rapid.IntRange(1, 4).Draw(rt, "changes") {
			raw[rapid.IntRange(0, len(raw)-1).Draw(rt, "at")] = rapid.Byte().Draw(rt, "byte")
		}
		raw = raw[:rapid.IntRange(0, len(raw)).Draw(rt, "cut")]
		into := &turnsv1.SubmitTurnRequest{}
		err := proto.Unmarshal(raw, into)
		f := findFault(raw, into.ProtoReflect().Descriptor())
		if err == nil {
			require.False(rt, f.utf8)
			require.Empty(rt, f.path)
			return
		}
		require.Equal(rt, strings.Contains(err.Error(), "UTF-8"), f.utf8, "%v", err)
		if f.utf8 {
			require.NotEmpty(rt, f.path)
		}
	})
}

func TestAFaultBelowTheDepthThatIsWalkedIsLaidToTheMessageThere(t *testing.T) {
	inner := &turnsv1.Block{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: "x"}}}
	for range faultDepth {
		inner = &turnsv1.Block{Kind: &turnsv1.Block_ToolResult{ToolResult: &turnsv1.ToolResultBlock{Content: []*turnsv1.Block{inner}}}}
	}
	raw, err := proto.Marshal(inner)
	require.NoError(t, err)
	f := findFault([]byte(strings.Replace(string(raw), "x", "\xff", 1)), inner.ProtoReflect().Descriptor())
	require.False(t, f.utf8)
	require.Equal(t, faultDepth/2+1, strings.Count(f.path, "tool_result"))
}

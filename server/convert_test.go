package server

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

func drawBlock(rt *rapid.T, depth int) turns.Block {
	s := func(label string) string { return rapid.String().Draw(rt, label) }
	kind := rapid.IntRange(0, 8).Draw(rt, "kind")
	if kind == 8 && depth == 0 {
		kind = 0
	}
	switch kind {
	case 1:
		return turns.Image{MediaType: s("type"), Data: rapid.SliceOf(rapid.Byte()).Draw(rt, "data")}
	case 2:
		return turns.Image{MediaType: s("type"), URL: "https://" + s("url")}
	case 3:
		return turns.Document{MediaType: s("type"), Title: s("title"), URL: "https://" + s("url")}
	case 4:
		return turns.ToolUse{ID: s("id"), Name: s("name"), InputJSON: s("json")}
	case 5:
		return turns.Thinking{Text: s("text"), Redacted: rapid.Bool().Draw(rt, "redacted")}
	case 6:
		return turns.Refusal{Text: s("text"), Category: s("category")}
	case 7:
		return turns.Opaque{Provider: s("provider"), Type: s("type")}
	case 8:
		return turns.ToolResult{ToolUseID: s("id"), IsError: rapid.Bool().Draw(rt, "error"), Content: []turns.Block{drawBlock(rt, depth-1)}}
	}
	return turns.Text{Text: s("text")}
}

// overTheWire encodes and decodes a message.
func overTheWire[M proto.Message](rt *rapid.T, m, into M) M {
	raw, err := proto.Marshal(m)
	require.NoError(rt, err)
	require.NoError(rt, proto.Unmarshal(raw, into))
	return into
}

func TestContentOfEveryKindComesBackFromTheWireAsItWas(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		content := []turns.Block{drawBlock(rt, 2), drawBlock(rt, 2)}
		m := overTheWire(rt, &turnsv1.UserTurn{Content: contentToWire(content)}, &turnsv1.UserTurn{})
		require.Equal(rt, content, contentFromWire(m.GetContent()))
	})
}

func TestOptionsComeBackFromTheWireAsTheyWere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := turns.Options{
			Model: rapid.String().Draw(rt, "model"), System: rapid.String().Draw(rt, "system"),
			MaxOutputTokens:      rapid.Int32().Draw(rt, "max"),
			ThinkingBudgetTokens: rapid.Int32().Draw(rt, "thinking"),
			Temperature:          rapid.Ptr(rapid.Float64Range(0, 2), true).Draw(rt, "temperature"),
		}
		if rapid.Bool().Draw(rt, "tools") {
			o.StopSequences = []string{rapid.String().Draw(rt, "stop")}
			o.Tools = []turns.Tool{{Name: "n", Description: rapid.String().Draw(rt, "what for"), InputSchemaJSON: "{}"}}
			o.ToolChoice = &turns.ToolChoice{Mode: rapid.SampledFrom([]turns.ToolChoiceMode{"", "none", "any", "tool"}).Draw(rt, "mode")}
		}
		wire := &turnsv1.UserTurn{Options: optionsToWire(o)}
		back, err := optionsFromWire("options", overTheWire(rt, wire, &turnsv1.UserTurn{}).GetOptions())
		require.NoError(rt, err)
		require.Equal(rt, o, back)
	})
}

func TestOptionsWithNothingSetAreNoMessage(t *testing.T) {
	require.Nil(t, optionsToWire(turns.Options{}))
	o, err := optionsFromWire("options", nil)
	require.NoError(t, err)
	require.Equal(t, turns.Options{}, o)
}

func TestAModeOfToolChoiceThatIsNotKnownIsRefused(t *testing.T) {
	_, err := optionsFromWire("input.options", &turnsv1.GenerationOptions{ToolChoice: &turnsv1.ToolChoice{Mode: 99}})
	require.ErrorContains(t, err, "input.options.tool_choice.mode")
}

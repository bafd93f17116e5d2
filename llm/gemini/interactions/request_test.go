package interactions_test

import (
	"crypto/sha256"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/gemini/interactions"
	"github.com/turnd/turnd/turns"
)

const model = "gemini-3.5-flash"

func user(blocks ...turns.Block) turns.Message {
	return turns.Message{Role: turns.RoleUser, Content: blocks}
}

func assistant(blocks ...turns.Block) turns.Message {
	return turns.Message{Role: turns.RoleAssistant, Content: blocks}
}

func text(s string) turns.Block { return turns.Text{Text: s} }

func hello() turns.Prompt { return turns.Prompt{Messages: []turns.Message{user(text("hello"))}} }

var resume = turns.Capabilities{Resume: true, Cancel: true}

func build(t *testing.T, route turns.Route, p turns.Prompt) string {
	t.Helper()
	route.ProviderModel = model
	got, err := interactions.New(nil, llm.Endpoint{}).Build(route, p)
	require.NoError(t, err)
	again, err := interactions.New(nil, llm.Endpoint{}).Build(route, p)
	require.NoError(t, err)
	require.Equal(t, got, again, "the same prompt makes the same bytes")
	require.Equal(t, sha256.Sum256(got.Body), got.Hash)
	return string(got.Body)
}

func TestARequestIsTheseBytes(t *testing.T) {
	temperature := 0.5
	require.Equal(t, `{"model":"gemini-3.5-flash","input":[{"type":"user_input","content":[{"type":"text","text":"hello"}]}],"stream":true,"store":false}`,
		build(t, turns.Route{}, hello()))
	p := turns.Prompt{
		Options: turns.Options{
			System: "be brief", MaxOutputTokens: 1000, Temperature: &temperature, StopSequences: []string{"END"},
			Tools:      []turns.Tool{{Name: "f", Description: "does <f>", InputSchemaJSON: `{"type": "object"}`}, {Name: "g"}},
			ToolChoice: &turns.ToolChoice{Mode: turns.ToolChoiceTool, ToolName: "g"},
		},
		Messages: []turns.Message{user(text("a")), assistant(text("b ")), user(text("c"), text("d"))},
	}
	require.Equal(t, `{"model":"gemini-3.5-flash","system_instruction":"be brief","input":[{"type":"user_input","content":[{"type":"text","text":"a"}]},`+
		`{"type":"model_output","content":[{"type":"text","text":"b "}]},{"type":"user_input","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]}],`+
		`"tools":[{"type":"function","name":"f","description":"does <f>","parameters":{"type":"object"}},{"type":"function","name":"g"}],`+
		`"generation_config":{"max_output_tokens":500,"temperature":0.5,"stop_sequences":["END"],"tool_choice":{"allowed_tools":{"mode":"any","tools":["g"]}}},`+
		`"stream":true,"store":false}`, build(t, turns.Route{Limits: turns.Limits{MaxOutputTokens: 500}}, p))
}

func TestOnlyWhatCanBeAskedForAgainIsKeptAndLabelled(t *testing.T) {
	p := hello()
	p.Origin = turns.Origin{Conversation: turns.ConversationKey(uuid.New()), Turn: turns.TurnID{UUID: uuid.New()}, Generation: 3}
	require.NotContains(t, build(t, turns.Route{}, p), "labels")
	kept := build(t, turns.Route{Capabilities: resume}, p)
	require.Contains(t, kept, `"stream":true,"store":true,"background":true,"labels":{"turnd_conversation":"`+p.Origin.Conversation.String()+
		`","turnd_generation":"3","turnd_turn":"`+p.Origin.Turn.String()+`"}`)
	require.NotContains(t, build(t, turns.Route{Capabilities: resume}, hello()), "labels", "an origin of nothing names nothing")
}

func TestABudgetForThinkingIsRefused(t *testing.T) {
	p := hello()
	p.Options.ThinkingBudgetTokens = 128
	_, err := interactions.New(nil, llm.Endpoint{}).Build(turns.Route{}, p)
	var refused *turns.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, turns.CodeInvalidField, refused.Code)
	require.Equal(t, "input.options.thinking_budget_tokens", refused.Field)
}

func TestAChoiceAmongToolsGoesWithTools(t *testing.T) {
	for mode, want := range map[turns.ToolChoiceMode]string{turns.ToolChoiceNone: `"tool_choice":"none"`, turns.ToolChoiceAny: `"tool_choice":"any"`} {
		p := hello()
		p.Options.ToolChoice = &turns.ToolChoice{Mode: mode}
		require.NotContains(t, build(t, turns.Route{}, p), "tool_choice", "without tools there is no choice")
		p.Options.Tools = []turns.Tool{{Name: "f"}}
		require.Contains(t, build(t, turns.Route{}, p), want)
	}
}

func TestNothingStandsBetweenACallAndItsResult(t *testing.T) {
	got := build(t, turns.Route{}, turns.Prompt{Messages: []turns.Message{
		user(text("a")),
		assistant(text("b"), turns.ToolUse{ID: "1", Name: "f", InputJSON: `{}`}, text("c"), turns.ToolUse{ID: "2", Name: "g", InputJSON: `{}`}, text("d")),
		user(turns.ToolResult{ToolUseID: "1"}, turns.ToolResult{ToolUseID: "2"}),
	}})
	require.Contains(t, got, `{"type":"model_output","content":[{"type":"text","text":"b"},{"type":"text","text":"c"},{"type":"text","text":"d"}]},`+
		`{"type":"function_call","id":"1","name":"f","arguments":{}},{"type":"function_call","id":"2","name":"g","arguments":{}},{"type":"function_result"`)
}

func TestAHistoryIsAListOfSteps(t *testing.T) {
	const sealed = "gemini.interactions/" + model + "\n"
	got := build(t, turns.Route{}, turns.Prompt{Messages: []turns.Message{
		user(text("a")),
		assistant(turns.Thinking{Text: "hm", Seal: sealed + "s1"}, turns.Thinking{Redacted: true, Seal: sealed + "s2"},
			turns.Thinking{Text: "no", Seal: "gemini.interactions/other\ns3"}, turns.Thinking{Text: "no", Seal: "gemini.generate/" + model + "\ns4"}, turns.Thinking{Text: "no"},
			text("b"), turns.ToolUse{ID: "1", Name: "f", InputJSON: `{"n": 12345678901234567890.10}`}, turns.ToolUse{ID: "2", Name: "g", InputJSON: `{"cut`}),
		user(turns.ToolResult{ToolUseID: "1", Content: []turns.Block{text("12")}}, turns.ToolResult{ToolUseID: "2", IsError: true}, text("c")),
	}})
	require.Equal(t, `{"model":"gemini-3.5-flash","input":[{"type":"user_input","content":[{"type":"text","text":"a"}]},`+
		`{"type":"thought","summary":[{"type":"text","text":"hm"}],"signature":"s1"},{"type":"thought","signature":"s2"},`+
		`{"type":"model_output","content":[{"type":"text","text":"b"}]},`+
		`{"type":"function_call","id":"1","name":"f","arguments":{"n":12345678901234567890.10}},{"type":"function_call","id":"2","name":"g","arguments":{}},`+
		`{"type":"function_result","call_id":"1","name":"f","result":"12"},{"type":"function_result","call_id":"2","name":"g","result":"The tool failed.","is_error":true},`+
		`{"type":"user_input","content":[{"type":"text","text":"c"}]}],"stream":true,"store":false}`, got)
}

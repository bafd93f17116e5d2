package responses_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/openai/responses"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

func words(s string) turns.Block { return turns.Text{Text: s} }

// build makes a request for an endpoint with capabilities.
func build(t *testing.T, caps turns.Capabilities, p turns.Prompt) (turns.Request, error) {
	t.Helper()
	c := responses.New(wire.NewClient(wire.Options{}), llm.Endpoint{BaseURL: "http://127.0.0.1:1"})
	return c.Build(turns.Route{ProviderModel: "gpt-x", Capabilities: caps, Limits: turns.Limits{MaxOutputTokens: 100}}, p)
}

// history is a prompt with all that goes back.
func history() turns.Prompt {
	half := 0.5
	return turns.Prompt{
		Origin: turns.Origin{Conversation: turns.ConversationKey(uuid.MustParse("0192a1b0-0000-8000-8000-000000000001")),
			Turn: turns.TurnID{UUID: uuid.MustParse("0192a1b0-0000-7000-8000-000000000002")}, Generation: 3},
		Options: turns.Options{System: "be kind", MaxOutputTokens: 500, Temperature: &half,
			Tools:      []turns.Tool{{Name: "f", Description: "looks", InputSchemaJSON: `{"type":"object","required":["b","a"]}`}, {Name: "g"}},
			ToolChoice: &turns.ToolChoice{Mode: turns.ToolChoiceTool, ToolName: "f"}},
		Messages: []turns.Message{
			{Role: turns.RoleUser, Content: []turns.Block{words("<go>")}},
			{Role: turns.RoleAssistant, Content: []turns.Block{
				turns.Thinking{Text: "mine", Seal: "openai.responses/gpt-x\ngAAA"},
				turns.Thinking{Redacted: true, Seal: "openai.responses/gpt-x\ngBBB"},
				turns.Thinking{Text: "another model's", Seal: "openai.responses/gpt-y\ngCCC"},
				turns.Thinking{Text: "another vendor's", Seal: "anthropic.messages/gpt-x\nEqQB"},
				turns.Thinking{Text: "nobody's"},
				words("I look"), turns.ToolUse{ID: "c1", Name: "f", InputJSON: `{ "z": 1.10 }`}, turns.ToolUse{ID: "c2", Name: "f", InputJSON: `{"a`},
				turns.Thinking{Text: "cut short", Seal: "openai.responses/gpt-x\ngDDD"},
			}},
			{Role: turns.RoleUser, Content: []turns.Block{turns.ToolResult{ToolUseID: "c1", Content: []turns.Block{words("12")}}, turns.ToolResult{ToolUseID: "c2", IsError: true}, words("so?")}},
		},
	}
}

const (
	head  = `{"model":"gpt-x","instructions":"be kind","input":[`
	input = `{"type":"message","role":"user","content":"<go>"},` +
		`{"type":"reasoning","summary":[{"type":"summary_text","text":"mine"}],"encrypted_content":"gAAA"},` +
		`{"type":"reasoning","summary":[],"encrypted_content":"gBBB"},` +
		`{"type":"message","role":"assistant","content":"I look"},` +
		`{"type":"function_call","call_id":"c1","name":"f","arguments":"{ \"z\": 1.10 }"},` +
		`{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c1","output":"12"},` +
		`{"type":"function_call_output","call_id":"c2","output":"Error: The tool failed."},` +
		`{"type":"message","role":"user","content":"so?"}],`
	options = `"max_output_tokens":100,"temperature":0.5,"tools":[` +
		`{"type":"function","name":"f","description":"looks","parameters":{"type":"object","required":["b","a"]},"strict":false},` +
		`{"type":"function","name":"g","parameters":{"type":"object","properties":{}},"strict":false}],` +
		`"tool_choice":{"type":"function","name":"f"},`
	metadata = `"metadata":{"turnd_conversation":"0192a1b0-0000-8000-8000-000000000001","turnd_generation":"3","turnd_turn":"0192a1b0-0000-7000-8000-000000000002"},`
	tail     = `"stream":true,"stream_options":{"include_obfuscation":false}}`
)

func TestARequestIsTheseBytes(t *testing.T) {
	for name, tt := range map[string]struct {
		caps turns.Capabilities
		want string
	}{
		"nothing is stored":    {turns.Capabilities{}, `"include":["reasoning.encrypted_content"],"store":false,`},
		"in the background":    {turns.Capabilities{Resume: true, Cancel: true}, metadata + `"store":true,"background":true,`},
		"in a conversation":    {turns.Capabilities{Lookup: true}, metadata + `"store":true,`},
		"behind a fence":       {turns.Capabilities{Fence: true}, metadata + `"store":true,`},
		"resume before lookup": {turns.Capabilities{Resume: true, Lookup: true}, metadata + `"store":true,"background":true,`},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := build(t, tt.caps, history())
			require.NoError(t, err)
			require.Equal(t, head+input+options+tt.want+tail, string(req.Body))
			require.True(t, json.Valid(req.Body))
		})
	}
}

func TestAPlainRequestSaysNoMoreThanItMust(t *testing.T) {
	c := responses.New(wire.NewClient(wire.Options{}), llm.Endpoint{BaseURL: "http://127.0.0.1:1"})
	req, err := c.Build(turns.Route{ProviderModel: "gpt-x", Capabilities: turns.Capabilities{Resume: true}},
		turns.Prompt{Messages: []turns.Message{{Role: turns.RoleUser, Content: []turns.Block{words("go")}}}})
	require.NoError(t, err)
	require.Equal(t, `{"model":"gpt-x","input":[{"type":"message","role":"user","content":"go"}],"store":true,"background":true,`+tail, string(req.Body))
}

func TestAModelWithoutReasoningIsNotAskedForIt(t *testing.T) {
	c := responses.New(wire.NewClient(wire.Options{}), llm.Endpoint{BaseURL: "http://127.0.0.1:1"})
	for model, want := range map[string]bool{
		"gpt-5.5": true, "gpt-5.4-mini": true, "o4-mini": true, "gpt-6": true, "some-other": true, "ft:o4-mini:x": true,
		"gpt-4o": false, "gpt-4.1-mini": false, "gpt-3.5-turbo": false, "ft:gpt-4o:x": false, "chatgpt-4o-latest": false, "gpt-5-chat-latest": false,
	} {
		req, err := c.Build(turns.Route{ProviderModel: model}, history())
		require.NoError(t, err)
		require.Equal(t, want, strings.Contains(string(req.Body), "include\":"), model)
	}
}

func TestChoicesOfToolsAreThisWiresWords(t *testing.T) {
	for mode, want := range map[turns.ToolChoiceMode]string{"": "", turns.ToolChoiceNone: `"tool_choice":"none"`, turns.ToolChoiceAny: `"tool_choice":"required"`} {
		p := history()
		p.Options.ToolChoice = &turns.ToolChoice{Mode: mode}
		req, err := build(t, turns.Capabilities{}, p)
		require.NoError(t, err)
		require.Contains(t, string(req.Body), want)
		require.Equal(t, want != "", strings.Contains(string(req.Body), "tool_choice"))
	}
}

func TestOptionsThatTheWireHasNoPlaceForAreRefusedByField(t *testing.T) {
	for field, options := range map[string]turns.Options{
		"thinking_budget_tokens": {ThinkingBudgetTokens: 2000}, "stop_sequences": {StopSequences: []string{"x"}},
	} {
		p := history()
		p.Options = options
		_, err := build(t, turns.Capabilities{}, p)
		var refused *turns.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, turns.CodeInvalidField, refused.Code)
		require.Equal(t, "input.options."+field, refused.Field)
	}
}

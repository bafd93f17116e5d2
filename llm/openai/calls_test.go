package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/openai"
	"github.com/turnd/turnd/turns"
)

// begins and more are chunks of a call; a chunk of plain text is said.
func begins(index int, id, name, args string) string {
	return calls(fmt.Sprintf(`{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}`, index, id, name, args))
}

func more(index int, args string) string {
	return calls(fmt.Sprintf(`{"index":%d,"function":{"arguments":%q}}`, index, args))
}

func calls(parts ...string) string { return gains(`{"tool_calls":[` + strings.Join(parts, ",") + `]}`) }

func gains(delta string) string {
	return `data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}` + "\n\n"
}

func ends(reason string) string {
	return `data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}` + "\n\ndata: [DONE]\n\n"
}

// shown is a stream's blocks as text, one a line; "|" parts deltas.
func shown(t *testing.T, stream string) (string, llmtest.Result) {
	t.Helper()
	r := llmtest.Trickle(t, openai.Adapter(), stream)
	var sb strings.Builder
	for _, d := range r.Deltas {
		switch d := d.(type) {
		case turns.BlockStarted:
			fmt.Fprintf(&sb, "%s%s%s:", d.Kind, d.ToolUseID, d.ToolName)
		case turns.BlockDelta:
			sb.WriteString("|" + d.Text)
		case turns.BlockEnded:
			sb.WriteString("\n")
		}
	}
	return sb.String(), r
}

func TestCallsWhosePartsAreMixedStandOneAfterAnother(t *testing.T) {
	for name, tt := range map[string]struct{ stream, want string }{
		"one after another": {begins(0, "a", "f", "") + more(0, `{"x":`) + more(0, `1}`) + begins(1, "b", "g", "") + more(1, `{}`),
			"tool_useaf:|{\"x\":|1}\ntool_usebg:|{}\n"},
		"mixed": {begins(0, "a", "f", "") + begins(1, "b", "g", "") + more(0, `{"x":`) + more(1, `{"y":`) + more(0, `1}`) + more(1, `2}`),
			"tool_useaf:|{\"x\":|1}\ntool_usebg:|{\"y\":|2}\n"},
		"the second whole before the first": {begins(0, "a", "f", `{"x":`) + begins(1, "b", "g", `{}`) + more(0, `"}"`) + more(0, `}`),
			"tool_useaf:|{\"x\":|\"}\"|}\ntool_usebg:|{}\n"},
		"in one chunk": {calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":"}}`) + more(1, `2}`),
			"tool_useaf:|{}\ntool_usebg:|{\"y\":|2}\n"},
		"no arguments at all": {begins(0, "a", "f", "") + begins(1, "b", "g", ""), "tool_useaf:|{}\ntool_usebg:|{}\n"},
		"the name comes later": {calls(`{"index":0,"id":"a","function":{"arguments":"{"}}`) + calls(`{"index":0,"function":{"name":"f","arguments":"}"}}`),
			"tool_useaf:|{}\n"},
		"no index, told apart by id": {calls(`{"id":"a","function":{"name":"f","arguments":"{}"}}`) + calls(`{"id":"b","function":{"name":"g","arguments":"{"}}`) + calls(`{"function":{"arguments":"}"}}`),
			"tool_useaf:|{}\ntool_usebg:|{|}\n"},
		"index 0 for all": {begins(0, "a", "f", "{}") + begins(0, "b", "g", "{}"), "tool_useaf:|{}\ntool_usebg:|{}\n"},
		"the id again":    {begins(0, "a", "f", "{") + begins(0, "a", "f", "}"), "tool_useaf:|{|}\n"},
		"text before, between and behind": {gains(`{"content":"x"}`) + begins(0, "a", "f", "{}") + gains(`{"content":"y"}`) + begins(1, "b", "g", "") + gains(`{"content":"z"}`),
			"text:|x\ntool_useaf:|{}\ntext:|y\ntool_usebg:|{}\ntext:|z\n"},
		"white space after all":        {begins(0, "a", "f", "{}") + begins(1, "b", "g", "{}") + more(0, "\n"), "tool_useaf:|{}\ntool_usebg:|{}\n"},
		"arguments that are no string": {calls(`{"index":0,"id":"a","function":{"name":"f","arguments":{"b":1,"a":2}}}`), "tool_useaf:|{\"b\":1,\"a\":2}\n"},
		"arguments that are no object": {begins(0, "a", "f", "5") + begins(1, "b", "g", "nul"), "tool_useaf:|5\ntool_usebg:|nul\n"},
		"half a rune between parts": {begins(0, "a", "f", "") + calls(`{"index":0,"function":{"arguments":"{\"x\":\"\ud83e"}}`) + calls(`{"index":0,"function":{"arguments":"\udd80\"}"}}`),
			"tool_useaf:|{\"x\":\"|🦀\"}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, r := shown(t, tt.stream+ends("tool_calls"))
			require.Nil(t, r.Err)
			require.Equal(t, tt.want, got)
			require.Equal(t, turns.StopToolUse, r.Finished.StopReason)
		})
	}
}

func TestACallWithoutAnIdGetsTheSameOneEachTime(t *testing.T) {
	stream := calls(`{"index":0,"function":{"name":"f","arguments":"{}"}}`) + ends("tool_calls")
	first, r := shown(t, stream)
	again, _ := shown(t, stream)
	require.Equal(t, first, again)
	require.Regexp(t, `^call_[0-9a-f]{24}$`, r.Deltas[2].(turns.BlockStarted).ToolUseID)
}

func TestCallsBeyondAllBoundsAreABrokenStream(t *testing.T) {
	var many strings.Builder
	for i := range 300 {
		many.WriteString(begins(i, fmt.Sprint("id", i), "f", ""))
	}
	large := begins(0, "a", "f", "") + begins(1, "b", "g", "") + strings.Repeat(more(1, strings.Repeat("x", 900<<10)), 10)
	for name, stream := range map[string]string{
		"many calls":                  many.String(),
		"much held back":              large,
		"more of a call that is over": begins(0, "a", "f", "{}") + begins(1, "b", "g", "") + more(0, "{}"),
		"calls of another shape":      gains(`{"tool_calls":7}`),
	} {
		t.Run(name, func(t *testing.T) {
			_, r := shown(t, stream+ends("tool_calls"))
			require.NotNil(t, r.Err)
			require.Equal(t, turns.ClassAmbiguous, r.Err.Class)
		})
	}
}

func TestReasoningOfCompatibleServersIsThinkingUnderEitherName(t *testing.T) {
	got, _ := shown(t, gains(`{"reasoning_content":"a","reasoning":"a"}`)+gains(`{"reasoning":"b"}`)+gains(`{"reasoning":{"odd":1},"content":"c"}`)+ends("stop"))
	require.Equal(t, "thinking:|a|b\ntext:|c\n", got)
}

func TestAReplyWithCallsThatJustStopsWaitsForTheirResults(t *testing.T) {
	_, r := shown(t, begins(0, "a", "f", "{}")+ends("stop"))
	require.Equal(t, turns.StopToolUse, r.Finished.StopReason)
	_, r = shown(t, begins(0, "a", "f", "{")+ends("length"))
	require.Equal(t, turns.StopLength, r.Finished.StopReason)
}

func TestAConversationWithToolsIsTheseBytes(t *testing.T) {
	talk := []turns.Message{
		message(turns.RoleUser, "a"),
		{Role: turns.RoleAssistant, Content: []turns.Block{
			turns.Thinking{Text: "hm", Seal: "anthropic.messages/m\nEqQB"},
			turns.ToolUse{ID: "t1", Name: "f", InputJSON: `{"b":12345678901234567890, "a":"<é>"}`}, turns.ToolUse{ID: "t2", Name: "g", InputJSON: `{"cut`},
		}},
		{Role: turns.RoleUser, Content: []turns.Block{
			turns.ToolResult{ToolUseID: "t2", IsError: true, Content: []turns.Block{turns.Text{Text: "no"}, turns.Text{Text: "way"}}},
			turns.ToolResult{ToolUseID: "t1"}, turns.Text{Text: "so"},
		}},
		{Role: turns.RoleAssistant, Content: []turns.Block{turns.Refusal{Text: "I can not."}, turns.ToolUse{ID: "t3", Name: "f"}}},
		message(turns.RoleUser, "b"),
	}
	const said = `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[` +
		`{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"b\":12345678901234567890, \"a\":\"<é>\"}"}},{"id":"t2","type":"function","function":{"name":"g","arguments":"{}"}}]},` +
		`{"role":"tool","content":"","tool_call_id":"t1"},{"role":"tool","content":"Error: no\n\nway","tool_call_id":"t2"},{"role":"user","content":"so"},` +
		`{"role":"assistant","content":"I can not.","tool_calls":[{"id":"t3","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
		`{"role":"tool","content":"Error: This tool was not run: the user went on without it.","tool_call_id":"t3"},{"role":"user","content":"b"}],` +
		`"stream":true,"stream_options":{"include_usage":true}`
	const tools = `,"tools":[{"type":"function","function":{"name":"f","description":"looks","parameters":{"type":"object"}}},{"type":"function","function":{"name":"g"}}]`
	offered := []turns.Tool{{Name: "f", Description: "looks", InputSchemaJSON: `{"type":"object"}`}, {Name: "g"}}
	for name, tt := range map[string]struct {
		tools  []turns.Tool
		choice *turns.ToolChoice
		want   string
	}{
		"tools":            {offered, nil, said + tools + "}"},
		"left to it":       {offered, &turns.ToolChoice{}, said + tools + "}"},
		"none":             {offered, &turns.ToolChoice{Mode: turns.ToolChoiceNone}, said + tools + `,"tool_choice":"none"}`},
		"any":              {offered, &turns.ToolChoice{Mode: turns.ToolChoiceAny}, said + tools + `,"tool_choice":"required"}`},
		"one":              {offered, &turns.ToolChoice{Mode: turns.ToolChoiceTool, ToolName: "g"}, said + tools + `,"tool_choice":{"type":"function","function":{"name":"g"}}}`},
		"no tools at all":  {nil, nil, said + "}"},
		"none of no tools": {nil, &turns.ToolChoice{Mode: turns.ToolChoiceNone}, said + "}"},
	} {
		t.Run(name, func(t *testing.T) {
			c := openai.New(nil, llm.Endpoint{})
			for range 3 {
				got, err := c.Build(turns.Route{ProviderModel: "m"}, turns.Prompt{Options: turns.Options{Tools: tt.tools, ToolChoice: tt.choice}, Messages: talk})
				require.NoError(t, err)
				require.Equal(t, tt.want, string(got.Body))
			}
		})
	}
}

func TestABudgetForThinkingIsRefused(t *testing.T) {
	_, err := openai.New(nil, llm.Endpoint{}).Build(turns.Route{}, turns.Prompt{
		Options: turns.Options{ThinkingBudgetTokens: 2000}, Messages: []turns.Message{message(turns.RoleUser, "a")},
	})
	require.Equal(t, turns.CodeInvalidField, turns.CodeOf(err))
	require.ErrorContains(t, err, "input.options.thinking_budget_tokens")
}

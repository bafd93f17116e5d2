package anthropic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/anthropic"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/turns"
)

// start, block and stop are the events of one block, in JSON.
func start(index int, block string) string {
	return event(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
}

func block(index int, delta string) string {
	return event(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, delta)
}

func stop(index int) string { return event(`{"type":"content_block_stop","index":%d}`, index) }

func event(format string, args ...any) string {
	return "data: " + fmt.Sprintf(format, args...) + "\n\n"
}

// said is a whole stream of these blocks, as the deltas between the vendor's id and the end.
func said(t *testing.T, blocks ...string) []turns.Delta {
	t.Helper()
	stream := event(`{"type":"message_start","message":{"id":"msg_1"}}`) + strings.Join(blocks, "") + event(`{"type":"message_stop"}`)
	r := llmtest.Say(t, anthropic.Adapter(), stream)
	require.Nil(t, r.Err)
	return r.Deltas[2 : len(r.Deltas)-1]
}

func TestACallWithoutInputHasAnEmptyObject(t *testing.T) {
	const use = `{"type":"tool_use","id":"t","name":"f","input":{}}`
	call := turns.BlockStarted{Kind: turns.KindToolUse, ToolUseID: "t", ToolName: "f"}
	for name, blocks := range map[string][]string{
		"no delta":       {start(0, use), stop(0)},
		"an empty delta": {start(0, use), block(0, `{"type":"input_json_delta","partial_json":""}`), stop(0)},
		"no stop":        {start(0, use)},
		"no input":       {start(0, `{"type":"tool_use","id":"t","name":"f"}`), stop(0)},
	} {
		require.Empty(t, cmp.Diff([]turns.Delta{call, turns.BlockDelta{Text: "{}"}, turns.BlockEnded{}}, said(t, blocks...)), name)
	}
	whole := start(0, `{"type":"tool_use","id":"t","name":"f","input":{"b":1, "a":1e99}}`)
	require.Equal(t, []turns.Delta{call, turns.BlockDelta{Text: `{"b":1, "a":1e99}`}, turns.BlockEnded{}}, said(t, whole, stop(0)),
		"a server that gives the input at the start gives all of it")
}

func TestACallAlwaysHasAnId(t *testing.T) {
	for _, id := range []string{``, strings.Repeat("x", 129)} {
		got := said(t, start(3, `{"type":"tool_use","id":"`+id+`","name":"f"}`), stop(3))
		require.Equal(t, "msg_1-3", got[0].(turns.BlockStarted).ToolUseID)
	}
}

func TestASignatureMayComeInPartsAtTheStartOrNotAtAll(t *testing.T) {
	sign := func(s string) string { return block(0, `{"type":"signature_delta","signature":"`+s+`"}`) }
	for name, tt := range map[string]struct {
		blocks []string
		seal   string
	}{
		"in parts":     {[]string{start(0, `{"type":"thinking","thinking":""}`), sign("Eq"), sign("QB"), stop(0)}, "EqQB"},
		"at the start": {[]string{start(0, `{"type":"thinking","thinking":"","signature":"EqQB"}`), stop(0)}, "EqQB"},
		"not at all":   {[]string{start(0, `{"type":"thinking","thinking":""}`), stop(0)}, ""},
		"far too long": {[]string{start(0, `{"type":"thinking","thinking":""}`), sign(strings.Repeat("x", 200<<10)), sign(strings.Repeat("x", 200<<10)), stop(0)}, ""},
		"no text":      {[]string{start(0, `{"type":"thinking","thinking":""}`), sign(`a\u0000b`), stop(0)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := []turns.Delta{turns.BlockStarted{Kind: turns.KindThinking}}
			if tt.seal != "" {
				want = append(want, turns.BlockSealed{Data: "anthropic.messages/demo\n" + tt.seal})
			}
			require.Equal(t, append(want, turns.BlockEnded{}), said(t, tt.blocks...))
		})
	}
}

func TestBlocksAndDeltasOfNewKindsHarmNothingWhateverTheirFieldsHold(t *testing.T) {
	got := said(t,
		start(0, `{"type":"server_tool_use","id":7,"name":{"odd":1},"input":[]}`), block(0, `{"type":"input_json_delta","partial_json":"{}"}`), stop(0),
		start(1, `{"type":"brand_new","text":{"a":1},"signature":[]}`), block(1, `{"type":"brand_new_delta","text":[1],"signature":{}}`), stop(1),
		start(2, `{"type":"text","text":"a"}`), block(2, `{"type":"brand_new_delta","text":[1],"partial_json":{}}`), stop(2))
	require.Equal(t, []turns.Delta{
		opaqueBegun("server_tool_use"), sealed(`{"type":"server_tool_use","id":7,"name":{"odd":1},"input":{}}`), turns.BlockEnded{},
		opaqueBegun("brand_new"), sealed(`{"type":"brand_new","text":[1],"signature":{}}`), turns.BlockEnded{},
		textBegun, turns.BlockDelta{Text: "a"}, turns.BlockEnded{},
	}, got)
}

func build(t *testing.T, options turns.Options, limits turns.Limits, messages ...turns.Message) (string, error) {
	t.Helper()
	c := anthropic.New(nil, llm.Endpoint{})
	route := turns.Route{ProviderModel: "m", Limits: limits}
	got, err := c.Build(route, turns.Prompt{Options: options, Messages: messages})
	again, _ := c.Build(route, turns.Prompt{Options: options, Messages: messages})
	require.Equal(t, got, again)
	return string(got.Body), err
}

func thought(text, seal string) turns.Block {
	return turns.Thinking{Text: text, Seal: seal}
}

var toolTalk = []turns.Message{
	message(turns.RoleUser, "a"),
	{Role: turns.RoleAssistant, Content: []turns.Block{
		thought("hm", "anthropic.messages/m\nEqQB"), thought("", "anthropic.messages/m\nEw=="),
		turns.Thinking{Redacted: true, Seal: "anthropic.messages/m\nEmwK"},
		thought("unsigned", ""), thought("another's", "anthropic.messages/m2\nEqQB"), thought("foreign", "openai.chat/m\nx"),
		turns.Text{Text: "I look."},
		turns.ToolUse{ID: "t1", Name: "f", InputJSON: `{"b":12345678901234567890,"a":"<é>"}`}, turns.ToolUse{ID: "t2", Name: "g", InputJSON: `{"cut`},
	}},
	{Role: turns.RoleUser, Content: []turns.Block{turns.ToolResult{ToolUseID: "t1", Content: []turns.Block{turns.Text{Text: "12"}}}}},
}

func TestAConversationWithToolsIsTheseBytes(t *testing.T) {
	const talk = `"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[` +
		`{"type":"thinking","thinking":"hm","signature":"EqQB"},{"type":"thinking","thinking":"","signature":"Ew=="},{"type":"redacted_thinking","data":"EmwK"},` +
		`{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"f","input":{"b":12345678901234567890,"a":"<é>"}},{"type":"tool_use","id":"t2","name":"g","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"12"}]},` +
		`{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"This tool was not run: the user went on without it."}],"is_error":true}]}],"stream":true`
	tools := []turns.Tool{{Name: "f", Description: "looks", InputSchemaJSON: `{"type":"object", "properties":{}}`}, {Name: "g"}}
	for name, tt := range map[string]struct {
		options turns.Options
		want    string
	}{
		"tools": {turns.Options{Tools: tools, ThinkingBudgetTokens: 2000},
			`{"model":"m","max_tokens":6096,` + talk + `,"tools":[{"name":"f","description":"looks","input_schema":{"type":"object","properties":{}}},{"name":"g","input_schema":{"type":"object"}}],` +
				`"thinking":{"type":"enabled","budget_tokens":2000}}`},
		"a choice": {turns.Options{Tools: tools[1:], ToolChoice: &turns.ToolChoice{Mode: turns.ToolChoiceTool, ToolName: "g"}},
			`{"model":"m","max_tokens":4096,` + talk + `,"tools":[{"name":"g","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"g"}}`},
		"no tools any more": {turns.Options{},
			`{"model":"m","max_tokens":4096,` + talk + `,"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"g","input_schema":{"type":"object"}}],"tool_choice":{"type":"none"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := build(t, tt.options, turns.Limits{}, toolTalk...)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestABudgetForThinkingThatTheVendorWouldRefuseIsRefusedByItsField(t *testing.T) {
	hello := message(turns.RoleUser, "a")
	for name, tt := range map[string]struct {
		options turns.Options
		limits  turns.Limits
		field   string
	}{
		"too small":             {turns.Options{ThinkingBudgetTokens: 1023}, turns.Limits{}, "input.options.thinking_budget_tokens"},
		"all of the reply":      {turns.Options{ThinkingBudgetTokens: 2000, MaxOutputTokens: 2000}, turns.Limits{}, "input.options.thinking_budget_tokens"},
		"beyond the endpoint's": {turns.Options{ThinkingBudgetTokens: 2000}, turns.Limits{MaxOutputTokens: 1500}, "input.options.thinking_budget_tokens"},
		"a forced call": {turns.Options{ThinkingBudgetTokens: 2000, Tools: []turns.Tool{{Name: "f"}}, ToolChoice: &turns.ToolChoice{Mode: turns.ToolChoiceAny}},
			turns.Limits{}, "input.options.tool_choice"},
	} {
		_, err := build(t, tt.options, tt.limits, hello)
		var refused *turns.Error
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, turns.CodeInvalidField, refused.Code)
		require.Equal(t, tt.field, refused.Field)
	}
}

func TestAStepWhoseThoughtsAreNotThereGoesWithoutThinking(t *testing.T) {
	foreign := []turns.Message{toolTalk[0], {Role: turns.RoleAssistant, Content: toolTalk[1].Content[3:]}, toolTalk[2]}
	got, err := build(t, turns.Options{ThinkingBudgetTokens: 2000}, turns.Limits{}, foreign...)
	require.NoError(t, err)
	require.NotContains(t, got, `"thinking"`)
	got, err = build(t, turns.Options{ThinkingBudgetTokens: 2000}, turns.Limits{}, append(foreign, message(turns.RoleAssistant, "done"), message(turns.RoleUser, "b"))...)
	require.NoError(t, err)
	require.Contains(t, got, `"thinking":{"type":"enabled","budget_tokens":2000}`, "the next question may be thought about again")
}

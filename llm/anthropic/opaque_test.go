package anthropic_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/anthropic"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/turns"
)

func opaqueBegun(kind string) turns.Delta {
	return turns.BlockStarted{Kind: turns.KindOpaque, Type: kind}
}

func sealed(block string) turns.Delta {
	return turns.BlockSealed{Data: "anthropic.messages/demo\n" + block}
}

func TestABlockThatIsNotReadIsKeptAsItsVendorMeansIt(t *testing.T) {
	for name, tt := range map[string]struct {
		blocks []string
		want   string
	}{
		"as it came": {[]string{start(0, `{ "z":1, "type":"web_search_tool_result","content":[{"url":"<é>"}],"a":2 }`)},
			`{ "z":1, "type":"web_search_tool_result","content":[{"url":"<é>"}],"a":2 }`},
		"input in parts": {[]string{start(0, `{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}}`),
			block(0, `{"type":"input_json_delta","partial_json":""}`), block(0, `{"type":"input_json_delta","partial_json":"{\"b\":1.50,"}`),
			block(0, `{"type":"input_json_delta","partial_json":"\"a\":\"<\"}"}`)},
			`{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"b":1.50,"a":"<"}}`},
		"input that was cut": {[]string{start(0, `{"type":"server_tool_use","id":"s","input":{}}`), block(0, `{"type":"input_json_delta","partial_json":"{\"b"}`)},
			`{"type":"server_tool_use","id":"s","input":{}}`},
		"text in parts": {[]string{start(0, `{"type":"compaction","content":null}`), block(0, `{"type":"compaction_delta","content":"so "}`),
			block(0, `{"type":"compaction_delta","content":"far <","signature":"Eq"}`)},
			`{"type":"compaction","content":"so far <","signature":"Eq"}`},
		"a value anew": {[]string{start(0, `{"type":"x","n":1,"s":"a"}`), block(0, `{"type":"x_delta","n":{"b":2},"s":null}`)}, `{"type":"x","n":{"b":2},"s":null}`},
	} {
		require.Equal(t, []turns.Delta{opaqueBegun(typeOf(tt.want)), sealed(tt.want), turns.BlockEnded{}}, said(t, append(tt.blocks, stop(0))...), name)
	}
}

func typeOf(block string) string {
	_, rest, _ := strings.Cut(block, `"type":"`)
	kind, _, _ := strings.Cut(rest, `"`)
	return kind
}

func TestABlockThatCanNotBeKeptIsShownAndDoesNotGoBack(t *testing.T) {
	large := `"` + strings.Repeat("x", 200<<10) + `"`
	for name, blocks := range map[string][]string{
		"too large at once":  {start(0, `{"type":"x","a":`+large+`,"b":`+large+`}`)},
		"too large in parts": {start(0, `{"type":"x"}`), block(0, `{"type":"y","a":`+large+`}`), block(0, `{"type":"y","a":`+large+`}`)},
		"no text":            {start(0, "{\"type\":\"x\",\"a\":\"\xff\"}")},
	} {
		require.Equal(t, []turns.Delta{opaqueBegun("x"), turns.BlockEnded{}}, said(t, blocks...), name)
	}
	require.Empty(t, said(t, start(0, `{}`), block(0, `{"type":"text_delta","text":"a"}`), stop(0)), "what has no type is nothing")
}

func TestAReplyThatWasPausedGoesBackAsItCame(t *testing.T) {
	const use, result = `{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"q":"<é>"}}`,
		`{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[{"encrypted_content":"Eq=="}]}`
	r := llmtest.Say(t, anthropic.Adapter(), event(`{"type":"message_start","message":{"id":"msg_1"}}`)+
		start(0, `{"type":"text","text":"I look."}`)+stop(0)+start(1, use)+stop(1)+start(2, result)+stop(2)+
		event(`{"type":"message_delta","delta":{"stop_reason":"pause_turn"}}`)+event(`{"type":"message_stop"}`))
	require.Equal(t, turns.StopPause, r.Finished.StopReason)
	var content []turns.Block
	for _, b := range r.Blocks {
		if b.Kind == turns.KindOpaque {
			content = append(content, turns.Opaque{Type: b.Type, Seal: b.Seal})
		} else {
			content = append(content, turns.Text{Text: b.Text})
		}
	}
	for _, model := range []string{"m", "another"} {
		got, err := anthropic.New(nil, llm.Endpoint{}).Build(turns.Route{ProviderModel: model}, turns.Prompt{Messages: []turns.Message{
			message(turns.RoleUser, "a"), {Role: turns.RoleAssistant, Content: content}, message(turns.RoleUser, "go on"),
		}})
		require.NoError(t, err)
		require.Contains(t, string(got.Body), `{"role":"assistant","content":[{"type":"text","text":"I look."},`+use+`,`+result+`]}`)
	}
}

func TestAToolOfTheVendorWithoutItsResultStaysBehind(t *testing.T) {
	opaque := func(kind, id, of string) turns.Block {
		return turns.Opaque{Type: kind, Seal: `anthropic.messages/m` + "\n" + `{"type":"` + kind + `","` + id + `":"` + of + `"}`}
	}
	use := func(id string) turns.Block { return opaque("server_tool_use", "id", id) }
	result := func(id string) turns.Block { return opaque("web_search_tool_result", "tool_use_id", id) }
	for name, tt := range map[string]struct {
		blocks []turns.Block
		stays  bool
	}{
		"answered":         {[]turns.Block{use("1"), use("2"), result("2"), result("1")}, true},
		"of other kinds":   {[]turns.Block{opaque("compaction", "content", "x")}, true},
		"still running":    {[]turns.Block{use("1"), result("1"), use("2")}, false},
		"of another reply": {[]turns.Block{result("1")}, false},
		"before its tool":  {[]turns.Block{result("1"), use("1")}, false},
		"answered twice":   {[]turns.Block{use("1"), result("1"), result("1")}, false},
	} {
		got, err := anthropic.New(nil, llm.Endpoint{}).Build(turns.Route{ProviderModel: "m"}, turns.Prompt{Messages: []turns.Message{
			message(turns.RoleUser, "a"), {Role: turns.RoleAssistant, Content: append(tt.blocks, turns.Text{Text: "b"})}, message(turns.RoleUser, "c"),
		}})
		require.NoError(t, err)
		require.Equal(t, !tt.stays, strings.Contains(string(got.Body), `{"role":"assistant","content":[{"type":"text","text":"b"}]}`), name)
	}
}

package scripted_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

const (
	user    = `{"role":"user","content":"go"}`
	use     = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}}]}`
	answers = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"b"},{"type":"text","text":"so"}]}`

	call  = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	toolA = `{"role":"tool","tool_call_id":"a","content":"1"}`
	toolB = `{"role":"tool","tool_call_id":"b","content":"2"}`
)

func TestAHistoryThatItsVendorRefusesIsRefused(t *testing.T) {
	for path, histories := range map[string]map[string]int{
		messages: {
			user + "," + use + "," + answers: 200,
			user + "," + use + "," + user:    400,
			user + "," + use:                 400,
			user + "," + answers:             400,
			user + "," + use + "," + answers + "," + use + "," + answers: 400, // the ids once more
			user + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":"{}"}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}`: 400,
			user + "," + use + `,{"role":"user","content":[{"type":"text","text":"so"},{"type":"tool_result","tool_use_id":"a"},` +
				`{"type":"tool_result","tool_use_id":"b"}]}`: 400,
			user + `,{"role":"assistant","content":[{"type":"server_tool_use","id":"s"},{"type":"web_search_tool_result","tool_use_id":"s"}]},` + user: 200,
			user + `,{"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"s"}]},` + user:                                     400,
			`{"role":"user","content":[{"type":"text","text":""}]}`:                                                                                    400,
			user + `,{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""}]},` + user:                                      400,
		},
		completions: {
			user + "," + call + "," + toolA + "," + toolB + "," + user: 200,
			user + "," + call + "," + toolB + "," + toolA:              200,
			user + "," + call + "," + toolA:                            400,
			user + "," + call + "," + toolA + "," + user:               400,
			user + "," + call + "," + toolA + "," + toolA:              400,
			user + "," + toolA:                                         400,
			user + `,{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{"}}]},` + toolA: 400,
		},
	} {
		s := scripted.Start(t, scripted.Script{})
		for history, want := range histories {
			got := ask(t, s, path, `{"model":"demo","max_tokens":9,"messages":[`+history+`]}`)
			require.Equal(t, want, got.status, "%s: %s", history, got.body)
		}
	}
}

func TestABlockOfTheVendorsOwnIsSentWholeAndOnlyOnItsWire(t *testing.T) {
	const own = `{"type":"server_tool_use","id":"s","input":{"q":1}}`
	s := start(t, scripted.Plan{Blocks: []scripted.Block{{Vendor: own}, {Text: "a"}}})
	require.Contains(t, ask(t, s, messages, anthropicBody).body, `"index":0,"content_block":`+own)
	require.Contains(t, ask(t, s, messages, whole(anthropicBody)).body, `"content":[`+own)
	for _, body := range []string{openaiBody, whole(openaiBody)} {
		got := ask(t, s, completions, body)
		require.Equal(t, 200, got.status)
		require.NotContains(t, got.body, "server_tool_use")
	}
	require.Equal(t, 4, s.Counts().OutputTokens)
}

func TestSealedThinkingAndRefusalsAreSaidInEachVendorsWay(t *testing.T) {
	s := start(t, scripted.Plan{Blocks: []scripted.Block{{Redacted: "c2VhbGVk"}, {Refusal: "I can not."}}})
	got := ask(t, s, messages, anthropicBody)
	all := events(t, got.body)
	require.Equal(t, "redacted_thinking", at(t, all[1].data, "content_block", "type"))
	require.Equal(t, "c2VhbGVk", at(t, all[1].data, "content_block", "data"))
	require.Equal(t, "text", at(t, all[4].data, "content_block", "type"))
	require.Contains(t, got.body, `"stop_reason":"refusal"`)
	got = ask(t, s, completions, openaiBody)
	all = events(t, got.body)
	require.Equal(t, "I ", at(t, all[1].data, "choices", 0, "delta", "refusal"))
	require.Contains(t, got.body, `"finish_reason":"stop"`)
	require.NotContains(t, got.body, "c2VhbGVk")
	require.Equal(t, "I can not.", at(t, ask(t, s, completions, whole(openaiBody)).body, "choices", 0, "message", "refusal"))
}

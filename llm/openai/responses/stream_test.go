package responses_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/openai/responses"
	"github.com/turnd/turnd/turns"
)

// numbered gives each event of a stream its number.
func numbered(events ...string) string {
	var out strings.Builder
	for i, e := range events {
		out.WriteString(strings.Replace(e, `"type":`, `"sequence_number":`+strconv.Itoa(i)+`,"type":`, 1))
	}
	return out.String()
}

func say(t *testing.T, events ...string) llmtest.Result {
	t.Helper()
	return llmtest.Say(t, responses.Adapter(), strings.Join(events, ""))
}

func TestEveryEventOfAWholeResponseIsRead(t *testing.T) {
	stream := numbered(
		event("response.queued", `,"response":{"id":"resp_9","status":"queued","background":true}`),
		event("response.created", `,"response":{"id":"resp_9","status":"in_progress","usage":null,"error":null}`),
		event("response.in_progress", `,"response":{"id":"resp_9","status":"in_progress"}`),
		event("response.output_item.added", `,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}`),
		event("response.reasoning_summary_part.added", `,"output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}`),
		event("response.reasoning_summary_text.delta", `,"output_index":0,"summary_index":0,"delta":"first","obfuscation":"xx"`),
		event("response.reasoning_summary_text.done", `,"output_index":0,"text":"first"`),
		event("response.reasoning_summary_part.done", `,"output_index":0,"part":{"type":"summary_text","text":"first"}`),
		event("response.reasoning_summary_part.added", `,"output_index":0,"summary_index":1,"part":{"type":"summary_text","text":""}`),
		event("response.reasoning_summary_text.delta", `,"output_index":0,"summary_index":1,"delta":"then"`),
		event("response.output_item.done", `,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"first"}],"encrypted_content":"gAAA"}`),
		event("response.output_item.added", `,"output_index":1,"item":{"type":"web_search_call","status":"in_progress"}`),
		event("response.web_search_call.searching", `,"output_index":1`),
		event("response.output_item.done", `,"output_index":1,"item":{"type":"web_search_call","status":"completed","arguments":{"q":"x"},"summary":"x"}`),
		event("response.output_item.added", `,"output_index":2,"item":{"type":"message","role":"assistant","content":[]}`),
		event("response.content_part.added", `,"output_index":2,"content_index":0,"part":{"type":"output_text","text":""}`),
		event("response.output_text.delta", `,"output_index":2,"delta":"Hello "`),
		event("response.output_text.annotation.added", `,"output_index":2,"annotation":{"type":"url_citation"}`),
		event("response.output_text.delta", `,"output_index":2,"delta":"you"`),
		event("response.output_text.done", `,"output_index":2,"text":"Hello you"`),
		event("response.content_part.done", `,"output_index":2,"part":{"type":"output_text","text":"Hello you"}`),
		event("response.content_part.added", `,"output_index":2,"content_index":1,"part":{"type":"output_text","text":""}`),
		event("response.output_text.delta", `,"output_index":2,"content_index":1,"delta":"again"`),
		event("response.output_item.done", `,"output_index":2,"item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"all"}]}`),
		event("response.output_item.added", `,"output_index":3,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"f","arguments":""}`),
		event("response.function_call_arguments.delta", `,"output_index":3,"delta":"{\"a\":"`),
		event("response.function_call_arguments.delta", `,"output_index":3,"delta":"1}"`),
		event("response.function_call_arguments.done", `,"output_index":3,"arguments":"{\"a\":1}"`),
		event("response.output_item.done", `,"output_index":3,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"f","arguments":"{\"a\":1}"}`),
		event("response.completed", `,"response":{"id":"resp_9","status":"completed","usage":{"input_tokens":30,"input_tokens_details":{"cached_tokens":10,"cache_write_tokens":5},`+
			`"output_tokens":20,"output_tokens_details":{"reasoning_tokens":7},"total_tokens":50}}`),
	)
	r := say(t, stream)
	require.Nil(t, r.Err)
	require.Equal(t, "resp_9", r.ResponseID)
	require.Equal(t, []llmtest.Block{
		{BlockStarted: turns.BlockStarted{Kind: turns.KindThinking}, Text: "first\n\nthen", Seal: "openai.responses/demo\ngAAA"},
		{BlockStarted: turns.BlockStarted{Kind: turns.KindText}, Text: "Hello you"},
		{BlockStarted: turns.BlockStarted{Kind: turns.KindText}, Text: "again"},
		{BlockStarted: turns.BlockStarted{Kind: turns.KindToolUse, ToolUseID: "call_1", ToolName: "f"}, Text: `{"a":1}`},
	}, r.Blocks)
	require.Equal(t, turns.StopToolUse, r.Finished.StopReason)
	require.Equal(t, turns.Usage{Input: 30, CacheRead: 10, CacheWrite: 5, Output: 20, Reasoning: 7, Source: turns.SourceReported}, *r.Usage)

	doubled := say(t, stream[:strings.Index(stream, "event: response.completed")], stream)
	require.Equal(t, r.Blocks, doubled.Blocks, "an event that was read is not read again")
}

func TestAResponseThatWasCutShortSaysWhy(t *testing.T) {
	for reason, want := range map[string]turns.StopReason{
		"max_output_tokens": turns.StopLength, "content_filter": turns.StopContentFilter, "steered": "", "max_messages": "",
	} {
		r := say(t, voice().Open, voice().Text("a"), event("response.incomplete",
			`,"response":{"status":"incomplete","incomplete_details":{"reason":"`+reason+`"},"usage":{"input_tokens":1,"output_tokens":1}}`))
		require.Nil(t, r.Err)
		require.Equal(t, want, r.Finished.StopReason)
		require.Equal(t, "a", r.Text)
		require.NotNil(t, r.Usage)
	}
	require.Empty(t, say(t, voice().Open, event("response.incomplete", `,"response":{"incomplete_details":null}`)).Finished.StopReason)
}

func TestARefusalIsWordsOfItsOwn(t *testing.T) {
	r := say(t, event("response.output_item.added", `,"output_index":0,"item":{"type":"message","role":"assistant"}`),
		event("response.content_part.added", `,"output_index":0,"part":{"type":"refusal","refusal":""}`),
		event("response.refusal.delta", `,"output_index":0,"delta":"I can "`), event("response.refusal.delta", `,"output_index":0,"delta":"not."`),
		event("response.refusal.done", `,"output_index":0,"refusal":"I can not."`), voice().Terminal)
	require.Equal(t, []llmtest.Block{{BlockStarted: turns.BlockStarted{Kind: turns.KindRefusal}, Text: "I can not."}}, r.Blocks)
	require.Equal(t, turns.StopRefusal, r.Finished.StopReason)
}

func TestReasoningThatIsNotShownKeepsItsSeal(t *testing.T) {
	done := func(fields string) string {
		return event("response.output_item.done", `,"output_index":0,"item":{"type":"reasoning"`+fields+`}`)
	}
	r := say(t, done(`,"summary":[],"encrypted_content":"gAAA"`), voice().Terminal)
	require.Equal(t, []llmtest.Block{{BlockStarted: turns.BlockStarted{Kind: turns.KindThinking, Redacted: true}, Seal: "openai.responses/demo\ngAAA"}}, r.Blocks)
	require.Empty(t, say(t, done(`,"summary":[],"encrypted_content":null`), voice().Terminal).Blocks)
	open := say(t, event("response.output_item.added", `,"output_index":0,"item":{"type":"reasoning"}`),
		event("response.reasoning_text.delta", `,"output_index":0,"content_index":0,"delta":"hm"`), done(`,"content":[{"type":"reasoning_text","text":"hm"}]`), voice().Terminal)
	require.Equal(t, []llmtest.Block{{BlockStarted: turns.BlockStarted{Kind: turns.KindThinking}, Text: "hm"}}, open.Blocks)
}

func TestServersThatLeaveOutEventsAreReadAllTheSame(t *testing.T) {
	want := []llmtest.Block{{BlockStarted: turns.BlockStarted{Kind: turns.KindText}, Text: "whole"}}
	item := `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"whole"}]}`
	for name, stream := range map[string]string{
		"no beginning of the item": event("response.output_text.delta", `,"output_index":0,"delta":"whole"`) + voice().Terminal,
		"no deltas":                event("response.output_item.added", `,"output_index":0,"item":{"type":"message"}`) + event("response.output_item.done", `,"output_index":0,"item":`+item) + voice().Terminal,
		"only the end of the item": event("response.output_item.done", `,"output_index":0,"item":`+item) + voice().Terminal,
		"only the end":             event("response.completed", `,"response":{"id":"resp_1","status":"completed","output":[`+item+`]}`),
		"no end of the item":       event("response.output_text.delta", `,"output_index":0,"delta":"whole"`) + voice().Terminal,
		"a [DONE] before the end":  event("response.output_text.delta", `,"output_index":0,"delta":"whole"`) + "data: [DONE]\n\n" + voice().Terminal,
		"no status at the end":     event("response.output_text.delta", `,"output_index":0,"delta":"whole"`) + event("response.completed", `,"response":{}`),
		"errors that are none":     event("response.output_text.delta", `,"output_index":0,"delta":"whole","error":null`) + voice().Terminal,
		"a call in one piece": event("response.output_item.done", `,"output_index":0,"item":`+item) +
			event("response.output_item.added", `,"output_index":1,"item":{"type":"mcp_list_tools"}`) +
			event("response.mcp_list_tools.completed", `,"output_index":1,"delta":{}`) + voice().Terminal,
	} {
		r := say(t, stream)
		require.Nil(t, r.Err, name)
		require.Equal(t, want, r.Blocks, name)
	}
	call := say(t, event("response.output_item.done", `,"output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":1}"}`), voice().Terminal)
	require.Equal(t, `{"x":1}`, call.Blocks[0].Text)
	nameless := say(t, event("response.created", `,"response":{"id":"resp_1"}`), event("response.output_item.done", `,"output_index":0,"item":{"type":"function_call","name":"f"}`), voice().Terminal)
	require.Equal(t, "resp_1-0", nameless.Blocks[0].ToolUseID, "a call without an id gets the same one each time")
}

func TestTextWithoutAPlaceMakesNoWholeReply(t *testing.T) {
	added := event("response.output_item.added", `,"output_index":0,"item":{"type":"message"}`)
	for name, stream := range map[string]string{
		"of another item":      added + event("response.output_text.delta", `,"output_index":1,"delta":"x"`),
		"of another kind":      added + event("response.function_call_arguments.delta", `,"output_index":0,"delta":"x"`),
		"of no call":           event("response.function_call_arguments.delta", `,"output_index":0,"delta":"x"`),
		"that is none":         event("response.output_text.delta", `,"output_index":0,"delta":7`),
		"an item that is none": event("response.output_item.added", `,"output_index":0`),
		"an end of nothing":    event("response.completed", ``),
		"no JSON":              "data: {\n\n",
	} {
		r := say(t, stream, voice().Terminal)
		require.NotNil(t, r.Err, name)
		require.Equal(t, turns.ClassAmbiguous, r.Err.Class, name)
	}
	skipped := say(t, event("response.output_item.added", `,"output_index":0,"item":{"type":"image_generation_call"}`),
		event("response.output_text.delta", `,"output_index":0,"delta":"x"`), voice().Terminal)
	require.Nil(t, skipped.Err, "what belongs to an item that is not read is not read either")
	require.Empty(t, skipped.Blocks)
}

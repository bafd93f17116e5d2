package llmtest

import (
	"fmt"
	"strings"

	"github.com/turnd/turnd/llm"
)

// Voice says the same things in the words of one wire. Text is given as it stands between the quotes of JSON.
type Voice struct {
	// Open is all that comes before the first text, Text one delta of it, Close what ends the text, Terminal the rest.
	Open     string
	Text     func(literal string) string
	Close    string
	Terminal string
	// Error is an error event, ErrorBody an error's response body, of a type that the vendor has.
	Error     func(kind string) string
	ErrorBody func(kind string) string
	// Unknown is an event that no reader knows.
	Unknown string
	// Calls is a whole stream of thinking and two calls, whose parts are mixed where the wire can do it.
	Calls string
}

// Whole is a stream of one text in these deltas.
func (v Voice) Whole(literals ...string) string {
	s := v.Open
	for _, l := range literals {
		s += v.Text(l)
	}
	return s + v.Close + v.Terminal
}

// Voices are the wires that are spoken.
var Voices = map[llm.Wire]Voice{
	llm.WireGeminiGenerate:     geminiVoice,
	llm.WireGeminiInteractions: interactionVoice,
	llm.WireAnthropicMessages: {
		Open: named("message_start", `{"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":9,"output_tokens":1}}}`) +
			named("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
		Text: func(l string) string {
			return named("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+l+`"}}`)
		},
		Close: named("content_block_stop", `{"type":"content_block_stop","index":0}`) +
			named("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`),
		Terminal: named("message_stop", `{"type":"message_stop"}`),
		Error: func(kind string) string {
			return named("error", `{"type":"error","error":{"type":"`+kind+`","message":"secret words"}}`)
		},
		ErrorBody: func(kind string) string {
			return `{"type":"error","error":{"type":"` + kind + `","message":"secret words"},"request_id":"req_1"}`
		},
		Unknown: named("brand_new", `{"type":"brand_new","delta":7,"index":"x","usage":[]}`),
		Calls: named("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`) +
			named("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`) +
			named("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB"}}`) +
			named("content_block_stop", `{"type":"content_block_stop","index":0}`) +
			named("content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}`) +
			named("content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"x\":"}}`) +
			named("content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}}`) +
			named("content_block_start", `{"type":"content_block_start","index":2,"content_block":{"type":"redacted_thinking","data":"EmwK"}}`) +
			named("content_block_start", `{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"b","name":"g","input":{"y":2}}}`) +
			named("message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`) + named("message_stop", `{"type":"message_stop"}`),
	},
	llm.WireOpenAIChat: {
		Open: data(`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`),
		Text: func(l string) string {
			return data(`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"` + l + `"},"finish_reason":null}],"error":null}`)
		},
		Close: data(`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`) +
			data(`{"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}`),
		Terminal:  data("[DONE]"),
		Error:     func(kind string) string { return data(`{"error":{"type":"` + kind + `","message":"secret words"}}`) },
		ErrorBody: func(kind string) string { return `{"error":{"type":"` + kind + `","message":"secret words"}}` },
		Unknown:   data(`{"object":"brand.new"}`),
		Calls: data(`{"id":"c","choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}`) +
			data(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}}]}`) +
			data(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":""}}]}}]}`) +
			data(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}},{"index":0,"function":{"arguments":"1}"}}]}}]}`) +
			data(`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"tool_calls"}]}`) + data("[DONE]"),
	},
	llm.WireOpenAIResponses: {
		Open: typed(`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","output":[],"usage":null}}`) +
			typed(`{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}`) +
			typed(`{"type":"response.content_part.added","output_index":0,"content_index":0,"part":{"type":"output_text","text":""}}`),
		Text: func(l string) string {
			return typed(`{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"` + l + `"}`)
		},
		Close: typed(`{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"all"}]}}`),
		Terminal: typed(`{"type":"response.completed","response":{"id":"resp_1","status":"completed","error":null,` +
			`"usage":{"input_tokens":9,"output_tokens":3,"output_tokens_details":null}}}`),
		Error: func(kind string) string {
			return typed(`{"type":"error","code":"` + kind + `","message":"secret words","param":null}`)
		},
		ErrorBody: func(kind string) string { return `{"error":{"type":"` + kind + `","message":"secret words"}}` },
		Unknown:   typed(`{"type":"response.brand_new","delta":7,"output_index":"x","item":[],"response":1,"error":"x"}`),
		Calls: typed(`{"type":"response.created","response":{"id":"resp_1"}}`) +
			typed(`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","summary":[]}}`) +
			typed(`{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"hm"}`) +
			typed(`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":[],"encrypted_content":"gAAA"}}`) +
			typed(`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}}`) +
			typed(`{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"x\":"}`) +
			typed(`{"type":"response.function_call_arguments.delta","output_index":1,"delta":"1}"}`) +
			typed(`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call"}}`) +
			typed(`{"type":"response.output_item.done","output_index":2,"item":{"type":"reasoning","summary":[],"encrypted_content":"gAAA"}}`) +
			typed(`{"type":"response.output_item.added","output_index":3,"item":{"type":"web_search_call"}}`) +
			typed(`{"type":"response.output_item.done","output_index":4,"item":{"type":"function_call","call_id":"b","name":"g","arguments":"{\"y\":2}"}}`) +
			typed(`{"type":"response.completed","response":{"status":"completed"}}`),
	},
}

func named(event, json string) string { return fmt.Sprintf("event: %s\ndata: %s\n\n", event, json) }

// typed is an event whose name is its type.
func typed(json string) string {
	_, rest, _ := strings.Cut(json, `"type":"`)
	kind, _, _ := strings.Cut(rest, `"`)
	return named(kind, json)
}

func data(json string) string { return fmt.Sprintf("data: %s\n\n", json) }

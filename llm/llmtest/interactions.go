package llmtest

import (
	"strings"

	"github.com/turnd/turnd/turns"
)

// interactionVoice speaks gemini.interactions.
var interactionVoice = Voice{
	Open: step(`{"event_type":"interaction.created","interaction":{"id":"v1_1","status":"in_progress"},"event_id":"e1"}`) +
		step(`{"event_type":"step.start","index":0,"step":{"type":"model_output","content":[]},"event_id":"e2"}`),
	Text: func(l string) string {
		return step(`{"event_type":"step.delta","index":0,"delta":{"type":"text","text":"` + l + `"},"event_id":"e3"}`)
	},
	Close: step(`{"event_type":"step.stop","index":0,"usage":{"total_input_tokens":9,"total_output_tokens":3},"event_id":"e4"}`),
	Terminal: step(`{"event_type":"interaction.completed","interaction":{"id":"v1_1","status":"completed",` +
		`"usage":{"total_input_tokens":9,"total_output_tokens":3,"total_tokens":12}},"event_id":"e5"}`),
	Error:     func(kind string) string { return step(`{"event_type":"error",` + interactionError(kind)[1:]) },
	ErrorBody: interactionError,
	Unknown: step(`{"event_type":"brand.new","index":"x","interaction":7}`) +
		step(`{"event_type":"step.delta","index":0,"delta":{"type":"brand_new","text":7}}`),
	Calls: step(`{"event_type":"interaction.created","interaction":{"id":"v1_1"}}`) +
		step(`{"event_type":"step.start","index":0,"step":{"type":"thought"}}`) +
		step(`{"event_type":"step.delta","index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"hm"}}}`) +
		step(`{"event_type":"step.delta","index":0,"delta":{"type":"thought_signature","signature":"EqQB"}}`) +
		step(`{"event_type":"step.stop","index":0}`) +
		step(`{"event_type":"step.start","index":1,"step":{"type":"function_call","id":"a","name":"f","arguments":{}}}`) +
		step(`{"event_type":"step.delta","index":1,"delta":{"type":"arguments_delta","arguments":"{\"x\":"}}`) +
		step(`{"event_type":"step.delta","index":1,"delta":{"type":"arguments_delta","arguments":"1}"}}`) +
		step(`{"event_type":"step.start","index":2,"step":{"type":"brand_new","content":7}}`) +
		step(`{"event_type":"step.start","index":3,"step":{"type":"function_call","name":"g","arguments":{"y":2}}}`) +
		step(`{"event_type":"interaction.completed","interaction":{"status":"requires_action"}}`) + "event: done\ndata: [DONE]\n\n",
}

func interactionError(kind string) string {
	return `{"error":{"code":"` + kind + `","message":"secret words"}}`
}

// step is an event whose name is its type.
func step(json string) string {
	_, rest, _ := strings.Cut(json, `"event_type":"`)
	kind, _, _ := strings.Cut(rest, `"`)
	return named(kind, json)
}

// interactionStops are the ends that gemini.interactions tells apart: what is to be done next, and no more.
var interactionStops = map[string]turns.StopReason{
	"end_turn": turns.StopEndTurn, "stop_sequence": turns.StopEndTurn, "refusal": turns.StopEndTurn, "tool_use": turns.StopToolUse,
	"max_tokens": turns.StopLength, "budget_exceeded": turns.StopLength, "never_heard_of": "",
}

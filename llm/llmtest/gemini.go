package llmtest

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/turns"
)

// geminiVoice speaks gemini.generate, which has no terminal event: the last chunk says why the reply ended.
var geminiVoice = Voice{
	Open: data(`{"responseId":"r_1","candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9}}`),
	Text: func(l string) string {
		return data(`{"candidates":[{"content":{"parts":[{"text":"` + l + `"}],"role":"model"},"index":0}],"responseId":"r_1"}`)
	},
	Close:     data(`{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"totalTokenCount":12},"responseId":"r_1"}`),
	Terminal:  data(`{"candidates":[{"content":{"role":"model"},"finishReason":"STOP","index":0}],"responseId":"r_1"}`),
	Error:     func(kind string) string { return data(geminiError(kind)) },
	ErrorBody: geminiError,
	Unknown:   data(`{"brandNew":7,"candidates":[{"index":0,"content":{"parts":[{"brandNew":{"text":1}}]}}]}`),
	Calls: data(`{"responseId":"r_1","candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}`) +
		data(`{"candidates":[{"content":{"parts":[{"functionCall":{"id":"a","name":"f","args":{"x":1}},"thoughtSignature":"EqQB"}]}}]}`) +
		data(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"g"}},{"text":"","thoughtSignature":"EmwK"}]}}]}`) +
		data(`{"candidates":[{"content":{},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3}}`),
}

func geminiError(kind string) string {
	return `{"error":{"code":503,"message":"secret words","status":"` + kind + `"}}`
}

// wholeCalls reports whether a wire says a call in one piece, as JSON of its own: its input can't be kept to the byte, and is
// not there in parts.
func wholeCalls(w llm.Wire) bool { return w == llm.WireGeminiGenerate }

// heard is what comes of the mixed reply over a wire.
func heard(w llm.Wire) []Block {
	if !wholeCalls(w) {
		return said
	}
	blocks := slices.Clone(said)
	for i := range blocks {
		var compact bytes.Buffer
		if blocks[i].Kind == turns.KindToolUse && json.Compact(&compact, []byte(blocks[i].Text)) == nil {
			blocks[i].Text = compact.String()
		}
	}
	return blocks
}

// geminiStops are the ends that gemini.generate tells apart. It has one word for calls, sequences and an end, and one for
// whatever a filter stopped.
var geminiStops = map[string]turns.StopReason{
	"end_turn": turns.StopEndTurn, "stop_sequence": turns.StopEndTurn, "tool_use": turns.StopEndTurn, "max_tokens": turns.StopLength,
	"refusal": turns.StopContentFilter, "content_filter": turns.StopContentFilter, "MALFORMED_FUNCTION_CALL": "", "never_heard_of": "",
}

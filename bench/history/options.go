package main

import (
	"math"

	"github.com/turnd/turnd/bench/history/arrays"
	"github.com/turnd/turnd/turns"
)

// optionsOf makes what a history is asked with.
func (m *maker) optionsOf(h *history) {
	o := &h.options
	switch m.IntN(10) {
	case 0:
	case 1:
		o.System = pick(m, " ", "\n\t", "\u00a0")
		m.note("system_blank")
	default:
		o.System = m.words(markSystem)
		m.note("system")
	}
	if m.in(40) {
		o.MaxOutputTokens = pick[int32](m, 1, 16, 1000, 100_000)
		m.note("max_tokens")
	}
	if m.in(20) {
		o.Temperature = new(float64)
		*o.Temperature = pick(m, 0, 0.5, 1, 2)
		m.note("temperature")
	}
	if m.in(25) {
		o.StopSequences = []string{"END", "\n\nHuman:", "<|stop|>"}[:1+m.IntN(3)]
		m.note("stop_sequences")
	}
	if m.in(65) {
		m.toolsOf(o)
	} else if len(h.rows) > 0 {
		m.note("no_tools")
	}
	if m.in(20) {
		o.ThinkingBudgetTokens = pick[int32](m, 1024, 2048, 20_000)
		m.note("thinking_budget")
	}
}

func (m *maker) toolsOf(o *turns.Options) {
	n := 1 + m.IntN(len(toolNames))
	for _, name := range toolNames[:n] {
		t := turns.Tool{Name: name}
		if m.in(50) {
			t.Description = m.words(markTool)
		}
		if m.in(50) {
			t.InputSchemaJSON = pick(m, `{"type":"object"}`, `{ "type": "object", "properties": {"q": {"type": "string", "pattern": "\\d+"}}, "required": ["q"] }`)
		}
		o.Tools = append(o.Tools, t)
	}
	m.note("tools")
	switch m.IntN(8) {
	case 0:
		o.ToolChoice = &turns.ToolChoice{Mode: turns.ToolChoiceNone}
		m.note("choice.none")
	case 1:
		o.ToolChoice = &turns.ToolChoice{Mode: turns.ToolChoiceAny}
		m.note("choice.any")
	case 2:
		o.ToolChoice = &turns.ToolChoice{Mode: turns.ToolChoiceTool, ToolName: pick(m, toolNames[:n]...)}
		m.note("choice.tool")
	case 3:
		o.ToolChoice = &turns.ToolChoice{}
	}
}

// optionsFor are the options for a wire: of a lenient history those that it takes.
func (h *history) optionsFor(wire arrays.Wire, limit int) turns.Options {
	o := h.options
	if !h.lenient {
		return o
	}
	switch wire {
	case arrays.AnthropicMessages:
		o.Temperature = nil
		if !roomToThink(o, limit) || o.ToolChoice != nil {
			o.ThinkingBudgetTokens = 0
		}
	case arrays.OpenAIChat, arrays.GeminiInteractions:
		o.ThinkingBudgetTokens = 0
	case arrays.OpenAIResponses:
		o.ThinkingBudgetTokens, o.StopSequences = 0, nil
	}
	return o
}

// roomToThink reports whether a reply may be longer than its budget for thinking; limit is the endpoint's.
func roomToThink(o turns.Options, limit int) bool {
	for _, most := range []int{int(o.MaxOutputTokens), limit} {
		if most > 0 && most <= int(o.ThinkingBudgetTokens) {
			return false
		}
	}
	return true
}

// mostStops is how many stop sequences a wire takes.
var mostStops = map[arrays.Wire]int{arrays.OpenAIChat: 4, arrays.GeminiGenerate: 5, arrays.GeminiInteractions: 5, arrays.AnthropicMessages: math.MaxInt}

// refusals are the fields of options that a wire may refuse a request for. Any other refusal is a mistake.
func (h *history) refusals(wire arrays.Wire, limit int) map[string]bool {
	o, may := h.optionsFor(wire, limit), make(map[string]bool)
	if t := o.Temperature; t != nil {
		may["input.options.temperature"] = wire == arrays.AnthropicMessages || !(0 <= *t && *t <= 2)
	}
	if o.ThinkingBudgetTokens > 0 {
		takes := wire == arrays.GeminiGenerate || wire == arrays.AnthropicMessages && o.ThinkingBudgetTokens >= 1024 && roomToThink(o, limit)
		may["input.options.thinking_budget_tokens"] = !takes
		may["input.options.tool_choice"] = wire == arrays.AnthropicMessages && o.ToolChoice != nil
	}
	may["input.options.stop_sequences"] = len(o.StopSequences) > mostStops[wire]
	return may
}

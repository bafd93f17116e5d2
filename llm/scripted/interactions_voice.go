package scripted

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// interactionEvent is the beginning of an event's id, before its number.
const interactionEvent = "evt_"

// interactionUsage is a running total, told with every step that ends. Thoughts are no part of the output.
type interactionUsage struct {
	Input   int `json:"total_input_tokens"`
	Output  int `json:"total_output_tokens"`
	Cached  int `json:"total_cached_tokens"`
	Thought int `json:"total_thought_tokens"`
	ToolUse int `json:"total_tool_use_tokens"`
	Total   int `json:"total_tokens"`
}

// interaction is the resource: in events without its steps, retrieved with them.
type interaction struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"`
	Model   string             `json:"model"`
	Status  string             `json:"status"`
	Created string             `json:"created"`
	Labels  map[string]string  `json:"labels,omitempty"`
	Steps   []any              `json:"steps,omitempty"`
	Errors  []interactionError `json:"errors,omitempty"`
	Usage   *interactionUsage  `json:"usage,omitempty"`
}

// interactionVoice speaks named events, each of which repeats its name as its type and has an id.
type interactionVoice struct {
	reply
	content contents
	next    int // the number of the next event
	sum     totals
}

func newInteractionVoice(r reply) voice { return &interactionVoice{reply: r} }

// say frames an event, unless its reader has had it.
func (v *interactionVoice) say(kind string, f fields) []byte {
	number := v.next
	v.next++
	if number <= v.after {
		return nil
	}
	f["event_type"], f["event_id"] = kind, interactionEvent+strconv.Itoa(number)
	return v.lines.event(kind, encode(f))
}

func (v *interactionVoice) object(status string) interaction {
	return interaction{ID: v.id, Object: "interaction", Model: v.model, Status: status,
		Created: time.Unix(v.created, 0).UTC().Format(time.RFC3339)}
}

func (v *interactionVoice) begin() []byte {
	out := v.say("interaction.created", fields{"interaction": v.object("in_progress")})
	return append(out, v.say("interaction.status_update", fields{"interaction_id": v.id, "status": "in_progress"})...)
}

func (v *interactionVoice) piece(p piece) []byte {
	v.content.add(p)
	index := len(v.content) - 1
	if p.isDelta() {
		v.sum.output++
	}
	switch p.kind {
	case pieceOpen:
		return v.open(p.block, index)
	case pieceShut:
		f := fields{"index": index}
		if usage := v.figures(v.sum); usage != nil {
			f["usage"] = usage
		}
		return v.say("step.stop", f)
	case pieceThinking:
		v.sum.thinking++
		return v.delta(index, fields{"type": "thought_summary", "content": interactionText{Type: "text", Text: p.text}})
	case pieceSignature:
		return v.delta(index, fields{"type": "thought_signature", "signature": p.text})
	case pieceInput:
		return v.delta(index, fields{"type": "arguments_delta", "arguments": p.text})
	case pieceCite:
		return v.delta(index, fields{"type": "text_annotation_delta", "annotations": []json.RawMessage{json.RawMessage(p.text)}})
	}
	return v.delta(index, fields{"type": "text", "text": p.text})
}

func (v *interactionVoice) delta(index int, delta fields) []byte {
	return v.say("step.delta", fields{"index": index, "delta": delta})
}

// open begins a step. One of sealed thought is nothing but its signature.
func (v *interactionVoice) open(b Block, index int) []byte {
	start := content{block: b, said: new(strings.Builder)}
	out := v.say("step.start", fields{"index": index, "step": start.step()})
	if b.Redacted != "" {
		out = append(out, v.delta(index, fields{"type": "thought_signature", "signature": b.Redacted})...)
	}
	return out
}

// step is a block with what was said in it so far.
func (c content) step() fields {
	said := c.said.String()
	words := []interactionText{}
	if said != "" {
		words = append(words, interactionText{Type: "text", Text: said, Annotations: c.cited})
	}
	switch {
	case c.block.ToolUse != nil:
		args := json.RawMessage("{}")
		if json.Valid([]byte(said)) {
			args = json.RawMessage(said)
		}
		return fields{"type": "function_call", "id": c.block.ToolUse.ID, "name": c.block.ToolUse.Name, "arguments": args}
	case c.isReasoning():
		f := fields{"type": "thought", "summary": words}
		if c.signature != "" {
			f["signature"] = c.signature
		}
		return f
	}
	return fields{"type": "model_output", "content": words}
}

// wrapUp says nothing: what there is to say at the end is in the terminal event.
func (v *interactionVoice) wrapUp(totals) []byte { return nil }

// terminal is followed by a mark that the stream is over, which is no event.
func (v *interactionVoice) terminal() []byte {
	o := v.object(v.status())
	o.Usage = v.figures(v.sum)
	return append(v.say("interaction.completed", fields{"interaction": o}), v.lines.event("done", []byte("[DONE]"))...)
}

// status puts Anthropic's word into this vendor's, which tells only what is to be done next.
func (v *interactionVoice) status() string {
	switch v.stop {
	case "end_turn", "stop_sequence", "refusal", "content_filter":
		return "completed"
	case "tool_use":
		return "requires_action"
	case "max_tokens":
		return "incomplete"
	}
	return v.stop
}

func (v *interactionVoice) figures(t totals) *interactionUsage {
	switch v.usage {
	case UsageZero:
		return &interactionUsage{}
	case UsageFull:
		return &interactionUsage{
			Input: v.input, Output: t.output - t.thinking, Thought: t.thinking, Total: v.input + t.output,
		}
	}
	return nil
}

func (v *interactionVoice) failure(kind string) []byte {
	return v.say("error", fields{"error": interactionFailure(kind)})
}

func interactionFailure(kind string) interactionError {
	if kind == "" {
		kind = "unavailable"
	}
	return interactionError{kind, "scripted: " + kind}
}

func (v *interactionVoice) failureStatus(kind string) int { return geminiCode(strings.ToUpper(kind)) }

func (v *interactionVoice) reports(bool) bool { return v.usage == UsageFull }

func (v *interactionVoice) whole(totals) []byte {
	o := v.object(v.status())
	o.Usage, o.Labels = v.figures(v.sum), v.req.keep.metadata
	for _, c := range v.content {
		if c.block.Redacted != "" {
			c.signature = c.block.Redacted
		}
		o.Steps = append(o.Steps, c.step())
	}
	return encode(o)
}

// snapshot is the interaction as a retrieval finds it. What of one that is not over was said already is not shown.
func (v *interactionVoice) snapshot(t totals, o outcome, failure string, _ bool) []byte {
	status := "failed"
	switch o {
	case outcomeWhole:
		return v.whole(t)
	case outcomeNone:
		status = "in_progress"
	case outcomeCancelled:
		status = "cancelled"
	}
	now := v.object(status)
	now.Labels = v.req.keep.metadata
	if o == outcomeFailed {
		now.Errors = []interactionError{interactionFailure(failure)}
	}
	return encode(now)
}

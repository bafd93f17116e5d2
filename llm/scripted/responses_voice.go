package scripted

import (
	"encoding/json"
	"slices"
	"strings"
)

// responsesVoice speaks named events, each of which repeats its name as its type and has a number.
type responsesVoice struct {
	reply
	content contents
	next    int // the number of the next event
	sum     totals
}

func newResponsesVoice(r reply) voice { return &responsesVoice{reply: r} }

// fields are an event's own, besides its type and number.
type fields map[string]any

// say frames an event, unless its reader has had it.
func (v *responsesVoice) say(kind string, f fields) []byte {
	number := v.next
	v.next++
	if number <= v.after {
		return nil
	}
	f["type"], f["sequence_number"] = kind, number
	return v.lines.event(kind, encode(f))
}

func (v *responsesVoice) begin() []byte {
	var out []byte
	if v.req.keep.background {
		out = v.say("response.queued", fields{"response": v.object("queued")})
	}
	out = append(out, v.say("response.created", fields{"response": v.object("in_progress")})...)
	return append(out, v.say("response.in_progress", fields{"response": v.object("in_progress")})...)
}

func (v *responsesVoice) object(status string) responsesObject {
	o := responsesObject{
		ID: v.id, Object: "response", CreatedAt: v.created, Status: status, Background: v.req.keep.background, Model: v.model,
		Output: []any{}, Store: v.req.keep.stored, Metadata: v.req.keep.metadata, Usage: json.RawMessage("null"),
	}
	if o.Metadata == nil {
		o.Metadata = map[string]string{}
	}
	return o
}

func (v *responsesVoice) piece(p piece) []byte {
	v.content.add(p)
	index := len(v.content) - 1
	c := v.content[index]
	switch p.kind {
	case pieceOpen:
		return v.open(c, index)
	case pieceShut:
		return v.shut(c, index)
	case pieceSignature:
		return nil
	case pieceCite:
		f := v.at(c, index)
		f["annotation"], f["annotation_index"] = json.RawMessage(p.text), len(c.cited)-1
		return v.say("response.output_text.annotation.added", f)
	}
	f := v.at(c, index)
	f["delta"] = p.text
	if v.req.padded {
		f["obfuscation"] = strings.Repeat("x", 16-len(p.text)%16)
	}
	if p.kind == pieceText {
		f["logprobs"] = []any{}
	}
	return v.say(responsesDeltas[p.kind]+".delta", f)
}

// responsesDeltas are the names of the events that carry content, without their last word.
var responsesDeltas = map[pieceKind]string{
	pieceText:     "response.output_text",
	pieceRefusal:  "response.refusal",
	pieceThinking: "response.reasoning_summary_text",
	pieceInput:    "response.function_call_arguments",
}

// responsesWholes are the fields in which all of an item's content is repeated at its end.
var responsesWholes = map[pieceKind]string{
	pieceText: "text", pieceRefusal: "refusal", pieceThinking: "text", pieceInput: "arguments",
}

// at says where an event belongs: to an item, and to a part of it if the item has parts.
func (v *responsesVoice) at(c content, index int) fields {
	f := fields{"item_id": v.itemID(c, index), "output_index": index}
	switch {
	case c.block.ToolUse != nil:
	case c.isReasoning():
		f["summary_index"] = 0
	default:
		f["content_index"] = 0
	}
	return f
}

// open begins an item and its one part. Sealed reasoning has none, and neither has a call.
func (v *responsesVoice) open(c content, index int) []byte {
	out := v.say("response.output_item.added", fields{"output_index": index, "item": v.item(c, index, "in_progress")})
	return append(out, v.part(c, index, "added", "")...)
}

// part says that a part begins or ends.
func (v *responsesVoice) part(c content, index int, what, said string) []byte {
	f := v.at(c, index)
	switch {
	case c.block.ToolUse != nil || c.block.Redacted != "":
		return nil
	case c.isReasoning():
		f["part"] = responsesSummary{"summary_text", said}
		return v.say("response.reasoning_summary_part."+what, f)
	}
	f["part"] = responsesPart(c, said)
	return v.say("response.content_part."+what, f)
}

// shut ends what open began, and repeats it whole.
func (v *responsesVoice) shut(c content, index int) []byte {
	said := c.said.String()
	var out []byte
	if c.block.Redacted == "" {
		f := v.at(c, index)
		f[responsesWholes[c.block.kind()]] = said
		out = v.say(responsesDeltas[c.block.kind()]+".done", f)
	}
	out = append(out, v.part(c, index, "done", said)...)
	return append(out, v.say("response.output_item.done", fields{"output_index": index, "item": v.item(c, index, "completed")})...)
}

// wrapUp says nothing: all that this wire says at the end is in the terminal event.
func (v *responsesVoice) wrapUp(t totals) []byte {
	v.sum = t
	return nil
}

func (v *responsesVoice) terminal() []byte {
	o := v.over(v.sum)
	return v.say("response."+o.Status, fields{"response": o})
}

// over is the response at its end.
func (v *responsesVoice) over(t totals) responsesObject {
	o := v.object("completed")
	if reason := v.cutShort(); reason != "" {
		o.Status, o.Incomplete = "incomplete", &responsesIncomplete{reason}
	}
	o.Output, o.Usage = v.items(o.Status), v.figures(t)
	return o
}

// cutShort is why the response is not completed, in this vendor's words; empty for one that is.
func (v *responsesVoice) cutShort() string {
	switch v.stop {
	case "end_turn", "stop_sequence", "tool_use":
		return ""
	case "max_tokens":
		return "max_output_tokens"
	case "refusal":
		if v.content.text(pieceRefusal) != "" {
			return ""
		}
		return "content_filter"
	}
	return v.stop
}

// figures are null where nothing is reported.
func (v *responsesVoice) figures(t totals) json.RawMessage {
	var u responsesUsage
	switch v.usage {
	case UsageZero:
	case UsageFull:
		u = responsesUsage{InputTokens: v.input, OutputTokens: t.output, TotalTokens: v.input + t.output}
		u.OutputDetails.ReasoningTokens = t.thinking
	default:
		return json.RawMessage("null")
	}
	return encode(u)
}

// responsesCodes are the errors that end a response. Any other is one of the API, and said by an event of its own.
var responsesCodes = []string{"server_error", "rate_limit_exceeded", "invalid_prompt", "bio_policy", "misalignment_policy_violation", "image_too_large"}

func (v *responsesVoice) failure(kind string) []byte {
	if kind == "" {
		kind = "server_error"
	}
	if !slices.Contains(responsesCodes, kind) {
		return v.say("error", fields{"code": kind, "message": "scripted: " + kind, "param": nil})
	}
	return v.say("response.failed", fields{"response": v.failed(kind)})
}

func (v *responsesVoice) failed(kind string) responsesObject {
	o := v.object("failed")
	o.Error = &responsesError{kind, "scripted: " + kind}
	return o
}

func (v *responsesVoice) failureStatus(kind string) int { return (&openaiVoice{}).failureStatus(kind) }

func (v *responsesVoice) reports(bool) bool { return v.usage == UsageFull }

func (v *responsesVoice) whole(t totals) []byte { return encode(v.over(t)) }

// snapshot is the response as a retrieval finds it. What of one that is not over was said already is not shown.
func (v *responsesVoice) snapshot(t totals, o outcome, failure string, begun bool) []byte {
	switch {
	case o == outcomeWhole:
		return v.whole(t)
	case o == outcomeCancelled:
		return encode(v.object("cancelled"))
	case o == outcomeFailed && failure != "":
		return encode(v.failed(failure))
	case o != outcomeNone:
		return encode(v.failed("server_error"))
	case begun:
		return encode(v.object("in_progress"))
	}
	return encode(v.object("queued"))
}

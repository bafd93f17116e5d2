package scripted

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Anthropic's wire: https://docs.anthropic.com, Messages API. The types are declared here a second time on purpose: a
// mistake in the adapter must not be made again by its opponent.

// anthropicError is the body of an error answer and the data of an error event; the event has no request id.
type anthropicError struct {
	Type      string          `json:"type"`
	Error     anthropicDetail `json:"error"`
	RequestID string          `json:"request_id,omitempty"`
}

type anthropicDetail struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// anthropicUsage counts from the start of the message, each time it appears.
type anthropicUsage struct {
	InputTokens              int               `json:"input_tokens"`
	CacheCreationInputTokens int               `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int               `json:"cache_read_input_tokens"`
	OutputTokens             int               `json:"output_tokens"`
	Details                  *anthropicDetails `json:"output_tokens_details,omitempty"`
}

type anthropicDetails struct {
	ThinkingTokens int `json:"thinking_tokens"`
}

// anthropicMessage is what message_start holds, still empty, and the whole answer.
type anthropicMessage struct {
	ID           string          `json:"id"`
	Type         string          `json:"type"`
	Role         string          `json:"role"`
	Model        string          `json:"model"`
	Content      []any           `json:"content"`
	StopReason   *string         `json:"stop_reason"`
	StopSequence *string         `json:"stop_sequence"`
	StopDetails  *stopDetails    `json:"stop_details,omitempty"`
	Usage        *anthropicUsage `json:"usage,omitempty"`
}

// stopDetails comes with a refusal only.
type stopDetails struct {
	Category    string `json:"category"`
	Explanation string `json:"explanation"`
}

// The blocks, in message_start empty and in a whole answer full. None of their fields may be absent.

type textBlock struct {
	Type      string            `json:"type"`
	Text      string            `json:"text"`
	Citations []json.RawMessage `json:"citations,omitempty"`
}

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type redactedBlock struct {
	Type string `json:"type"`
	Data string `json:"data"`
}

type toolUseBlock struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// anthropicDelta is one of the five deltas of a block; only the field that its type names is set.
type anthropicDelta struct {
	Type        string          `json:"type"`
	Text        *string         `json:"text,omitempty"`
	Thinking    *string         `json:"thinking,omitempty"`
	PartialJSON *string         `json:"partial_json,omitempty"`
	Signature   *string         `json:"signature,omitempty"`
	Citation    json.RawMessage `json:"citation,omitempty"`
}

// anthropicStop is why the message ended, in message_delta.
type anthropicStop struct {
	StopReason   string       `json:"stop_reason"`
	StopSequence *string      `json:"stop_sequence"`
	StopDetails  *stopDetails `json:"stop_details,omitempty"`
}

// parseAnthropic reads what the provider needs. Fields it does not know are the vendor's business and let pass, as is the
// anthropic-version header.
func parseAnthropic(body []byte) request {
	req := request{wire: wireAnthropic}
	var in struct {
		Model     string          `json:"model"`
		Stream    bool            `json:"stream"`
		MaxTokens *int            `json:"max_tokens"`
		System    json.RawMessage `json:"system"`
		Messages  []message       `json:"messages"`
	}
	if json.Unmarshal(body, &in) != nil {
		req.problem = "the body is not valid JSON of this endpoint"
		return req
	}
	req.model, req.stream = in.Model, in.Stream
	req.words = len(strings.Fields(textOf(in.System)))
	req.read(in.Messages)
	req.check(in.Messages, " user assistant system ")
	if req.problem == "" {
		req.problem = anthropicPairing(in.Messages)
	}
	for i, m := range in.Messages {
		media, problem := anthropicMedia(m.Content, m.Role)
		if req.words += media * mediaTokens; problem != "" && req.problem == "" {
			req.problem = fmt.Sprintf("messages.%d.%s", i, problem)
		}
	}
	if req.problem == "" && in.MaxTokens == nil {
		req.problem = "max_tokens: field required"
	}
	return req
}

// anthropicKinds is the vendor's error type for each status; failures not streamed go the other way.
var anthropicKinds = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
	404: "not_found_error", 409: "conflict_error", 413: "request_too_large", 429: "rate_limit_error",
	500: "api_error", 504: "timeout_error", 529: "overloaded_error",
}

// anthropicRefusal names the type that the vendor uses for the status, unless the script names one.
func anthropicRefusal(r refusal) []byte {
	kind := r.kind
	if kind == "" {
		kind = anthropicKinds[r.status]
	}
	switch {
	case kind != "":
	case r.status >= 500:
		kind = "api_error"
	default:
		kind = "invalid_request_error"
	}
	if r.message == "" {
		r.message = "scripted: " + kind
	}
	return encode(anthropicError{"error", anthropicDetail{kind, r.message}, r.requestID})
}

// anthropicVoice speaks named events, each of which repeats its name as its type.
type anthropicVoice struct {
	reply
	content contents
	pinged  bool
	plain   []byte // of plainText
}

func newAnthropicVoice(r reply) voice { return &anthropicVoice{reply: r} }

// say frames an event; the event's name is its type.
func (v *anthropicVoice) say(kind string, data any) []byte { return v.lines.event(kind, encode(data)) }

// begin says message_start, where this vendor already tells the input tokens and a first small count of output.
func (v *anthropicVoice) begin() []byte {
	m := v.message()
	m.Usage = v.figures(v.usage == UsageFull || v.usage == UsageStartOnly, 1, 0)
	return v.say("message_start", struct {
		Type    string           `json:"type"`
		Message anthropicMessage `json:"message"`
	}{"message_start", m})
}

func (v *anthropicVoice) message() anthropicMessage {
	return anthropicMessage{ID: v.id, Type: "message", Role: "assistant", Model: v.model, Content: []any{}}
}

// figures returns the usage to report: true figures, zeros when the plan wants zeros, or nothing.
func (v *anthropicVoice) figures(truly bool, output, thinking int) *anthropicUsage {
	switch {
	case v.usage == UsageZero:
		return &anthropicUsage{}
	case !truly:
		return nil
	}
	usage := &anthropicUsage{InputTokens: v.input, OutputTokens: output}
	if thinking > 0 {
		usage.Details = &anthropicDetails{thinking}
	}
	return usage
}

func (v *anthropicVoice) piece(p piece) []byte {
	v.content.add(p)
	if (p.kind == pieceText || p.kind == pieceRefusal) && isPlain(p.text) {
		return v.plainText(p)
	}
	return v.anyPiece(p)
}

func (v *anthropicVoice) anyPiece(p piece) []byte {
	switch p.kind {
	case pieceOpen:
		return v.open(p)
	case pieceShut:
		return v.say("content_block_stop", struct {
			Type  string `json:"type"`
			Index int    `json:"index"`
		}{"content_block_stop", p.index})
	case pieceText, pieceRefusal:
		return v.delta(p, anthropicDelta{Type: "text_delta", Text: &p.text})
	case pieceThinking:
		return v.delta(p, anthropicDelta{Type: "thinking_delta", Thinking: &p.text})
	case pieceInput:
		return v.delta(p, anthropicDelta{Type: "input_json_delta", PartialJSON: &p.text})
	case pieceCite:
		return v.delta(p, anthropicDelta{Type: "citations_delta", Citation: json.RawMessage(p.text)})
	default:
		return v.delta(p, anthropicDelta{Type: "signature_delta", Signature: &p.text})
	}
}

// open starts a block. The vendor's first ping comes after the first block start.
func (v *anthropicVoice) open(p piece) []byte {
	out := v.say("content_block_start", struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Block any    `json:"content_block"`
	}{"content_block_start", p.index, anthropicBlock(content{block: p.block, said: new(strings.Builder)})})
	if !v.pinged {
		v.pinged = true
		out = append(out, v.say("ping", struct {
			Type string `json:"type"`
		}{"ping"})...)
	}
	return out
}

func (v *anthropicVoice) delta(p piece, delta anthropicDelta) []byte {
	return v.say("content_block_delta", struct {
		Type  string         `json:"type"`
		Index int            `json:"index"`
		Delta anthropicDelta `json:"delta"`
	}{"content_block_delta", p.index, delta})
}

func (v *anthropicVoice) wrapUp(t totals) []byte {
	return v.say("message_delta", struct {
		Type  string          `json:"type"`
		Delta anthropicStop   `json:"delta"`
		Usage *anthropicUsage `json:"usage,omitempty"`
	}{"message_delta", anthropicStop{StopReason: v.stop, StopDetails: v.details()}, v.end(t)})
}

func (v *anthropicVoice) end(t totals) *anthropicUsage {
	return v.figures(v.usage == UsageFull, t.output, t.thinking)
}

func (v *anthropicVoice) details() *stopDetails {
	if v.stop != "refusal" {
		return nil
	}
	return &stopDetails{"general_harms", "scripted"}
}

func (v *anthropicVoice) terminal() []byte {
	return v.say("message_stop", struct {
		Type string `json:"type"`
	}{"message_stop"})
}

func (v *anthropicVoice) failure(kind string) []byte {
	if kind == "" {
		kind = "overloaded_error"
	}
	return v.say("error", anthropicError{Type: "error", Error: anthropicDetail{kind, "scripted: " + kind}})
}

// failureStatus finds the status whose usual type this is.
func (v *anthropicVoice) failureStatus(kind string) int {
	if kind == "" {
		kind = "overloaded_error"
	}
	for status, usual := range anthropicKinds {
		if usual == kind {
			return status
		}
	}
	return 500
}

func (v *anthropicVoice) reports(bool) bool { return v.usage == UsageFull }

func (v *anthropicVoice) whole(t totals) []byte {
	m := v.message()
	for _, c := range v.content {
		m.Content = append(m.Content, anthropicBlock(c))
	}
	m.StopReason, m.StopDetails, m.Usage = &v.stop, v.details(), v.end(t)
	return encode(m)
}

// anthropicBlock is a block with what was said in it so far.
func anthropicBlock(c content) any {
	switch {
	case c.block.Vendor != "":
		return json.RawMessage(c.block.Vendor)
	case c.block.ToolUse != nil:
		input := json.RawMessage("{}")
		if said := c.said.String(); json.Valid([]byte(said)) {
			input = json.RawMessage(said)
		}
		return toolUseBlock{"tool_use", c.block.ToolUse.ID, c.block.ToolUse.Name, input}
	case c.block.Thinking != "":
		return thinkingBlock{"thinking", c.said.String(), c.signature}
	case c.block.Redacted != "":
		return redactedBlock{"redacted_thinking", c.block.Redacted}
	default:
		return textBlock{"text", c.said.String(), c.cited}
	}
}

package scripted

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// The wires, by the names that scripts and records use.
const (
	wireAnthropic    = "anthropic.messages"
	wireOpenAI       = "openai.chat"
	wireResponses    = "openai.responses"
	wireGemini       = "gemini.generate"
	wireInteractions = "gemini.interactions"
)

// request is what the provider wants to know of a call, whatever the wire.
type request struct {
	wire         string
	ask          Ask // of a request about a reply
	model        string
	stream       bool
	includeUsage bool     // OpenAI's stream_options.include_usage
	words        int      // input tokens by the counting rule
	userText     string   // of the last user message that has text
	keep         *keeping // where replies can be asked for
	sealed       bool     // it wants its reasoning sealed
	padded       bool     // it lets deltas be padded
	problem      string   // why the vendor would refuse it with 400, or ""
}

// wire is one vendor's way to talk.
type wire struct {
	name string
	path string
	// serves knows the paths of a wire that has many; address reads what they say besides the body.
	serves  func(path string) bool
	address func(*url.URL, *request)
	// idHeader carries the id of the HTTP exchange.
	idHeader string
	idKind   string // the beginning of a response id
	delta    string // the name of the events that carry content, if events have names
	parse    func(body []byte) request
	// refusal returns the body of an error answer.
	refusal func(refusal) []byte
	speak   func(reply) voice
	// lateUsage says that the usage is in the terminal event, and not before it.
	lateUsage bool
	// bodyHint says that the vendor asks to wait in the body, and sends no Retry-After.
	bodyHint bool
}

var wires = []wire{
	{
		name: wireAnthropic, path: "/v1/messages", idHeader: "request-id", idKind: "msg_", delta: "content_block_delta",
		parse: parseAnthropic, refusal: anthropicRefusal, speak: newAnthropicVoice,
	},
	{
		name: wireOpenAI, path: "/v1/chat/completions", idHeader: "x-request-id", idKind: "chatcmpl-",
		parse: parseOpenAI, refusal: openaiRefusal, speak: newOpenAIVoice,
	},
	{
		name: wireGemini, serves: servesGemini, address: addressGemini, idHeader: "x-request-id", idKind: "gem_", bodyHint: true,
		parse: parseGemini, refusal: geminiRefusal, speak: newGeminiVoice,
	},
	{
		name: wireInteractions, path: "/v1beta/interactions", idHeader: "x-request-id", idKind: "int_", delta: "step.delta",
		parse: parseInteraction, refusal: interactionRefusal, speak: newInteractionVoice, lateUsage: true,
	},
	{
		name: wireResponses, path: "/v1/responses", idHeader: "x-request-id", idKind: "resp_", delta: "response.output_text.delta",
		parse: parseResponses, refusal: responsesRefusal, speak: newResponsesVoice, lateUsage: true,
	},
}

// refusal is an error answer in no vendor's words.
type refusal struct {
	status    int
	kind      string // the vendor's error type; empty is the usual one for the status
	message   string // for the reader; empty names the type
	requestID string
	wait      string // seconds that are asked for, where the body says so
}

// reply is what a voice has to know before it speaks.
type reply struct {
	id           string
	created      int64 // Unix seconds
	model        string
	usage        Usage
	includeUsage bool
	stop         string // Anthropic's word
	lines        lines
	input        int // tokens
	req          request
	after        int // events up to this number were read before, and are left out; negative leaves out none
}

// totals are the output tokens of a reply, known at its end.
type totals struct {
	output   int
	thinking int // part of output
}

// voice turns a reply into one vendor's bytes. piece must be called for each piece in order, streamed or not, because
// whole is made of what it was told.
type voice interface {
	begin() []byte
	piece(piece) []byte
	// wrapUp is what lies between the content and the terminal event.
	wrapUp(totals) []byte
	terminal() []byte
	failure(kind string) []byte
	// failureStatus is the status under which a request that is not streamed gets the same failure.
	failureStatus(kind string) int
	// reports tells whether the reply carries true output figures.
	reports(streamed bool) bool
	whole(totals) []byte
}

// message is a chat message. The calls of a reply, and the call that a message answers, stand beside its content on
// OpenAI's wire only.
type message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []toolCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

// part is one content part. A tool result nests parts.
type part struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

// textOf returns the text in a content field: a string, or parts.
func textOf(content json.RawMessage) string {
	var plain string
	if json.Unmarshal(content, &plain) == nil {
		return plain
	}
	var parts []part
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text, p.Thinking)
		if p.Type == "tool_result" {
			texts = append(texts, textOf(p.Content))
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}

// read takes the words and the last user text from the messages.
func (r *request) read(messages []message) {
	for _, m := range messages {
		text := textOf(m.Content)
		r.words += len(strings.Fields(text))
		if m.Role == "user" && text != "" {
			r.userText = text
		}
	}
}

// check finds what both vendors refuse.
func (r *request) check(messages []message, roles string) {
	switch {
	case r.model == "":
		r.problem = "model: field required"
	case len(messages) == 0:
		r.problem = "messages: at least one message is required"
	}
	for _, m := range messages {
		if !strings.Contains(roles, " "+m.Role+" ") || m.Role == "" {
			r.problem = "messages: unexpected role"
		}
	}
}

// wireAt returns the wire served at a path, or nil.
func wireAt(path string) *wire {
	for i := range wires {
		if w := &wires[i]; w.path == path || w.serves != nil && w.serves(path) {
			return &wires[i]
		}
	}
	return nil
}

// credential is what the caller authenticates with; keys of two credentials never meet.
func credential(h http.Header) string {
	return h.Get("X-Api-Key") + h.Get("X-Goog-Api-Key") + "\n" + h.Get("Authorization")
}

package scripted

import (
	"encoding/json"
	"strings"
)

// OpenAI's wire: Chat Completions, also spoken by compatible servers. Declared here a second time, as Anthropic's is.

// openaiError is the body of an error answer and the data of an error in a stream.
type openaiError struct {
	Error openaiDetail `json:"error"`
}

// openaiDetail has all four fields always; null says that there is none.
type openaiDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

type openaiUsage struct {
	PromptTokens      int `json:"prompt_tokens"`
	CompletionTokens  int `json:"completion_tokens"`
	TotalTokens       int `json:"total_tokens"`
	PromptDetails     any `json:"prompt_tokens_details"`
	CompletionDetails any `json:"completion_tokens_details"`
}

type openaiCached struct {
	CachedTokens int `json:"cached_tokens"`
}

type openaiReasoning struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

type openaiFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// openaiToolCall has an index in chunks only, where its parts have to find each other.
type openaiToolCall struct {
	Index    *int           `json:"index,omitempty"`
	ID       string         `json:"id,omitempty"`
	Type     string         `json:"type,omitempty"`
	Function openaiFunction `json:"function"`
}

// openaiDelta is what a chunk adds. Absent fields say nothing, an empty string does.
type openaiDelta struct {
	Role      string           `json:"role,omitempty"`
	Content   *string          `json:"content,omitempty"`
	Reasoning *string          `json:"reasoning_content,omitempty"`
	Refusal   *string          `json:"refusal,omitempty"`
	ToolCalls []openaiToolCall `json:"tool_calls,omitempty"`
}

// openaiChoice holds a delta in a chunk and a message in a completion.
type openaiChoice struct {
	Index        int            `json:"index"`
	Delta        *openaiDelta   `json:"delta,omitempty"`
	Message      *openaiMessage `json:"message,omitempty"`
	Logprobs     *string        `json:"logprobs"`
	FinishReason *string        `json:"finish_reason"`
}

type openaiMessage struct {
	Role      string           `json:"role"`
	Content   *string          `json:"content"`
	Reasoning string           `json:"reasoning_content,omitempty"`
	Refusal   *string          `json:"refusal"`
	ToolCalls []openaiToolCall `json:"tool_calls,omitempty"`
}

// openaiReply is a chunk, or the whole completion. Usage is raw because null and absent differ.
type openaiReply struct {
	ID          string          `json:"id"`
	Object      string          `json:"object"`
	Created     int64           `json:"created"`
	Model       string          `json:"model"`
	ServiceTier string          `json:"service_tier"`
	Fingerprint string          `json:"system_fingerprint"`
	Choices     []openaiChoice  `json:"choices"`
	Usage       json.RawMessage `json:"usage,omitempty"`
	// Metadata is that of a completion that is kept.
	Metadata map[string]string `json:"metadata,omitempty"`
}

// parseOpenAI reads what the provider needs and lets the rest pass.
func parseOpenAI(body []byte) request {
	req := request{wire: wireOpenAI}
	var in struct {
		Model         string `json:"model"`
		Stream        bool   `json:"stream"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []message         `json:"messages"`
		Store    bool              `json:"store"`
		Metadata map[string]string `json:"metadata"`
	}
	if json.Unmarshal(body, &in) != nil {
		req.problem = "the body is not valid JSON of this endpoint"
		return req
	}
	req.model, req.stream, req.includeUsage = in.Model, in.Stream, in.StreamOptions.IncludeUsage
	if in.Store {
		req.keep = &keeping{stored: true, metadata: in.Metadata}
	}
	req.read(in.Messages)
	req.check(in.Messages, " user assistant system developer tool function ")
	switch {
	case len(in.Metadata) > 16:
		req.problem = "metadata: at most 16 pairs"
	case len(in.Metadata) > 0 && !in.Store:
		req.problem = "metadata: only allowed when store is enabled"
	}
	media, problem := openaiMedia(in.Messages)
	req.words += media * mediaTokens
	if req.problem == "" {
		req.problem = openaiPairing(in.Messages)
	}
	if req.problem == "" {
		req.problem = problem
	}
	return req
}

// openaiKinds are the vendor's type and code for statuses that have their own.
var openaiKinds = map[int][2]string{
	401: {"invalid_request_error", "invalid_api_key"},
	409: {"invalid_request_error", "idempotency_key_conflict"},
	429: {"requests", "rate_limit_exceeded"},
}

func openaiRefusal(r refusal) []byte {
	detail := openaiProblem(r.status, r.kind)
	if r.message != "" {
		detail.Message = r.message
	}
	return encode(openaiError{detail})
}

// openaiProblem puts an error into the vendor's fields. A given kind that ends in _error is a type without a code; any
// other is both, as insufficient_quota is.
func openaiProblem(status int, kind string) openaiDetail {
	usual, known := openaiKinds[status]
	switch {
	case strings.HasSuffix(kind, "_error"):
		usual = [2]string{kind, ""}
	case kind != "":
		usual = [2]string{kind, kind}
	case known:
	case status >= 500:
		usual = [2]string{"server_error", ""}
	default:
		usual = [2]string{"invalid_request_error", ""}
	}
	detail := openaiDetail{Message: "scripted: " + usual[0], Type: usual[0]}
	if usual[1] != "" {
		detail.Code = &usual[1]
	}
	return detail
}

// openaiVoice speaks unnamed events and ends with [DONE], which is no JSON.
type openaiVoice struct {
	reply
	content contents
	tools   int  // tool calls opened so far
	refused bool // some words of refusal were said
}

func newOpenAIVoice(r reply) voice { return &openaiVoice{reply: r} }

// chunk frames one. Usage is null in all but one chunk while it is asked for, and absent when it is not.
func (v *openaiVoice) chunk(choices []openaiChoice, usage json.RawMessage) []byte {
	if usage == nil && v.includeUsage {
		usage = json.RawMessage("null")
	}
	return v.lines.event("", encode(v.object("chat.completion.chunk", choices, usage)))
}

func (v *openaiVoice) object(kind string, choices []openaiChoice, usage json.RawMessage) openaiReply {
	return openaiReply{
		ID: v.id, Object: kind, Created: v.created, Model: v.model,
		ServiceTier: "default", Fingerprint: "fp_scripted", Choices: choices, Usage: usage,
	}
}

func (v *openaiVoice) delta(d openaiDelta) []byte {
	return v.chunk([]openaiChoice{{Delta: &d}}, nil)
}

// begin says the role chunk.
func (v *openaiVoice) begin() []byte {
	return v.delta(openaiDelta{Role: "assistant", Content: new(string)})
}

// piece returns nothing for pieces that this wire has no words for.
func (v *openaiVoice) piece(p piece) []byte {
	v.content.add(p)
	switch p.kind {
	case pieceText:
		return v.delta(openaiDelta{Content: &p.text})
	case pieceThinking:
		return v.delta(openaiDelta{Reasoning: &p.text})
	case pieceRefusal:
		v.refused = true
		return v.delta(openaiDelta{Refusal: &p.text})
	case pieceInput:
		index := v.tools - 1
		call := openaiToolCall{Index: &index, Function: openaiFunction{Arguments: p.text}}
		return v.delta(openaiDelta{ToolCalls: []openaiToolCall{call}})
	case pieceOpen:
		return v.open(p)
	default:
		return nil
	}
}

// open names a tool; other blocks have no beginning here.
func (v *openaiVoice) open(p piece) []byte {
	tool := p.block.ToolUse
	if tool == nil {
		return nil
	}
	index := v.tools
	v.tools++
	call := openaiToolCall{Index: &index, ID: tool.ID, Type: "function", Function: openaiFunction{Name: tool.Name}}
	return v.delta(openaiDelta{ToolCalls: []openaiToolCall{call}})
}

// wrapUp says why the reply ended and then, if the client asked for it, a chunk without choices that holds the usage.
func (v *openaiVoice) wrapUp(t totals) []byte {
	reason := v.finishReason()
	out := v.chunk([]openaiChoice{{Delta: &openaiDelta{}, FinishReason: &reason}}, nil)
	if usage := v.figures(t); usage != nil && v.includeUsage {
		out = append(out, v.chunk([]openaiChoice{}, usage)...)
	}
	return out
}

// figures returns the usage to report, or nil. This vendor says nothing at the start, so start_only is none.
func (v *openaiVoice) figures(t totals) json.RawMessage {
	usage := openaiUsage{PromptDetails: openaiCached{}, CompletionDetails: openaiReasoning{}}
	switch v.usage {
	case UsageZero:
	case UsageFull:
		usage.PromptTokens, usage.CompletionTokens = v.input, t.output
		usage.TotalTokens = v.input + t.output
		usage.CompletionDetails = openaiReasoning{t.thinking}
	default:
		return nil
	}
	return encode(usage)
}

// finishReason puts Anthropic's word into this vendor's. A reply in words of refusal just stops.
func (v *openaiVoice) finishReason() string {
	if v.stop == "refusal" && v.refused {
		return "stop"
	}
	switch v.stop {
	case "end_turn", "stop_sequence":
		return "stop"
	case "max_tokens":
		return "length"
	case "tool_use":
		return "tool_calls"
	case "refusal":
		return "content_filter"
	default:
		return v.stop
	}
}

func (v *openaiVoice) terminal() []byte { return v.lines.event("", []byte("[DONE]")) }

func (v *openaiVoice) failure(kind string) []byte {
	return v.lines.event("", encode(openaiError{openaiProblem(500, kind)}))
}

func (v *openaiVoice) failureStatus(kind string) int {
	switch kind {
	case "rate_limit_exceeded", "rate_limit_error", "insufficient_quota":
		return 429
	case "overloaded_error":
		return 503
	default:
		return 500
	}
}

func (v *openaiVoice) reports(streamed bool) bool {
	return v.usage == UsageFull && (v.includeUsage || !streamed)
}

// whole has null for the content of a reply that is tool calls and nothing else.
func (v *openaiVoice) whole(t totals) []byte {
	m := openaiMessage{Role: "assistant", Reasoning: v.content.text(pieceThinking)}
	if text := v.content.text(pieceText); text != "" || v.tools == 0 {
		m.Content = &text
	}
	for _, c := range v.content {
		if tool := c.block.ToolUse; tool != nil {
			call := openaiFunction{tool.Name, c.said.String()}
			m.ToolCalls = append(m.ToolCalls, openaiToolCall{ID: tool.ID, Type: "function", Function: call})
		}
	}
	if text := v.content.text(pieceRefusal); text != "" {
		m.Refusal, m.Content = &text, nil
	}
	reason := v.finishReason()
	choices := []openaiChoice{{Message: &m, FinishReason: &reason}}
	completion := v.object("chat.completion", choices, v.figures(t))
	if v.req.keep != nil {
		completion.Metadata = v.req.keep.metadata
	}
	return encode(completion)
}

package scripted

import (
	"encoding/json"
	"fmt"
)

// The items of a reply on the Responses wire, as they stand in events, in a whole response and in a conversation. None of
// their fields may be absent but the seal of reasoning.

type responsesText struct {
	Type        string            `json:"type"`
	Text        string            `json:"text"`
	Annotations []json.RawMessage `json:"annotations"`
	Logprobs    []any             `json:"logprobs"`
}

type responsesRefused struct {
	Type    string `json:"type"`
	Refusal string `json:"refusal"`
}

type responsesMessage struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Status  string `json:"status"`
	Role    string `json:"role"`
	Content []any  `json:"content"`
	Phase   string `json:"phase,omitempty"`
}

type responsesCall struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Status    string `json:"status"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type responsesSummary struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type responsesReasoning struct {
	ID        string             `json:"id"`
	Type      string             `json:"type"`
	Summary   []responsesSummary `json:"summary"`
	Encrypted *string            `json:"encrypted_content,omitempty"`
}

// responsesUsage has totals that contain their details.
type responsesUsage struct {
	InputTokens   int             `json:"input_tokens"`
	InputDetails  openaiCached    `json:"input_tokens_details"`
	OutputTokens  int             `json:"output_tokens"`
	OutputDetails openaiReasoning `json:"output_tokens_details"`
	TotalTokens   int             `json:"total_tokens"`
}

type responsesError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type responsesIncomplete struct {
	Reason string `json:"reason"`
}

// responsesObject is a response in all its states. Usage is raw because null and absent differ.
type responsesObject struct {
	ID         string               `json:"id"`
	Object     string               `json:"object"`
	CreatedAt  int64                `json:"created_at"`
	Status     string               `json:"status"`
	Background bool                 `json:"background"`
	Error      *responsesError      `json:"error"`
	Incomplete *responsesIncomplete `json:"incomplete_details"`
	Model      string               `json:"model"`
	Output     []any                `json:"output"`
	Store      bool                 `json:"store"`
	Metadata   map[string]string    `json:"metadata"`
	Usage      json.RawMessage      `json:"usage"`
}

// itemID is the id of a block's item, the same each time the reply is told.
func (v *responsesVoice) itemID(c content, index int) string {
	kind := "msg"
	switch {
	case c.block.ToolUse != nil:
		kind = "fc"
	case c.isReasoning():
		kind = "rs"
	}
	return fmt.Sprintf("%s_%s_%d", kind, v.id, index)
}

func (c content) isReasoning() bool { return c.block.Thinking != "" || c.block.Redacted != "" }

// item is a block with what was said in it so far. The seal of reasoning is shown when it is over, to those who asked.
func (v *responsesVoice) item(c content, index int, status string) any {
	id, said := v.itemID(c, index), c.said.String()
	over := status != "in_progress"
	switch {
	case c.block.ToolUse != nil:
		return responsesCall{id, "function_call", status, c.block.ToolUse.ID, c.block.ToolUse.Name, said}
	case c.isReasoning():
		r := responsesReasoning{ID: id, Type: "reasoning", Summary: []responsesSummary{}}
		if over && said != "" {
			r.Summary = append(r.Summary, responsesSummary{"summary_text", said})
		}
		if seal := c.signature + c.block.Redacted; v.req.sealed && over && seal != "" {
			r.Encrypted = &seal
		}
		return r
	}
	m := responsesMessage{ID: id, Type: "message", Status: status, Role: "assistant", Content: []any{}, Phase: c.block.Phase}
	if over {
		m.Content = append(m.Content, responsesPart(c, said))
	}
	return m
}

// responsesPart is the one part that a message of ours has.
func responsesPart(c content, said string) any {
	if c.block.Refusal != "" {
		return responsesRefused{"refusal", said}
	}
	return responsesText{"output_text", said, append([]json.RawMessage{}, c.cited...), []any{}}
}

// items are all of them.
func (v *responsesVoice) items(status string) []any {
	out := make([]any, 0, len(v.content))
	for i, c := range v.content {
		out = append(out, v.item(c, i, status))
	}
	return out
}

package anthropic

import (
	"encoding/json"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// message has its content as a list of blocks even where one string would do, so that the bytes of a message do not
// change when it is merged with a neighbour.
type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is every kind of content; each uses some of the fields. Thinking alone may be empty and must stand there all the
// same.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   []block         `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Source    *source         `json:"source,omitempty"`
	Title     string          `json:"title,omitempty"`
	Citations json.RawMessage `json:"citations,omitempty"`

	// raw is the whole of a block that goes back as it came.
	raw json.RawMessage
}

// MarshalJSON implements json.Marshaler.
func (b block) MarshalJSON() ([]byte, error) {
	if b.raw != nil {
		return b.raw, nil
	}
	type plain block
	return wire.Encode(plain(b))
}

func (b block) isThinking() bool { return b.Type == "thinking" || b.Type == "redacted_thinking" }

// messages keeps the text as it is, trailing space too: the last message is the user's, and only a last one of the
// assistant may not end in space.
func messages(history []turns.Message, model string) []message {
	out := make([]message, len(history))
	for i, m := range history {
		out[i] = message{Role: string(m.Role), Content: ended(blocks(m.Content, model))}
	}
	return out
}

// ended leaves out thoughts at the end of a message, which the vendor refuses there. A reply that was cut short can end so.
func ended(content []block) []block {
	for n := len(content); n > 0 && content[n-1].isThinking(); n-- {
		content = content[:n-1]
	}
	return content
}

// blocks are the blocks of a message. Thoughts go back only to the model whose seal they bear; without one, or with
// another's, they are left out. What the vendor made for itself goes back to any of its models.
func blocks(content []turns.Block, model string) []block {
	out := make([]block, 0, len(content))
	for _, b := range content {
		switch b := b.(type) {
		case turns.Text:
			cited, _ := sealer.OpenAny(b.Seal)
			out = append(out, block{Type: "text", Text: b.Text, Citations: json.RawMessage(cited)})
		case turns.Image:
			out = append(out, image(b))
		case turns.Document:
			out = append(out, document(b))
		case turns.ToolUse:
			out = append(out, block{Type: "tool_use", ID: b.ID, Name: b.Name, Input: wire.Object(b.InputJSON)})
		case turns.ToolResult:
			out = append(out, block{Type: "tool_result", ToolUseID: b.ToolUseID, IsError: b.IsError, Content: blocks(b.Content, model)})
		case turns.Thinking:
			data, ok := sealer.Open(model, b.Seal)
			switch {
			case ok && b.Redacted:
				out = append(out, block{Type: "redacted_thinking", Data: data})
			case ok:
				out = append(out, block{Type: "thinking", Thinking: &b.Text, Signature: data})
			}
		case turns.Opaque:
			if data, ok := sealer.OpenAny(b.Seal); ok {
				out = append(out, block{Type: b.Type, raw: json.RawMessage(data)})
			}
		}
	}
	return out
}

func texts(system []string) []block {
	out := make([]block, len(system))
	for i, t := range system {
		out[i] = block{Type: "text", Text: t}
	}
	return out
}

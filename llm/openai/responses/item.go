package responses

import (
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// item is every kind of entry of the input; each uses some of the fields. No item has an id: ids name what the vendor keeps.
type item struct {
	Type      string     `json:"type"`
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Summary   *[]summary `json:"summary,omitempty"`
	Encrypted string     `json:"encrypted_content,omitempty"`
	CallID    string     `json:"call_id,omitempty"`
	Name      string     `json:"name,omitempty"`
	Arguments *string    `json:"arguments,omitempty"`
	Output    *string    `json:"output,omitempty"`
}

type summary struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func items(history []turns.Message, model string) []item {
	var out []item
	for _, m := range history {
		out = append(out, itemsOf(m, model)...)
	}
	return out
}

// itemsOf are the blocks of a message. Reasoning goes back only to the model whose seal it bears, and only with what it led
// to: alone it is refused.
func itemsOf(m turns.Message, model string) (out []item) {
	var thoughts []item
	for _, b := range m.Content {
		switch b := b.(type) {
		case turns.Thinking:
			if data, ok := unseal(model, b.Seal); ok {
				thoughts = append(thoughts, reasoning(b, data))
			}
			continue
		case turns.Text:
			out = append(append(out, thoughts...), item{Type: "message", Role: string(m.Role), Content: &b.Text})
		case turns.ToolUse:
			arguments := string(wire.Value(b.InputJSON))
			out = append(append(out, thoughts...), item{Type: "function_call", CallID: b.ID, Name: b.Name, Arguments: &arguments})
		case turns.ToolResult:
			out = append(out, result(b))
		}
		thoughts = nil
	}
	return out
}

func reasoning(b turns.Thinking, data string) item {
	shown := []summary{}
	if b.Text != "" && !b.Redacted {
		shown = append(shown, summary{"summary_text", b.Text})
	}
	return item{Type: "reasoning", Summary: &shown, Encrypted: data}
}

// result is the output of a call. The wire does not say that a tool failed, so the text does.
func result(b turns.ToolResult) item {
	text := wire.TextOf(b.Content)
	if b.IsError {
		text = "Error: " + text
	}
	return item{Type: "function_call_output", CallID: b.ToolUseID, Output: &text}
}

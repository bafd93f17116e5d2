package responses

import (
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// item is every kind of entry of the input; each uses some of the fields. No item has an id: ids name what the vendor keeps.
// Content and Output are a text, or parts where it is more than that.
type item struct {
	Type      string     `json:"type"`
	Role      string     `json:"role,omitempty"`
	Content   any        `json:"content,omitempty"`
	Phase     string     `json:"phase,omitempty"`
	Summary   *[]summary `json:"summary,omitempty"`
	Encrypted string     `json:"encrypted_content,omitempty"`
	CallID    string     `json:"call_id,omitempty"`
	Name      string     `json:"name,omitempty"`
	Arguments *string    `json:"arguments,omitempty"`
	Output    any        `json:"output,omitempty"`
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
	if m.Role == turns.RoleUser {
		return asked(m.Content)
	}
	var thoughts []item
	for _, b := range m.Content {
		switch b := b.(type) {
		case turns.Thinking:
			if data, ok := sealer.Open(model, b.Seal); ok {
				thoughts = append(thoughts, reasoning(b, data))
			}
			continue
		case turns.Text:
			out = append(append(out, thoughts...), said(b))
		case turns.Refusal:
			out = append(append(out, thoughts...), refused(b))
		case turns.ToolUse:
			arguments := string(wire.Value(b.InputJSON))
			out = append(append(out, thoughts...), item{Type: "function_call", CallID: b.ID, Name: b.Name, Arguments: &arguments})
		}
		thoughts = nil
	}
	return out
}

// asked is what a user sent: results first, then each text as a message, or one message of parts where it is more than text.
func asked(blocks []turns.Block) (out []item) {
	var rest []turns.Block
	for _, b := range blocks {
		if r, ok := b.(turns.ToolResult); ok {
			out = append(out, result(r))
		} else {
			rest = append(rest, b)
		}
	}
	if wire.HasMedia(rest) {
		return append(out, item{Type: "message", Role: string(turns.RoleUser), Content: inputParts(rest)})
	}
	for _, b := range rest {
		if t, ok := b.(turns.Text); ok {
			out = append(out, item{Type: "message", Role: string(turns.RoleUser), Content: t.Text})
		}
	}
	return out
}

// said is a text of the model's: as the vendor wrote it where it wrote more than words.
func said(b turns.Text) item {
	i := item{Type: "message", Role: string(turns.RoleAssistant), Content: b.Text}
	if kept, ok := unsealText(b.Seal); ok {
		i.Phase = kept.Phase
		if kept.Annotations != nil {
			i.Content = []contentPart{{Type: "output_text", Text: b.Text, Annotations: kept.Annotations}}
		}
	}
	return i
}

func refused(b turns.Refusal) item {
	kept, _ := unsealText(b.Seal)
	return item{Type: "message", Role: string(turns.RoleAssistant), Phase: kept.Phase,
		Content: []contentPart{{Type: "refusal", Refusal: b.Text}}}
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
	i := item{Type: "function_call_output", CallID: b.ToolUseID}
	switch failed := "Error: "; {
	case wire.HasMedia(b.Content) && b.IsError:
		i.Output = inputParts(append([]turns.Block{turns.Text{Text: failed}}, b.Content...))
	case wire.HasMedia(b.Content):
		i.Output = inputParts(b.Content)
	case b.IsError:
		i.Output = failed + wire.TextOf(b.Content)
	default:
		i.Output = wire.TextOf(b.Content)
	}
	return i
}

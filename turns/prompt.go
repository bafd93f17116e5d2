package turns

import "slices"

// messageOf is a row as a part of the history, and whether it is one. A block of a reply that says nothing is left out;
// which of the others a provider can read is for its adapter. A user turn without content was erased.
func messageOf(row PathRow) (Message, bool) {
	if row.User != nil {
		return Message{Role: RoleUser, Content: row.User.Content}, len(row.User.Content) > 0
	}
	r := row.Reply
	if !r.counts() {
		return Message{}, false
	}
	log, err := LogOf(r.Content)
	if err != nil {
		return Message{}, false
	}
	blocks, _ := log.Blocks(0)
	var said []Block
	speaks := false
	for _, b := range blocks {
		if saysNothing(b) {
			continue
		}
		_, thought := b.(Thinking) // thoughts alone are no answer
		speaks = speaks || !thought
		said = append(said, b)
	}
	return Message{Role: RoleAssistant, Content: said}, speaks
}

// mixed reports whether a prompt holds images or documents.
func (p Prompt) mixed() bool {
	return slices.ContainsFunc(p.Messages, func(m Message) bool { return slices.ContainsFunc(m.Content, isMedia) })
}

func isMedia(b Block) bool {
	switch b := b.(type) {
	case Image, Document:
		return true
	case ToolResult:
		return slices.ContainsFunc(b.Content, isMedia)
	}
	return false
}

func saysNothing(b Block) bool {
	switch b := b.(type) {
	case Text:
		return b.Text == ""
	case Refusal:
		return b.Text == ""
	case Thinking:
		return b.Text == "" && b.Seal == ""
	case Opaque:
		return b.Seal == ""
	}
	return false
}

// counts reports whether a reply is a part of the history.
func (r *Reply) counts() bool {
	return r != nil && (r.Status == StatusComplete || r.Reason == ReasonSuperseded)
}

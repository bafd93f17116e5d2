package wire

import (
	"strings"

	"github.com/turnd/turnd/turns"
)

// Takes is what an endpoint takes of a history besides text, calls and their results.
type Takes struct {
	Media Media
	// Mine tells by their seals which texts, refusals and Opaque pieces go back as the vendor wrote them, Thought which
	// thoughts do. Nil is none.
	Mine, Thought func(seal string) bool
	// Whole tells of the blocks of a message whether its Opaque pieces can go back together. Nil is always.
	Whole func(content []turns.Block) bool
	// Objects says that the input of a call is a JSON object; else it is any JSON, as text.
	Objects bool
}

// History is a prompt's history as it goes out, with what had to be put right in it.
type History struct {
	Messages []turns.Message
	Healed   turns.Healed
}

// HistoryOf is a prompt's history as every provider takes it:
//
//   - It begins with the user: replies before the user's first words are left out.
//   - Neighbours of the same role become one, since some servers insist that roles alternate. Blank text, thoughts of
//     others, and messages of nothing else or of thoughts alone are left out. A text, and a refusal as the text it is, goes to
//     others without its seal.
//   - Each tool call is answered at the start of the message after it, in the order of the calls: by the newest result for
//     it, or, where nobody ever ran it, by an error that says so. Results that answer no call of the message before are left
//     out.
//   - Ids of calls are unique and in a form that all vendors take; names too.
//   - An image or a document of an older turn that the endpoint does not take, or for which the request has no room, is
//     replaced by words that say so. One of the newest turn is refused, by its field.
//   - Opaque blocks stay where they stood, and of a message either all stay or none: a call that the vendor ran itself would
//     be refused without its result.
//
// The prompt is not changed.
func HistoryOf(p turns.Prompt, takes Takes) (History, error) {
	h := healer{takes: takes, healed: turns.Healed{}, newest: len(p.Messages) - 1}
	if err := h.makeRoom(p); err != nil {
		return History{}, err
	}
	cleaned := make([]turns.Message, 0, len(p.Messages))
	for i, m := range p.Messages {
		content, err := h.clean(m.Content, place{message: i})
		if err != nil {
			return History{}, err
		}
		cleaned = append(cleaned, turns.Message{Role: m.Role, Content: content})
	}
	messages := h.pairCalls(h.begin(h.merge(cleaned)))
	messages = h.merge(messages) // a turn whose results all went has gone with them
	if n := len(messages); n == 0 || messages[n-1].Role != turns.RoleUser {
		return History{}, &turns.Error{Code: turns.CodeContentEmpty, Field: "input.content",
			Problem: "the prompt does not end with something from the user; send some text"}
	}
	return History{Messages: messages, Healed: h.healed}, nil
}

// healer puts one history right and counts what it did.
type healer struct {
	takes  Takes
	healed turns.Healed
	// newest is the message whose media are not left out but refused.
	newest int
	// full is the place up to which media of older messages have no room; hasFull says that there is one.
	full    place
	hasFull bool
}

// merge joins neighbours of one role and leaves out messages that say nothing.
func (h *healer) merge(messages []turns.Message) []turns.Message {
	var out []turns.Message
	for _, m := range messages {
		if !speaks(m.Content) {
			h.healed.Count(turns.HealedEmpty)
			continue
		}
		if n := len(out); n > 0 && out[n-1].Role == m.Role {
			h.healed.Count(turns.HealedRoles)
			out[n-1].Content = append(out[n-1].Content, m.Content...)
			continue
		}
		out = append(out, m)
	}
	return out
}

// begin leaves out what stands before the first words of the user: a reply to nothing, and results of its calls. A window
// begins with a user turn, but nothing may be left of that one.
func (h *healer) begin(messages []turns.Message) []turns.Message {
	for len(messages) > 0 && (messages[0].Role == turns.RoleAssistant || onlyResults(messages[0].Content)) {
		h.healed.Count(turns.HealedEmpty)
		messages = messages[1:]
	}
	return messages
}

func onlyResults(content []turns.Block) bool {
	for _, b := range content {
		if _, ok := b.(turns.ToolResult); !ok {
			return false
		}
	}
	return true
}

// speaks reports whether content is more than thoughts, which no vendor takes as a message of their own.
func speaks(content []turns.Block) bool {
	for _, b := range content {
		if _, thought := b.(turns.Thinking); !thought {
			return true
		}
	}
	return false
}

// allMine reports whether all opaque blocks of a message go back.
func (h *healer) allMine(content []turns.Block) bool {
	for _, b := range content {
		if o, ok := b.(turns.Opaque); ok && !h.isMine(o.Seal) {
			return false
		}
	}
	return h.takes.Whole == nil || h.takes.Whole(content)
}

func (h *healer) isMine(seal string) bool {
	return seal != "" && h.takes.Mine != nil && h.takes.Mine(seal)
}

// clean copies the blocks that can be sent.
func (h *healer) clean(content []turns.Block, at place) ([]turns.Block, error) {
	out := make([]turns.Block, 0, len(content))
	whole := h.allMine(content)
	for i, b := range content {
		at := at.inside(i)
		switch b := b.(type) {
		case turns.Text:
			if !whole {
				b.Seal = "" // what it cites may stand in a piece that does not go back
			}
			out = h.text(out, b)
		case turns.Refusal:
			out = h.refusal(out, b)
		case turns.Thinking:
			out = h.thought(out, b)
		case turns.ToolUse:
			out = append(out, h.call(b))
		case turns.ToolResult:
			inner, err := h.clean(b.Content, at)
			if err != nil {
				return nil, err
			}
			b.Content = inner
			out = append(out, b)
		case turns.Opaque:
			if !whole {
				h.healed.Count(turns.HealedOpaque)
				continue
			}
			out = append(out, b)
		default:
			piece, err := h.media(b, at)
			if err != nil {
				return nil, err
			}
			out = append(out, piece)
		}
	}
	return out, nil
}

// text is a text that says something. One whose words had to be changed has lost what its seal is about.
func (h *healer) text(out []turns.Block, b turns.Text) []turns.Block {
	said := h.cleanText(b.Text)
	if strings.TrimSpace(said) == "" {
		h.healed.Count(turns.HealedBlank)
		return out
	}
	if said != b.Text || !h.isMine(b.Seal) {
		b.Seal = ""
	}
	b.Text = said
	return append(out, b)
}

// refusal stays one for the vendor that made it, and is text for any other.
func (h *healer) refusal(out []turns.Block, b turns.Refusal) []turns.Block {
	if said := h.cleanText(b.Text); said == b.Text && strings.TrimSpace(said) != "" && h.isMine(b.Seal) {
		return append(out, b)
	}
	if b.Text == "" {
		return out // it says only how the vendor files it
	}
	return h.text(out, turns.Text{Text: b.Text})
}

func (h *healer) thought(out []turns.Block, b turns.Thinking) []turns.Block {
	if b.Seal == "" || h.takes.Thought == nil || !h.takes.Thought(b.Seal) {
		h.healed.Count(turns.HealedReasoning)
		return out
	}
	b.Text = h.cleanText(b.Text)
	return append(out, b)
}

func (h *healer) call(b turns.ToolUse) turns.ToolUse {
	sent := Value(b.InputJSON)
	if b.InputJSON != "" && (string(sent) != strings.TrimSpace(b.InputJSON) || h.takes.Objects && sent[0] != '{') {
		h.healed.Count(turns.HealedInput)
	}
	name := toolName(b.Name)
	if name != b.Name {
		h.healed.Count(turns.HealedName)
	}
	b.Name, b.InputJSON = name, CleanText(b.InputJSON)
	return b
}

func (h *healer) cleanText(s string) string {
	said := CleanText(s)
	if said != s {
		h.healed.Count(turns.HealedText)
	}
	return said
}

// TextOf joins the text blocks of content by an empty line, so that words of two blocks do not run together.
func TextOf(content []turns.Block) string {
	var texts []string
	for _, b := range content {
		if t, ok := b.(turns.Text); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

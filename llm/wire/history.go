package wire

import (
	"strings"

	"github.com/turnd/turnd/turns"
)

// Messages is a prompt's history as every provider takes it, made of Text, ToolUse, ToolResult and Thinking alone:
//
//   - Neighbours of the same role become one, since some servers insist that roles alternate. Blank text, blocks that only
//     their vendor understands, and messages of nothing else or of thoughts alone are left out. A refusal goes back as the
//     text it is.
//   - Each tool call is answered at the start of the message after it, in the order of the calls: by the newest result for
//     it, or, where nobody ever ran it, by an error that says so. Results that answer no call of the message before are left
//     out.
//   - Ids of calls are unique and in a form that all vendors take; names too.
//
// The prompt is not changed. What can't be sent yet is turns.CodeUnimplemented, naming what. Whose thoughts may go back is
// for the adapter, by their seals.
func Messages(p turns.Prompt) ([]turns.Message, error) { return MessagesFor(p, nil) }

// MessagesFor is Messages for a vendor that takes back the Opaque blocks whose seals are its own, which mine tells. They stay
// where they stood. Of a message either all stay or none: a call that the vendor ran itself would be refused without its
// result.
func MessagesFor(p turns.Prompt, mine func(seal string) bool) ([]turns.Message, error) {
	cleaned := make([]turns.Message, 0, len(p.Messages))
	for _, m := range p.Messages {
		content, err := cleanBlocks(m.Content, mine)
		if err != nil {
			return nil, err
		}
		cleaned = append(cleaned, turns.Message{Role: m.Role, Content: content})
	}
	messages := pairCalls(merge(cleaned))
	messages = merge(messages) // a turn whose results all went has gone with them
	if n := len(messages); n == 0 || messages[n-1].Role != turns.RoleUser {
		return nil, &turns.Error{Code: turns.CodeContentEmpty, Field: "input.content",
			Problem: "the prompt does not end with something from the user; send some text"}
	}
	return messages, nil
}

// merge joins neighbours of one role and leaves out messages that say nothing.
func merge(messages []turns.Message) []turns.Message {
	var out []turns.Message
	for _, m := range messages {
		if !speaks(m.Content) {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Role == m.Role {
			out[n-1].Content = append(out[n-1].Content, m.Content...)
			continue
		}
		out = append(out, m)
	}
	return out
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
func allMine(content []turns.Block, mine func(seal string) bool) bool {
	for _, b := range content {
		if o, ok := b.(turns.Opaque); ok && (mine == nil || !mine(o.Seal)) {
			return false
		}
	}
	return true
}

// cleanBlocks copies the blocks that can be sent.
func cleanBlocks(content []turns.Block, mine func(seal string) bool) ([]turns.Block, error) {
	out := make([]turns.Block, 0, len(content))
	opaque := allMine(content, mine)
	for _, b := range content {
		switch b := b.(type) {
		case turns.Text:
			out = appendText(out, b.Text)
		case turns.Refusal:
			out = appendText(out, b.Text)
		case turns.Thinking:
			b.Text = CleanText(b.Text)
			out = append(out, b)
		case turns.ToolUse:
			b.Name, b.InputJSON = toolName(b.Name), CleanText(b.InputJSON)
			out = append(out, b)
		case turns.ToolResult:
			inner, err := cleanBlocks(b.Content, nil)
			if err != nil {
				return nil, err
			}
			b.Content = inner
			out = append(out, b)
		case turns.Opaque:
			if opaque {
				out = append(out, b)
			}
		default:
			return nil, unimplemented("input.content", nameOf(b))
		}
	}
	return out, nil
}

func appendText(out []turns.Block, text string) []turns.Block {
	if text = CleanText(text); strings.TrimSpace(text) == "" {
		return out
	}
	return append(out, turns.Text{Text: text})
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

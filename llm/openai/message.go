package openai

import (
	"strings"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// message has its content as one string where it is text alone: the list form means the same and many compatible servers
// refuse it. It is null beside calls without text.
type message struct {
	Role       string     `json:"role"`
	Content    content    `json:"content"`
	Refusal    string     `json:"refusal,omitempty"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function functionCall `json:"function"`
}

// functionCall has its arguments as text that is JSON.
type functionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func (c *Client) messages(system []string, history []turns.Message) []message {
	out := make([]message, 0, len(system)+len(history))
	for _, text := range system {
		out = append(out, message{Role: c.systemRole(), Content: textContent(text)})
	}
	for _, m := range history {
		if m.Role == turns.RoleAssistant {
			out = append(out, said(m.Content))
		} else {
			out = append(out, asked(m.Content)...)
		}
	}
	return out
}

// said is a reply. Its thoughts are left out: this wire has no place for them.
func said(blocks []turns.Block) message {
	m := message{Role: string(turns.RoleAssistant)}
	for _, b := range blocks {
		switch b := b.(type) {
		case turns.ToolUse:
			m.ToolCalls = append(m.ToolCalls, toolCall{b.ID, "function", functionCall{b.Name, string(wire.Value(b.InputJSON))}})
		case turns.Refusal:
			m.Refusal += b.Text
		}
	}
	if text := wire.TextOf(blocks); text != "" {
		m.Content = textContent(text)
	}
	return m
}

// asked is what a user sent: each result as a message of its own, then the rest. The wire does not say that a tool failed,
// so the text does. An image has no place in a result, which is text alone here: it comes first in the user's message, with
// words that say where it belongs.
func asked(blocks []turns.Block) (out []message) {
	var rest []turns.Block
	for _, b := range blocks {
		r, ok := b.(turns.ToolResult)
		if !ok {
			rest = append(rest, b)
			continue
		}
		text := wire.TextOf(r.Content)
		if r.IsError {
			text = "Error: " + text
		}
		if wire.HasMedia(r.Content) {
			text = strings.TrimSpace(text + "\n\n" + imageFollows)
		}
		out = append(out, message{Role: "tool", Content: textContent(text), ToolCallID: r.ToolUseID})
	}
	rest = append(imagesOf(blocks), rest...)
	switch {
	case wire.HasMedia(rest):
		out = append(out, message{Role: string(turns.RoleUser), Content: content{parts: partsOf(rest)}})
	case wire.TextOf(rest) != "":
		out = append(out, message{Role: string(turns.RoleUser), Content: textContent(wire.TextOf(rest))})
	}
	return out
}

// imageFollows stands in a result in place of its images.
const imageFollows = "[The image of this result follows in the next message.]"

// imagesOf are the images of results, each behind words that name its call.
func imagesOf(blocks []turns.Block) (out []turns.Block) {
	for _, b := range blocks {
		r, ok := b.(turns.ToolResult)
		if !ok || !wire.HasMedia(r.Content) {
			continue
		}
		out = append(out, turns.Text{Text: "[Image of the result of call " + r.ToolUseID + ":]"})
		for _, inner := range r.Content {
			if _, isText := inner.(turns.Text); !isText {
				out = append(out, inner)
			}
		}
	}
	return out
}

package openai

import (
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// message has its content as one string: the list form means the same and many compatible servers refuse it. It is null
// beside calls without text.
type message struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
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
		out = append(out, message{Role: c.systemRole(), Content: &text})
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
func said(content []turns.Block) message {
	m := message{Role: string(turns.RoleAssistant)}
	for _, b := range content {
		if use, ok := b.(turns.ToolUse); ok {
			m.ToolCalls = append(m.ToolCalls, toolCall{use.ID, "function", functionCall{use.Name, string(wire.Value(use.InputJSON))}})
		}
	}
	if text := wire.TextOf(content); text != "" {
		m.Content = &text
	}
	return m
}

// asked is what a user sent: each result as a message of its own, then the text. The wire does not say that a tool failed,
// so the text does.
func asked(content []turns.Block) (out []message) {
	for _, b := range content {
		if r, ok := b.(turns.ToolResult); ok {
			text := wire.TextOf(r.Content)
			if r.IsError {
				text = "Error: " + text
			}
			out = append(out, message{Role: "tool", Content: &text, ToolCallID: r.ToolUseID})
		}
	}
	if text := wire.TextOf(content); text != "" {
		out = append(out, message{Role: string(turns.RoleUser), Content: &text})
	}
	return out
}

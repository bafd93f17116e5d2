package scripted

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// toolCall is a call in an OpenAI message.
type toolCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// anthropicPairing finds calls and results that do not belong together, which the vendor refuses, and blocks that it does
// not take.
func anthropicPairing(messages []message) (problem string) {
	used := make(map[string]bool)
	var open []string // calls of the message before
	for i, m := range messages {
		var parts []part
		_ = json.Unmarshal(m.Content, &parts) // plain text has no parts
		var calls, results, own []string
		for n, p := range parts {
			switch {
			case p.Type == "server_tool_use":
				own = append(own, p.ID)
			case p.Type != "tool_result" && strings.HasSuffix(p.Type, "_tool_result") && !slices.Contains(own, p.ToolUseID):
				return fmt.Sprintf("messages.%d: `%s` needs its `server_tool_use` before it", i, p.Type)
			case p.Type == "text" && p.Text == "":
				return fmt.Sprintf("messages.%d: text content blocks must be non-empty", i)
			case p.Type == "thinking" && p.Signature == "":
				return fmt.Sprintf("messages.%d: thinking needs its signature", i)
			case p.Type == "tool_use" && (used[p.ID] || p.ID == "" || p.Name == ""):
				return fmt.Sprintf("messages.%d: `tool_use` needs a name, and an id of its own", i)
			case p.Type == "tool_use" && (len(p.Input) == 0 || p.Input[0] != '{'):
				return fmt.Sprintf("messages.%d: `tool_use.input` must be an object", i)
			case p.Type == "tool_use":
				used[p.ID], calls = true, append(calls, p.ID)
			case p.Type == "tool_result" && len(results) != n:
				return fmt.Sprintf("messages.%d: `tool_result` blocks must come first", i)
			case p.Type == "tool_result":
				results = append(results, p.ToolUseID)
			}
		}
		if !sameIDs(open, results) {
			return fmt.Sprintf("messages.%d: each `tool_use` needs its `tool_result` in the next message, and each `tool_result` its `tool_use` in the one before", i)
		}
		open = calls
	}
	if len(open) > 0 {
		return "`tool_use` ids were found without `tool_result` blocks immediately after"
	}
	return ""
}

// openaiPairing is the same for the other wire, where each result is a message.
func openaiPairing(messages []message) (problem string) {
	var open []string
	for i, m := range messages {
		if m.Role == "tool" {
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				return fmt.Sprintf("messages.%d: a 'tool' message must answer a call of the message before", i)
			}
			open = slices.Delete(open, at, at+1)
			continue
		}
		if len(open) > 0 {
			return fmt.Sprintf("messages.%d: 'tool_calls' must be followed by tool messages for each call", i)
		}
		for _, call := range m.ToolCalls {
			if call.ID == "" || call.Function.Name == "" || !json.Valid([]byte(call.Function.Arguments)) {
				return fmt.Sprintf("messages.%d: a call needs its id, name and arguments that are JSON", i)
			}
			open = append(open, call.ID)
		}
	}
	if len(open) > 0 {
		return "'tool_calls' must be followed by tool messages for each call"
	}
	return ""
}

// sameIDs compares without regard to order; an id twice is never the same as once.
func sameIDs(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

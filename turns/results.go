package turns

import (
	"fmt"
	"slices"
)

// answersCalls reports whether content holds a tool result, and so can't be understood without the reply before it.
func answersCalls(content []Block) bool {
	return slices.ContainsFunc(content, func(b Block) bool { _, is := b.(ToolResult); return is })
}

// checkResults demands that each tool result of a turn answers a call of the path's last reply, and each call at most one
// of them. A turn whose own reply failed may be followed by another that answers the same calls; the newest answer holds.
func checkResults(path []PathRow, content []Block) error {
	var open map[string]bool
	for i, b := range content {
		result, ok := b.(ToolResult)
		if !ok {
			continue
		}
		if open == nil {
			open = lastCalls(path)
		}
		if !open[result.ToolUseID] {
			return &Error{Code: CodeInvalidToolResult, Field: fmt.Sprintf("input.content[%d].tool_use_id", i),
				Problem: "is no call of the reply before this turn, or is answered twice; send one result for each of its calls"}
		}
		open[result.ToolUseID] = false
	}
	return nil
}

// lastCalls are the ids of the tool calls in the last reply that counts.
func lastCalls(path []PathRow) map[string]bool {
	calls := make(map[string]bool)
	for _, row := range path {
		if row.User != nil || !row.Reply.counts() {
			continue
		}
		message, _ := messageOf(row)
		for _, b := range message.Content {
			if use, ok := b.(ToolUse); ok {
				calls[use.ID] = true
			}
		}
		break
	}
	return calls
}

package turns

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A reply's calls are answered by the next user turn, all at once and in any order, or by nothing: a turn without results
// goes on without them, and what the model is told then is that they were not run. A turn between the two is told which
// calls wait.

// answersCalls reports whether content holds a tool result, and so can't be understood without the reply before it.
func answersCalls(content []Block) bool {
	return slices.ContainsFunc(content, func(b Block) bool { _, is := b.(ToolResult); return is })
}

// checkResults demands of a new turn that each of its tool results answers an open call of the path's last reply, each call
// at most one of them, and that no open call is left. A turn whose own reply failed may be followed by another that answers
// the same calls, or those of them that it left: the newest answer holds. Path is newest row first.
func checkResults(path []PathRow, content []Block) error {
	if !answersCalls(content) {
		return nil
	}
	open := openCalls(path)
	answered := make(map[string]bool)
	for i, b := range content {
		result, ok := b.(ToolResult)
		if !ok {
			continue
		}
		field := fmt.Sprintf("input.content[%d].tool_use_id", i)
		switch {
		case answered[result.ToolUseID]:
			return &Error{Code: CodeInvalidToolResult, Field: field, Problem: "is answered twice in this turn; send one result for each id, which answers all calls with that id"}
		case !open.known[result.ToolUseID]:
			return &Error{Code: CodeInvalidToolResult, Field: field, Problem: whyNotOpen(path, result.ToolUseID)}
		}
		answered[result.ToolUseID] = true
	}
	var missing []string
	for _, id := range open.ids {
		if !answered[id] && !open.answered[id] {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return waitingForTools(missing)
	}
	return nil
}

// calls are those of a reply that a user turn may answer, in their order, and which a turn before has answered already.
type calls struct {
	ids      []string
	known    map[string]bool
	answered map[string]bool
}

// openCalls are those of the last reply on a path that is part of the history.
func openCalls(path []PathRow) calls {
	c := calls{known: make(map[string]bool), answered: make(map[string]bool)}
	for _, row := range path {
		if row.User != nil {
			for _, b := range row.User.Content {
				if r, ok := b.(ToolResult); ok {
					c.answered[r.ToolUseID] = true
				}
			}
			continue
		}
		if !row.Reply.counts() {
			continue
		}
		for _, use := range callsOf(row.Reply) {
			if use.ID != "" && !c.known[use.ID] && !cutOff(row.Reply, use) {
				c.ids, c.known[use.ID] = append(c.ids, use.ID), true
			}
		}
		break
	}
	return c
}

// callsOf are the tool calls of a reply, in their order.
func callsOf(r *Reply) (uses []ToolUse) {
	log, err := LogOf(r.Content)
	if err != nil {
		return nil
	}
	blocks, _ := log.Blocks(0)
	for _, b := range blocks {
		if use, ok := b.(ToolUse); ok {
			uses = append(uses, use)
		}
	}
	return uses
}

// cutOff reports a call whose input the model could not finish, since the reply was stopped for its length or its content.
// It can't be run, so nothing waits for it. Input that is broken otherwise is the model's own mistake, which the client
// answers with an error like any other.
func cutOff(r *Reply, use ToolUse) bool {
	switch r.StopReason {
	case StopLength, StopContentFilter, StopContextExceeded, StopRefusal:
		return strings.TrimSpace(use.InputJSON) != "" && !json.Valid([]byte(use.InputJSON))
	}
	return false
}

// whyNotOpen tells what is wrong with a result's id, and what to do.
func whyNotOpen(path []PathRow, id string) string {
	below := true // no reply that is part of the history was passed yet
	for _, row := range path {
		if row.User != nil {
			continue
		}
		named := slices.ContainsFunc(callsOf(row.Reply), func(use ToolUse) bool { return use.ID == id })
		switch {
		case named && !row.Reply.counts():
			return "is a call of a reply that was cut off, which is no part of the conversation's history; send a message without it"
		case named && below:
			return "is a call that the model could not finish, so that it can't be run; send a message without it"
		case named:
			return "is a call of an earlier reply; only the calls of the last one can be answered"
		}
		below = below && !row.Reply.counts()
	}
	return "is no call of the reply before this turn; send one result for each of its calls"
}

// waitingIDs bounds the ids of calls in an error, in bytes.
const waitingIDs = 1 << 10

// waitingForTools names the calls that a turn left, as far as there is room; open_calls counts them all.
func waitingForTools(ids []string) error {
	named := ids[:0:0]
	room := waitingIDs
	for _, id := range ids {
		if room -= len(id) + 1; room < 0 {
			break
		}
		named = append(named, id)
	}
	return &Error{Code: CodeWaitingForTools, Field: "input.content",
		Problem: "answers some of the reply's tool calls and not all; answer all of them in one turn, with is_error where one failed, or none",
		Meta:    map[string]string{"tool_use_ids": strings.Join(named, ","), "open_calls": fmt.Sprint(len(ids))}}
}

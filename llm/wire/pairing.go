package wire

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"

	"github.com/turnd/turnd/turns"
)

// notRun answers a call that nobody ran: the user went on without it.
const notRun = "This tool was not run: the user went on without it."

// sentID and sentName are the forms of ids and names of calls that all vendors take.
var (
	sentID   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)
	sentName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

// openCall is a call that the next message has to answer: its id as it is stored, and as it is sent.
type openCall struct{ stored, sent string }

// pairCalls gives every call its answer and every answer its call.
func (h *healer) pairCalls(messages []turns.Message) []turns.Message {
	used := make(map[string]bool)
	var open []openCall
	for i := range messages {
		m := &messages[i]
		if m.Role == turns.RoleAssistant {
			m.Content, open = h.nameCalls(m.Content, used)
			continue
		}
		m.Content, open = h.answer(m.Content, open), nil
	}
	return messages
}

// nameCalls puts the ids of a message's calls into the form that is sent. A second call under an id of the same message
// could never be answered apart from the first, and is left out.
func (h *healer) nameCalls(content []turns.Block, used map[string]bool) (out []turns.Block, open []openCall) {
	seen := make(map[string]bool)
	for _, b := range content {
		if use, ok := b.(turns.ToolUse); ok {
			if seen[use.ID] {
				h.healed.Count(turns.HealedDuplicate)
				continue
			}
			seen[use.ID] = true
			call := openCall{use.ID, callID(use.ID, used)}
			if call.sent != call.stored {
				h.healed.Count(turns.HealedID)
			}
			use.ID, open = call.sent, append(open, call)
			b = use
		}
		out = append(out, b)
	}
	return out, open
}

// callID keeps an id that all vendors take and that no earlier call has; any other is replaced by one made from it, so
// that the same history has the same ids everywhere.
func callID(id string, used map[string]bool) string {
	sent := id
	for n := 0; used[sent] || !sentID.MatchString(sent); n++ {
		sent = fmt.Sprintf("call_%.12x", sha256.Sum256(fmt.Appendf(nil, "%d %s", n, id)))
	}
	used[sent] = true
	return sent
}

// answer puts one result for each open call before the rest of a user's message.
func (h *healer) answer(content []turns.Block, open []openCall) []turns.Block {
	results := make(map[string]turns.ToolResult)
	var rest []turns.Block
	given := 0
	for _, b := range content {
		if r, ok := b.(turns.ToolResult); ok {
			results[r.ToolUseID] = r
			given++
		} else {
			rest = append(rest, b)
		}
	}
	out := make([]turns.Block, 0, len(open)+len(rest))
	for _, call := range open {
		r, ok := results[call.stored]
		if ok {
			given--
		} else {
			h.healed.Count(turns.HealedUnanswered)
			r = turns.ToolResult{IsError: true, Content: []turns.Block{turns.Text{Text: notRun}}}
		}
		if r.IsError && len(r.Content) == 0 {
			r.Content = []turns.Block{turns.Text{Text: "The tool failed."}} // an error without words is refused
		}
		r.ToolUseID = call.sent
		out = append(out, r)
	}
	for range given {
		h.healed.Count(turns.HealedOrphan) // of no call, or older than another of the same call
	}
	return append(out, rest...)
}

// toolName is a name in the form that all vendors take. A model can call a tool that does not exist by any name.
func toolName(name string) string {
	if sentName.MatchString(name) {
		return name
	}
	name = strings.Map(func(r rune) rune {
		if r < 0x80 && sentName.MatchString(string(r)) {
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "unnamed"
	}
	return name[:min(len(name), 64)]
}

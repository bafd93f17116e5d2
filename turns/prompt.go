package turns

import (
	"fmt"
	"slices"
)

// pathRows and pathBytes bound the one read of a path, in rows of both kinds and in bytes of stored content; the window in
// tokens cuts further.
const (
	pathRows  = 400
	pathBytes = 16 << 20
)

// window is a prompt with the row it starts at.
type window struct {
	prompt Prompt
	start  RowID
}

// buildWindow makes a prompt from a path, newest row first, and the user turn that ends it. The cut is always before a
// user turn. A pinned start, from an earlier attempt of the same generation, is kept, so that the same bytes come out
// again; else as much of the path is taken as the route's window holds.
//
// A reply counts if it is complete, or was until another took its place and a later turn hangs below it; failed and
// running ones are no part of the history.
func buildWindow(path []PathRow, turn TurnID, content []Block, options Options, limits Limits, pinned RowID) (window, error) {
	budget := int64(limits.WindowTokens)
	used := EstimateTokens(len(options.System)) + EstimateTokens(SizeOf(content))
	if budget > 0 && used > budget {
		return window{}, promptTooLarge(used, budget)
	}
	switch {
	case pinned == turn.Row():
		path = nil
	case !slices.ContainsFunc(path, func(row PathRow) bool { return row.ID == pinned }):
		pinned = RowID{} // the pinned row is out of reach: the window is cut anew
	}
	newest := []Message{{Role: RoleUser, Content: content}}
	w := window{start: turn.Row()}
	var pending []Message // newest first, not yet known to be taken
	for _, row := range path {
		message, counts := messageOf(row)
		if counts {
			pending = append(pending, message)
			used += EstimateTokens(SizeOf(message.Content))
		}
		if pinned.IsZero() && budget > 0 && used > budget {
			break
		}
		if row.User != nil {
			newest = append(newest, pending...)
			pending = nil
			w.start = row.ID
		}
		if row.ID == pinned {
			break
		}
	}
	w.prompt = Prompt{Options: options, Messages: reversed(newest)}
	return w, nil
}

func messageOf(row PathRow) (Message, bool) {
	if row.User != nil {
		return Message{Role: RoleUser, Content: row.User.Content}, true
	}
	r := row.Reply
	if r == nil || !(r.Status == StatusComplete || r.Reason == ReasonSuperseded) {
		return Message{}, false
	}
	log, err := LogOf(r.Content)
	if err != nil {
		return Message{}, false
	}
	blocks, _ := log.Blocks(0)
	var text []Block
	for _, b := range blocks {
		if t, ok := b.(Text); ok && t.Text != "" {
			text = append(text, t)
		}
	}
	return Message{Role: RoleAssistant, Content: text}, len(text) > 0
}

func reversed(messages []Message) []Message {
	out := make([]Message, len(messages))
	for i, m := range messages {
		out[len(out)-1-i] = m
	}
	return out
}

func promptTooLarge(tokens, limit int64) error {
	return &Error{Code: CodePromptTooLarge, Field: "input.content",
		Problem: fmt.Sprintf("is about %d tokens and the model's window is %d; send less", tokens, limit),
		Meta:    map[string]string{"tokens": fmt.Sprint(tokens), "limit": fmt.Sprint(limit)}}
}

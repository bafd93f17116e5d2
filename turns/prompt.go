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
// user turn, and never between a tool call and its result: a turn with results is no place to begin at, so what does not
// fit then is CodePromptTooLarge. A pinned start, from an earlier attempt of the same generation, is kept, so that the same
// bytes come out again; else as much of the path is taken as the route's window holds.
//
// A reply counts if it is complete, or was until another took its place and a later turn hangs below it; failed and
// running ones are no part of the history.
func buildWindow(path []PathRow, turn TurnID, content []Block, options Options, limits Limits, pinned RowID) (window, error) {
	if err := options.checkToolChoice(); err != nil {
		return window{}, err
	}
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
	whole := !answersCalls(content) // whether the newest part can stand alone
	var pending []Message           // newest first, not yet known to be taken
	for _, row := range path {
		message, counts := messageOf(row)
		if counts {
			pending = append(pending, message)
			used += EstimateTokens(SizeOf(message.Content))
		}
		if pinned.IsZero() && budget > 0 && used > budget {
			break
		}
		if row.User != nil && (row.ID == pinned || !answersCalls(row.User.Content)) {
			newest = append(newest, pending...)
			pending, whole = nil, true
			w.start = row.ID
		}
		if row.ID == pinned {
			break
		}
	}
	if !whole {
		return window{}, promptTooLarge(used, budget)
	}
	w.prompt = Prompt{Options: options, Messages: reversed(newest)}
	return w, nil
}

// messageOf is a row as a part of the history, and whether it is one. A block of a reply that says nothing is left out;
// which of the others a provider can read is for its adapter.
func messageOf(row PathRow) (Message, bool) {
	if row.User != nil {
		return Message{Role: RoleUser, Content: row.User.Content}, true
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

package turns

import (
	"slices"
	"strings"
	"unicode"
)

// step is a row of a path as a window takes it.
type step struct {
	row     PathRow
	message Message
	// counts says that the message goes into a prompt.
	counts bool
	// tokens is what it takes of the window; of a row that does not count nothing.
	tokens int64
}

// toSteps are the steps of a path, newest first, with what their content is estimated to take.
func toSteps(path []PathRow) []step {
	steps := make([]step, len(path))
	for i, row := range path {
		s := step{row: row}
		if s.message, s.counts = messageOf(row); s.counts {
			s.tokens = EstimateContent(s.message.Content)
		}
		steps[i] = s
	}
	return steps
}

// begins reports whether a window may start at the step. What goes before it is left out, so it must be a user turn that
// says something by itself: a tool result is nothing without its call. The root may begin whatever it holds, since nothing
// was left out before it.
func (s step) begins() bool {
	return s.row.User != nil && s.counts && opens(s.message.Content) &&
		(s.row.Parent.IsZero() || !answersCalls(s.message.Content))
}

// opens reports whether content is left after blank text and NUL are taken away: a prompt must not begin with a message of
// which nothing is sent.
func opens(content []Block) bool {
	return slices.ContainsFunc(content, func(b Block) bool {
		text, is := b.(Text)
		return !is || strings.TrimFunc(text.Text, func(r rune) bool { return unicode.IsSpace(r) || r == 0 }) != ""
	})
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/turnd/turnd/bench/history/arrays"
	"github.com/turnd/turnd/turns"
)

// Problems besides the kinds of violations.
const (
	problemStorage  = "not_stored"
	problemPanic    = "panic"
	problemUntyped  = "untyped_error"
	problemRefused  = "refused_without_reason"
	problemRebuilt  = "rebuilt_differently"
	problemStored   = "stored_differently"
	problemStart    = "starts_at_no_user_turn"
	problemPin      = "pin_not_kept"
	problemLost     = "words_lost"
	problemTwice    = "words_twice"
	problemOrder    = "words_out_of_order"
	problemFailed   = "words_of_a_failed_reply"
	problemOutside  = "words_outside_the_window"
	problemSystem   = "system_lost"
	problemResult   = "result_lost"
	problemForeign  = "foreign_reasoning_sent"
	problemThoughts = "own_reasoning_lost"
	problemHealed   = "healing_not_said"
	problemUnhealed = "healing_of_nothing"
)

// finding is what is wrong with one build.
type finding struct {
	// kind is a violation's or one of the problems above.
	kind string
	// at says where, without anybody's words.
	at string
}

// outcome is what came of one build.
type outcome struct {
	findings []finding
	// code is the typed error, empty if a request came of it.
	code   turns.Code
	start  turns.RowID
	healed turns.Healed
}

func (o *outcome) find(kind, format string, args ...any) {
	o.findings = append(o.findings, finding{kind, fmt.Sprintf(format, args...)})
}

// kinds are those of the findings, sorted, each once.
func (o *outcome) kinds() []string {
	kinds := make([]string, 0, len(o.findings))
	for _, f := range o.findings {
		kinds = append(kinds, f.kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// check builds the request of a history three times, the second time again and the third from what was stored, and judges
// it.
func (s subject) check(h, stored *history, w window) (o outcome) {
	built, err := s.build(h, w)
	again, errAgain := s.build(h, w)
	kept, errKept := s.build(stored, w)
	if !sameBuild(built, again, err, errAgain) {
		o.find(problemRebuilt, "")
	}
	if !sameBuild(built, kept, err, errKept) {
		o.find(problemStored, "")
	}
	if err != nil {
		s.judgeError(&o, h, w, err)
		return o
	}
	o.start, o.healed = built.Start, built.Request.Healed
	for _, v := range arrays.Validate(s.wire, built.Request.Body) {
		o.find(string(v.Kind), "%s", v.At)
	}
	newReading(s, h, built, w).judge(&o)
	return o
}

func sameBuild(a, b turns.Built, errA, errB error) bool {
	if errA != nil || errB != nil {
		return errA != nil && errB != nil && errA.Error() == errB.Error()
	}
	return bytes.Equal(a.Request.Body, b.Request.Body) && a.Request.Hash == b.Request.Hash && a.Start == b.Start
}

// judgeError accepts typed errors that the history gives a reason for, and no other.
func (s subject) judgeError(o *outcome, h *history, w window, err error) {
	var typed *turns.Error
	switch {
	case strings.HasPrefix(err.Error(), "panic: "):
		o.find(problemPanic, "%v", err)
		return
	case !errors.As(err, &typed):
		o.find(problemUntyped, "%v", err)
		return
	}
	o.code = typed.Code
	reason := false
	switch typed.Code {
	case turns.CodePromptTooLarge:
		reason = w.tokens > 0 || h.endsInResults() || w.pinned == h.turn.ID.Row()
	case turns.CodeContentEmpty:
		reason = !speaks(h.turn.Content)
	case turns.CodeInvalidField:
		reason = h.refusals(s.wire, s.route.Limits.MaxOutputTokens)[typed.Field] || h.media() && strings.HasPrefix(typed.Field, "input.content[")
	}
	if !reason {
		o.find(problemRefused, "%s %s", typed.Code, typed.Field)
	}
}

// endsInResults reports whether the turn can't be understood without a reply before it, and no turn that could begin a
// window is there.
func (h *history) endsInResults() bool {
	if !hasResults(h.turn.Content) {
		return false
	}
	for _, row := range h.rows {
		if row.User != nil && !hasResults(row.User.Content) {
			return false
		}
	}
	return true
}

func hasResults(content []turns.Block) bool {
	return slices.ContainsFunc(content, func(b turns.Block) bool { _, is := b.(turns.ToolResult); return is })
}

// speaks reports whether content has words or pictures.
func speaks(content []turns.Block) bool {
	for _, b := range content {
		switch b := b.(type) {
		case turns.Text:
			if strings.TrimSpace(b.Text) != "" {
				return true
			}
		case turns.Image, turns.Document:
			return true
		}
	}
	return false
}

// media reports whether the turn has an image or a document, which an endpoint may not take.
func (h *history) media() bool { return hasMedia(h.turn.Content) }

func hasMedia(content []turns.Block) bool {
	for _, b := range content {
		switch b := b.(type) {
		case turns.Image, turns.Document:
			return true
		case turns.ToolResult:
			if hasMedia(b.Content) {
				return true
			}
		}
	}
	return false
}

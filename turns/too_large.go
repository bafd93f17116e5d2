package turns

import (
	"fmt"
	"slices"
)

// A prompt is refused only if what can't be left out of it is more than the window holds: the system text and the tools, the
// turn itself, and above one that answers calls those calls with all that led to them. Each refusal says which of them it is,
// since what helps against one does nothing about another.

// ownTooLarge says that a prompt would be more than the window holds without any history.
func (q Question) ownTooLarge(own, budget int64) error {
	options := q.Options.overhead()
	if options > budget {
		return promptTooLarge(q.Options.largest(), options, budget,
			"the system text and the tools are about %d tokens and the model's window is %d; send less of them")
	}
	way := "send less"
	if answersCalls(q.Turn.Content) {
		way = "send shorter or empty results"
	}
	if options > 0 {
		way += fmt.Sprintf(", or less than the %d tokens of system text and tools", options)
	}
	return promptTooLarge("input.content", own, budget, "makes a prompt of about %d tokens without any history, and the model's window is %d; "+way)
}

// largest is the field that takes most of what options take.
func (o Options) largest() string {
	if tools := (Options{Tools: o.Tools}); tools.overhead() > EstimateTokens(len(o.System)) {
		return turnField + "tools"
	}
	return turnField + "system"
}

// loopTooLarge says that the calls which a turn answers, with all that they belong to, are more than the window holds.
func (q Question) loopTooLarge(m measure, budget int64) error {
	n := slices.IndexFunc(m.steps, step.begins) + 1
	if n == 0 {
		n = len(m.steps)
	}
	total := m.total(n, sum(m.steps[:n]))
	if total <= budget {
		return &Error{Code: CodePromptTooLarge, Field: "input.content",
			Problem: fmt.Sprintf("answers calls that began more than %d rows ago; go on with a message that answers none", len(m.steps)),
			Meta:    map[string]string{"rows": fmt.Sprint(len(m.steps))}}
	}
	way := "; send a plain message in place of the results"
	if total-EstimateContent(q.Turn.Content) <= budget {
		way = "; send shorter or empty results, or a plain message in their place"
	}
	return promptTooLarge("input.content", total, budget,
		"answers calls that, with what led to them, make a prompt of about %d tokens, and the model's window is %d"+way)
}

// promptTooLarge is about a field; problem has a place for the tokens and one for the limit.
func promptTooLarge(field string, tokens, limit int64, problem string) error {
	return &Error{Code: CodePromptTooLarge, Field: field, Problem: fmt.Sprintf(problem, tokens, limit),
		Meta: map[string]string{"tokens": fmt.Sprint(tokens), "limit": fmt.Sprint(limit)}}
}

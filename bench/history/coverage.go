package main

import (
	"fmt"
	"strings"

	"github.com/turnd/turnd/turns"
)

// kinds are what a run must have made, besides each poison: a kind that is never made is not checked.
var kinds = []string{
	"call", "choice.any", "choice.none", "choice.tool", "clean", "first_turn", "log_in_pieces", "long_history", "max_tokens", "no_tools",
	"opaque", "parallel_calls", "pin", "pin_at_turn", "pin_out_of_reach", "refusal", "regenerated", "reply_superseded", "result_empty",
	"result_error", "results_alone", "results_in_any_order", "stop_sequences", "system", "system_blank", "temperature", "text_signed",
	"text_trailing_space", "thinking.anthropic.messages", "thinking.gemini.generate", "thinking.gemini.interactions", "thinking.openai.responses",
	"thinking_budget", "thinking_redacted", "thinking_silent", "tools", "words_before_results",
}

// outcomes are the codes that a run must have seen.
var outcomes = []turns.Code{turns.CodePromptTooLarge, turns.CodeInvalidField}

// missing says which kinds a run did not make. A short one by hand makes few.
func (r *run) missing() string {
	var missing []string
	for _, kind := range kinds {
		if r.sum.kinds[kind] == 0 {
			missing = append(missing, kind)
		}
	}
	for i := range poisons {
		if r.sum.kinds["poison."+poisons[i].name] == 0 {
			missing = append(missing, poisons[i].name)
		}
	}
	for _, code := range outcomes {
		if r.sum.codes[string(code)] == 0 {
			missing = append(missing, string(code))
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("seed=%d builds=%d made none of: %s", r.seed, r.sum.builds, strings.Join(missing, " "))
}

package turns

import (
	"errors"
	"strings"
)

// Generators refuse options by the fields of a turn, for that is where most of them come from. Those of the conversation's
// defaults, and those of a regenerate, are named by their own fields here: a turn that sets no temperature can't leave it
// unset.

const (
	turnField       = "input.options."
	regenerateField = "options."
)

// refusedOption is the path of the option that an error is about, below the options that hold it.
func refusedOption(err error) (e Error, option string, ok bool) {
	var refused *Error
	if !errors.As(err, &refused) {
		return Error{}, "", false
	}
	option, ok = strings.CutPrefix(refused.Field, turnField)
	return *refused, option, ok
}

// refused has an error about an option name the layer that set it.
func (a *arrival) refused(err error, made layers, again bool) error {
	e, option, ok := refusedOption(err)
	switch {
	case !ok:
		return err
	case a.regenerate != nil && a.regenerate.Options.sets(option):
		e.Field = regenerateField + option
	case a.Input.Options.sets(option) || !made.defaults.sets(option):
		return err
	case again:
		e.Field = defaultsField + "." + option
		e.Problem += "; the conversation's defaults set it when the turn was first tried, so send a new turn"
	default:
		e.Field = defaultsField + "." + option
		e.Problem += "; the conversation's defaults set it, so update those, or name another model with the turn"
	}
	return &e
}

// checkDefaults refuses defaults that are known to fail each turn that sets nothing itself: by a model that is not there, or
// by an option that their model does not take. Without a model they may be for any that turns name. A tool that must be
// called may be on offer with the turn.
func (s *Service) checkDefaults(o Options) error {
	if err := o.validateTools(defaultsField); err != nil || o.Model == "" {
		return err
	}
	routes, err := s.routes(o.Model)
	if err == nil {
		_, err = s.generator.Build(routes[0], Prompt{Options: o, Messages: []Message{{Role: RoleUser, Content: []Block{Text{Text: "hello"}}}}})
	}
	if e, option, ok := refusedOption(err); ok {
		e.Field = defaultsField + "." + option
		return &e
	}
	return nil // what else there is to refuse is not of the options
}

// sets reports whether the options set one, given by its path, so that Or would not fill it up.
func (o Options) sets(option string) bool {
	if i := strings.IndexAny(option, ".["); i >= 0 {
		option = option[:i]
	}
	switch option {
	case "model":
		return o.Model != ""
	case "system":
		return o.System != ""
	case "max_output_tokens":
		return o.MaxOutputTokens != 0
	case "temperature":
		return o.Temperature != nil
	case "stop_sequences":
		return len(o.StopSequences) > 0
	case "tools":
		return len(o.Tools) > 0
	case "tool_choice":
		return o.ToolChoice != nil
	case "thinking_budget_tokens":
		return o.ThinkingBudgetTokens != 0
	}
	return false
}

package wire

import (
	"fmt"

	"github.com/turnd/turnd/turns"
)

// maxTemperature is the most that any vendor takes.
const maxTemperature = 2

// CheckOptions refuses, by their fields, values that a vendor would refuse: a temperature that is none, and stop sequences
// that are empty or more than most.
func CheckOptions(o turns.Options, most int) error {
	if t := o.Temperature; t != nil && !(0 <= *t && *t <= maxTemperature) {
		return invalidOption("temperature", fmt.Sprintf("must be between 0 and %d", maxTemperature))
	}
	if len(o.StopSequences) > most {
		return invalidOption("stop_sequences", fmt.Sprintf("must be at most %d with models of this provider", most))
	}
	for i, s := range o.StopSequences {
		if s == "" {
			return invalidOption(fmt.Sprintf("stop_sequences[%d]", i), "is empty; leave it out")
		}
	}
	return nil
}

func invalidOption(field, problem string) error {
	return &turns.Error{Code: turns.CodeInvalidField, Field: "input.options." + field, Problem: problem}
}

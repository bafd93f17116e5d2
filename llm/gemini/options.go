package gemini

import (
	"fmt"
	"regexp"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// maxStops is how many stop sequences the vendor takes.
const maxStops = 5

// declaredName is what the vendor takes as the name of a tool: unlike others, none that begins with a digit or a hyphen.
var declaredName = regexp.MustCompile(`^[A-Za-z_]`)

// CheckOptions refuses, by their fields, what no model of the vendor takes, on any of its wires.
func CheckOptions(o turns.Options) error {
	for i, t := range o.Tools {
		if !declaredName.MatchString(t.Name) {
			return &turns.Error{Code: turns.CodeInvalidField, Field: fmt.Sprintf("input.options.tools[%d].name", i),
				Problem: "must begin with a letter or an underscore with models of this provider"}
		}
	}
	return wire.CheckOptions(o, maxStops)
}

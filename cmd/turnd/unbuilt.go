package main

import (
	"errors"
	"fmt"
)

// checkUnbuilt refuses settings that this build would have to ignore.
func (c Config) checkUnbuilt() error {
	var problems []error
	refuse := func(wrong bool, flag, why string) {
		if wrong {
			problems = append(problems, fmt.Errorf("%s: %s", flag, why))
		}
	}
	refuse(c.WebListen != off, "--web-listen", "a listener of its own for the web needs TLS, which is not built yet; leave it off")
	return errors.Join(append(problems, c.checkPolicies())...)
}

func (c Config) checkPolicies() error {
	var problems []error
	switch c.OnAmbiguous {
	case "abandon":
	case "retry", "hold":
		problems = append(problems, fmt.Errorf("--on-ambiguous: %q is not built yet; leave it at abandon", c.OnAmbiguous))
	default:
		problems = append(problems, oneOf("--on-ambiguous", c.OnAmbiguous, "abandon", "retry", "hold"))
	}
	switch c.OnPartial {
	case "discard":
	case "continue":
		problems = append(problems, errors.New(`--on-partial: "continue" is not built yet; leave it at discard`))
	default:
		problems = append(problems, oneOf("--on-partial", c.OnPartial, "discard", "continue"))
	}
	return errors.Join(problems...)
}

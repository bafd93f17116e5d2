package main

import (
	"errors"
	"fmt"
)

// Values of --bus.
const (
	busAuto     = "auto"
	busMemory   = "memory"
	busPoll     = "poll"
	busPostgres = "postgres"
	busNATS     = "nats"
)

// defaultQueue is --max-queue unset.
const defaultQueue = 1024

// checkUnbuilt refuses settings that this build would have to ignore.
func (c Config) checkUnbuilt() error {
	var problems []error
	refuse := func(wrong bool, flag, why string) {
		if wrong {
			problems = append(problems, fmt.Errorf("%s: %s", flag, why))
		}
	}
	refuse(c.WebListen != off, "--web-listen", "a listener of its own for the web needs TLS, which is not built yet; leave it off")
	refuse(c.NATSURL != "", "--nats-url", "the NATS bus is not built yet; leave it unset")
	refuse(c.MaxQueue > 0 && c.MaxQueue != defaultQueue, "--max-queue",
		"a queue is not built yet, turns past --max-in-flight are refused; leave it unset or 0")
	return errors.Join(append(problems, c.checkPolicies(), c.checkBus())...)
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

func (c Config) checkBus() error {
	switch c.Bus {
	case busAuto, busPoll:
		return nil
	case busMemory:
		if at, err := c.Database.place(); err == nil && at.engine == enginePostgres {
			return errors.New("--bus: memory can't reach the other workers of a Postgres database; use poll or auto")
		}
		return nil
	case busPostgres, busNATS:
		return fmt.Errorf("--bus: %q is not built yet; use auto or poll", c.Bus)
	}
	return oneOf("--bus", c.Bus, busAuto, busMemory, busPoll, busPostgres, busNATS)
}

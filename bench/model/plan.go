package main

import (
	"errors"
	"fmt"
	"strings"
)

// task is one search. What a mutation must break is the text of the assertion, or a part of it.
type task struct {
	name     string
	switches string
	breaks   string
	small    bool // a search that SHORT keeps
}

func (t task) mutation() bool { return strings.HasPrefix(t.name, "M_") }

// judge compares what a search came to with what it must come to.
func (t task) judge(o outcome) error {
	switch {
	case o.err != nil:
		return o.err
	case !t.mutation() && o.errors > 0:
		return fmt.Errorf("found a run that breaks %s", o.violated)
	case !t.mutation() && o.truncated != "":
		return errors.New("the search is not complete: " + o.truncated)
	case t.mutation() && o.errors == 0:
		return errors.New("the model without this rule was not caught")
	case t.mutation() && !strings.Contains(o.violated, t.breaks):
		return fmt.Errorf("caught by %q, which is not what the rule is for", o.violated)
	}
	return nil
}

// plan lists what is run.
func plan(short bool) []task {
	var tasks []task
	for _, t := range searches {
		if t.small || !short {
			tasks = append(tasks, t)
		}
	}
	for _, t := range mutations {
		t.switches = "-D" + t.name + " " + t.switches
		tasks = append(tasks, t)
	}
	return tasks
}

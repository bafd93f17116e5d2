package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

const (
	modelFile = "docs/model/reply.pml"
	// depthLimit is more steps than any run has; memoryLimit bounds one search, in megabytes. A search that meets one of
	// them is not complete, and fails.
	depthLimit  = "-m100000"
	memoryLimit = "-DMEMLIM=3000"
)

// outcome is what a search came to.
type outcome struct {
	states    int
	errors    int
	violated  string // the assertion that failed
	truncated string // why the search is not complete, if it is not for an error
	err       error  // the search could not be made
}

func (o outcome) String() string {
	switch {
	case o.err != nil:
		return o.err.Error()
	case o.errors > 0:
		return fmt.Sprintf("found: %s", o.violated)
	case o.truncated != "":
		return "not complete: " + o.truncated
	}
	return fmt.Sprintf("states=%d", o.states)
}

// run makes one search, in a folder of its own.
func run(ctx context.Context, t task) outcome {
	ctx, cancel := context.WithTimeout(ctx, oneLimit)
	defer cancel()
	root, err := os.Getwd()
	if err != nil {
		return outcome{err: err}
	}
	dir, err := os.MkdirTemp("", "model")
	if err != nil {
		return outcome{err: err}
	}
	defer func() { _ = os.RemoveAll(dir) }()
	steps := [][]string{
		append(append([]string{"spin"}, strings.Fields(t.switches)...), "-a", filepath.Join(root, modelFile)),
		t.compile(),
		{"./pan", depthLimit, t.table()},
	}
	var out string
	for _, step := range steps {
		if out, err = command(ctx, dir, step); err != nil {
			return outcome{err: fmt.Errorf("%s: %w", step[0], err)}
		}
	}
	return read(out)
}

// quick says that the search takes moments, so that the compiler's own time is what counts.
func (t task) quick() bool { return t.mutation() || t.small }

// table is the size of the table of states, as a power of two.
func (t task) table() string {
	if t.quick() {
		return "-w18"
	}
	return "-w24"
}

// compile is the compiler's call.
func (t task) compile() []string {
	optimise := "-O1"
	if t.quick() {
		optimise = "-O0"
	}
	return []string{"gcc", optimise, "-w", "-pipe", "-DSAFETY", "-DCOLLAPSE", "-DVECTORSZ=2048", memoryLimit, "-o", "pan", "pan.c"}
}

// command runs a program; what it said goes into the error.
func command(ctx context.Context, dir string, args []string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", errors.New("out of time")
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

var (
	statesLine   = regexp.MustCompile(`(?m)^\s*([0-9]+) states, stored`)
	errorsLine   = regexp.MustCompile(`errors: ([0-9]+)`)
	violatedLine = regexp.MustCompile(`(?m)^pan:[0-9]*:? *(.*) \(at depth [0-9]+\)`)
)

// read understands what a verifier printed.
func read(out string) outcome {
	o := outcome{states: number(statesLine, out), errors: number(errorsLine, out)}
	if m := violatedLine.FindStringSubmatch(out); m != nil {
		o.violated = strings.TrimPrefix(m[1], "assertion violated ")
	}
	switch {
	case !errorsLine.MatchString(out):
		o.truncated = "it printed no result"
	case strings.Contains(out, "max search depth too small"):
		o.truncated = "runs are longer than the depth limit"
	case strings.Contains(out, "out of memory"), strings.Contains(out, "memory limit"):
		o.truncated = "out of memory"
	case o.errors == 0 && strings.Contains(out, "Search not completed"):
		o.truncated = "the verifier says so"
	}
	return o
}

func number(line *regexp.Regexp, out string) int {
	m := line.FindStringSubmatch(out)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

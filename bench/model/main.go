// Command model runs the checked model of the reply protocol in docs/model: searches that must find nothing, and
// mutations, each of which takes one rule away, that must be caught, and for the reason that the rule is there for. A
// search counts only if it was complete.
//
// It needs spin and a C compiler. Where they are missing it says so; with CI set that is a failure. SHORT=1 leaves the
// large searches out. It runs in the repository's root and ends in one line of verdict.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// limit bounds everything, oneLimit a single search.
const (
	limit    = 30 * time.Minute
	oneLimit = 15 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	verdict, err := check(ctx, os.Getenv("SHORT") != "", os.Getenv("CI") != "")
	if err != nil {
		fmt.Println("FAIL model", err)
		os.Exit(1)
	}
	fmt.Println("PASS model", verdict)
}

func check(ctx context.Context, short, mustHaveSpin bool) (verdict string, err error) {
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil && mustHaveSpin {
			return "", fmt.Errorf("%s is missing: run make deps", tool)
		} else if err != nil {
			fmt.Printf("%s is not installed here, so nothing was checked\n", tool)
			return tool + "=absent runs=0", nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tasks := plan(short)
	results := runAll(ctx, tasks)
	return judge(tasks, results)
}

// runAll runs the tasks, as many at once as there are processors, and says how each went as it ends.
func runAll(ctx context.Context, tasks []task) []outcome {
	results := make([]outcome, len(tasks))
	places := make(chan struct{}, max(1, runtime.NumCPU()))
	var wg sync.WaitGroup
	for i, t := range tasks {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			results[i] = run(ctx, t)
			fmt.Println(t.name, t.switches, results[i])
		})
	}
	wg.Wait()
	return results
}

// judge sums up; the error names all that went wrong.
func judge(tasks []task, results []outcome) (verdict string, err error) {
	var searches, mutations, caught, states int
	var problems []error
	for i, t := range tasks {
		problem := t.judge(results[i])
		if problem != nil {
			problems = append(problems, fmt.Errorf("%s: %w", t.name, problem))
		}
		if !t.mutation() {
			searches, states = searches+1, states+results[i].states
			continue
		}
		mutations++
		if problem == nil {
			caught++
		}
	}
	if len(problems) > 0 {
		return "", oneLine(problems)
	}
	return fmt.Sprintf("runs=%d states=%d mutations=%d caught=%d", searches, states, mutations, caught), nil
}

func oneLine(problems []error) error {
	text := problems[0].Error()
	for _, p := range problems[1:] {
		text += "; " + p.Error()
	}
	return errors.New(text)
}

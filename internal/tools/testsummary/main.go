// Testsummary runs go test and ends in one line of figures that people and scripts can read.
//
//	testsummary NAME ARGS... [+ ARGS...]
//
// It runs go test with ARGS, once more with those after each "+", two at a time, and shows the closing line of each package, the
// output of what failed and the reason of each skip. The last line is "PASS NAME tests=.. packages=.. skipped=.. postgres=used|none seconds=.." or "FAIL NAME
// why", and the exit status agrees with it. With CI=true a run in which no test used Postgres, or in which a test was
// skipped, fails: there every test has what it needs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: testsummary NAME ARGS...")
		os.Exit(2)
	}
	os.Exit(sum(os.Args[1], os.Args[2:]))
}

// sum runs go test, prints the verdict and returns the exit status.
func sum(name string, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	started := time.Now()
	s := newSummary(os.Stdout)
	verdict, ok := s.verdict(runAll(ctx, s, args), os.Getenv("CI") == "true")
	if !ok {
		fmt.Printf("FAIL %s %s\n", name, verdict)
		return 1
	}
	fmt.Printf("PASS %s %s seconds=%.0f\n", name, verdict, time.Since(started).Seconds())
	return 0
}

// atOnce is how many go tests run beside each other. Each runs as many packages at a time as there are processors, but what
// takes long mostly waits, and at the end of a run it does so alone.
const atOnce = 2

// runAll starts the runs in their order.
func runAll(ctx context.Context, s *summary, args []string) error {
	var mu sync.Mutex
	var errs []error
	var all sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for more := true; more; {
		var group []string
		group, args, more = cut(args)
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			err := run(ctx, s, group)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// cut takes the arguments of the next run off.
func cut(args []string) (group, rest []string, more bool) {
	if at := slices.Index(args, "+"); at >= 0 {
		return args[:at], args[at+1:], true
	}
	return args, nil, false
}

// run feeds the events of one go test to the summary.
func run(ctx context.Context, s *summary, args []string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start go test: %w", err)
	}
	readErr := s.read(out)
	if readErr != nil {
		// Drained, so that go test does not block on a full pipe; what is in it can't be read anyway.
		_, _ = io.Copy(io.Discard, out)
	}
	return errors.Join(readErr, cmd.Wait())
}

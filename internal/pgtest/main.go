package pgtest

import (
	"fmt"
	"os"

	"go.uber.org/goleak"
)

// Main runs the tests of a package that uses Database or Migrated, stops the server, and ends the process. It is the
// whole body of TestMain. Like goleak.VerifyTestMain it fails a run that leaves goroutines behind, but looks only after
// the server and its goroutine are gone.
func Main(m interface{ Run() int }, opts ...goleak.Option) {
	os.Exit(run(m, opts...))
}

// run does the work of Main and returns the exit status.
func run(m interface{ Run() int }, opts ...goleak.Option) (status int) {
	shared.running = true
	defer func() {
		// Deferred, so that a panic of a test on this goroutine leaves no server either.
		shared.running = false
		if err := shared.close(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest: clean up:", err)
			status = max(status, 1)
		}
		if status == 0 {
			status = leaks(opts)
		}
	}()
	status = m.Run()
	if shared.version != "" {
		// Read by the summary of a test run, which has to know that Postgres was really used.
		fmt.Println("pgtest: used postgres", shared.version)
	}
	return status
}

func leaks(opts []goleak.Option) int {
	if err := goleak.Find(opts...); err != nil {
		fmt.Fprintln(os.Stderr, "goleak:", err)
		return 1
	}
	return 0
}

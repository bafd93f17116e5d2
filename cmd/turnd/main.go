// Turnd owns the turns of chat products: it stores a user's turn once, claims its one reply, calls the model, streams
// the reply to whoever listens and keeps the result.
//
//	turnd serve              run the service
//	turnd migrate up|status  bring a database to this build's schema, or see how it stands
//	turnd probe ENDPOINT     find out what an endpoint can do about lost answers
//	turnd chat               talk to a service from a terminal
//	turnd keys               create, list and revoke API keys
//	turnd subjects           suspend subjects, reinstate and list them
//	turnd held               see and decide about replies of unknown outcome
//	turnd export, import     copy conversations out of a database and into one
//	turnd purge              delete conversations that nobody has used for a time
//	turnd scripted-provider  run the stand-in for a model provider, for tests
//	turnd healthcheck        ask a service on this machine whether it is ready
//	turnd version            say which build this is
//
// A flag wins over its TURND_ variable, and that over the default. A variable that begins with TURND_ and is none of them
// is an error, since a mistyped one would otherwise be a setting that is silently not in force; TURND_TEST_ is left to
// tests.
//
// The exit status is 0 after a clean end, 1 after an error and 2 for bad flags or variables, each of which gets a line
// of its own. The first SIGINT or SIGTERM asks for an orderly end; the second ends the process at once with status 1. In
// turnd serve the second only cuts the grace short, and it is the third that ends the process. In turnd chat, SIGINT stops
// the reply that is running instead. SIGHUP has turnd serve read its models file and its TLS files again.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/turnd/turnd/turns/access"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stderr))
}

// Exit statuses.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// usageError is a mistake in flags or variables. It may join several, each on its own line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run runs one command and reports its error.
func run(ctx context.Context, args, environ []string, stderr io.Writer) int {
	cmd, err := parse(args, environ)
	if err == nil {
		err = cmd.Run(ctx)
	}
	if err == nil {
		return exitOK
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		fmt.Fprintln(stderr, "turnd: "+access.Conceal(line))
	}
	var usage usageError
	if !errors.As(err, &usage) {
		return exitError
	}
	fmt.Fprintf(stderr, "turnd: see turnd %s--help\n", cmd.prefix())
	return exitUsage
}

// haste is done once a signal came that asks an orderly end to be quick.
type haste struct{ context.Context }

// interruptible ends the context at the first signal and, where there is anything to hurry, haste at the second. The one
// after that ends the process. Whoever made it calls stop.
func interruptible(parent context.Context, hurries bool) (ctx context.Context, h haste, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	quick, hurry := context.WithCancel(context.WithoutCancel(parent))
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case s := <-signals:
				switch {
				case ctx.Err() == nil:
					cancel(fmt.Errorf("signal: %s", s))
				case hurries && quick.Err() == nil:
					fmt.Fprintln(os.Stderr, "turnd: second signal, the grace is over; a third ends the process at once")
					hurry()
				default:
					fmt.Fprintln(os.Stderr, "turnd: one more signal, ending at once")
					os.Exit(exitError)
				}
			}
		}
	}()
	return ctx, haste{quick}, func() {
		signal.Stop(signals)
		close(done)
		<-ended
		hurry()
		cancel(nil)
	}
}

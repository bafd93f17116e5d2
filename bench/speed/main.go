// Command speed measures the built turnd from the outside, against floors that keep none of its promises and on the same
// machine at the same time.
//
// A throw-away Postgres that writes through to its disk, turnd, the scripted provider, the floors and the clients are
// processes of their own. What is compared is measured in rounds, one after the other within each round, and a ratio is taken
// within a round; the figure is the median over the rounds. So what a machine does meanwhile, and how fast it is, leave ratios
// nearly alone; a figure by itself says little.
//
// It prints as it goes, then lines "figure name=value", and exits 0, or ends in one line that says what was not reached.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/turnd/turnd/bench/speed/load"
)

// limit bounds a whole measurement.
const limit = time.Hour

// parts are what is asked for by name; load, hold and serve are run by the others, as processes.
var parts = map[string]func(context.Context, []string) error{
	"bench":          onStage(benchAll),
	"bench-peers":    onStage(benchPeers),
	"bench-growth":   onStage(growth),
	"bench-workers":  onStage(workers),
	"soak":           onStage(soak),
	"profile":        onStage(profile),
	"telemetry-cost": onStage(telemetryCost),
	"load":           loadProcess,
	"hold":           holdProcess,
	"serve":          serveProcess,
}

func main() {
	if len(os.Args) < 2 || parts[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: speed bench|bench-peers|bench-growth|bench-workers|soak|profile|telemetry-cost")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := parts[os.Args[1]](ctx, os.Args[2:])
	stop()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// loadProcess is a load by itself: a spec as JSON in, a result as JSON out.
func loadProcess(ctx context.Context, args []string) error {
	var spec load.Spec
	if len(args) != 1 {
		return fmt.Errorf("a load takes one spec, not %d", len(args))
	}
	if err := json.Unmarshal([]byte(args[0]), &spec); err != nil {
		return fmt.Errorf("spec of a load: %w", err)
	}
	result, err := load.Run(ctx, spec)
	if err != nil {
		result = load.Result{Error: err.Error()}
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// figure prints one figure of the verdict.
func figure(name string, value any) { fmt.Printf("figure %s=%v\n", name, value) }

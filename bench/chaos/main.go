// Command chaos lets everything go wrong at once and asks what of turnd's promises is left.
//
// It starts three workers of the built binary on one Postgres with a synchronous standby, a scripted provider, and clients
// that do what the contract says, with a proxy of its own on every connection; then it kills, stops, cuts, stalls, slows
// and fails over, all by one seed. Afterwards it compares what clients saw, what is stored and what the provider counted.
// It knows the service by its wire, its command line and its tables.
//
// The timeline of faults follows from the seed alone; how threads and processes meet in it does not, so a seed that failed
// fails often, and not always.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) != 2 || os.Args[1] != "run" && os.Args[1] != "selftest" {
		fmt.Fprintln(os.Stderr, "usage: chaos run|selftest")
		os.Exit(2)
	}
	do := run
	if os.Args[1] == "selftest" {
		do = selftest
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := do(ctx)
	stop()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// run plays the seeds that are asked for.
func run(ctx context.Context) error {
	seed, err := fromEnv("SEED", time.Now().UnixNano()%1_000_000)
	if err != nil {
		return err
	}
	seeds, err := fromEnv("SEEDS", 1)
	if err != nil {
		return err
	}
	bin, err := builtBinary()
	if err != nil {
		return err
	}
	if seeds > 1 {
		return manySeeds(ctx, seed, int(seeds), bin)
	}
	r, err := oneSeed(ctx, usualGame(seed, os.Getenv("SHORT") != ""), bin, true)
	if err != nil {
		return err
	}
	r.verdict()
	if why := r.failure(); why != "" {
		return errors.New(why)
	}
	return nil
}

// oneSeed plays a game in a folder of its own, which stays if a promise was broken and that is to be looked into.
func oneSeed(ctx context.Context, g game, bin string, keep bool) (*result, error) {
	dir, err := os.MkdirTemp("", "turnd-chaos-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // Postgres runs as a user of its own
		return nil, err
	}
	fmt.Printf("seed %d, work dir %s\n", g.seed, dir)
	r, err := play(ctx, g, dir, bin)
	if err != nil {
		return nil, fmt.Errorf("seed %d: %w (work dir %s)", g.seed, err, dir)
	}
	r.show()
	if len(r.broken) > 0 && keep {
		r.showBroken()
		fmt.Printf("work dir kept: %s\n", dir)
		return r, nil
	}
	return r, os.RemoveAll(dir)
}

func fromEnv(name string, usual int64) (int64, error) {
	text := os.Getenv(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// builtBinary is the service that was built beside this program.
func builtBinary() (string, error) {
	self, err := os.Executable()
	return filepath.Join(filepath.Dir(self), "turnd"), err
}

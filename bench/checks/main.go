// Command checks shows turnd's promises from the outside: it starts the built binary and a provider as processes of
// their own, plays a scene with real gRPC clients, and compares what clients saw, what is stored and what the provider
// counted. It uses nothing of the service but its wire, and the store of keys where callers need very many of them.
//
// Each check prints lines "figure name=value" and exits 0, or ends in one line that says what did not hold.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// limit bounds a whole check.
const limit = 15 * time.Minute

var checks = map[string]func(*lab) error{
	"once":       once,
	"twice":      twice,
	"killed":     killed,
	"broken":     broken,
	"stop":       stop,
	"again":      again,
	"late":       late,
	"lag":        lag,
	"failover":   failover,
	"providers":  providers,
	"takeover":   takeover,
	"ambiguous":  ambiguous,
	"storm":      storm,
	"tree":       tree,
	"limits":     limits,
	"long":       long,
	"tenants":    tenants,
	"explain":    explain,
	"retry-rate": retryRate,
}

func main() {
	if len(os.Args) != 2 || checks[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: checks once|twice|killed|broken|stop|again|late|lag|failover|providers|takeover|ambiguous|storm|tree|limits|long|tenants|explain|retry-rate")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := play(ctx, os.Args[1]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func play(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	l, err := newLab(ctx)
	if err != nil {
		return err
	}
	err = checks[name](l)
	l.close(err != nil)
	return err
}

// figure prints one figure of the verdict.
func figure(name string, value any) { fmt.Printf("figure %s=%v\n", name, value) }

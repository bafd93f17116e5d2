package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnd/turnd/bench/rig"
)

// tries is how many seeds a planted fault may take to show: how threads meet is not ours to say.
const tries = 3

// selftest shows that the check can fail: each fault is planted by an overlay, and the check must find a promise broken
// that the fault breaks.
func selftest(ctx context.Context) error {
	seed, err := fromEnv("SEED", 1)
	if err != nil {
		return err
	}
	only := os.Getenv("PLANT")
	dir, err := os.MkdirTemp("", "turnd-plants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	caught := 0
	for _, p := range plants {
		if only != "" && only != p.name {
			continue
		}
		bin, err := p.build(ctx, dir)
		if err != nil {
			return err
		}
		by, err := p.try(ctx, seed, bin)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		caught++
		fmt.Printf("figure %s=caught_by_%s\n", p.name, strings.Join(by, "_"))
	}
	fmt.Printf("figure caught=%d\n", caught)
	return nil
}

// build builds the service with the fault in it.
func (p plant) build(ctx context.Context, dir string) (string, error) {
	overlay, err := rig.Overlay(dir, p.name, p.edits...)
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "turnd-"+p.name)
	if out, err := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", bin, "./cmd/turnd").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: the build broke: %w: %s", p.name, err, out)
	}
	return bin, nil
}

// try plays until the fault has shown, and names the promises that gave it away.
func (p plant) try(ctx context.Context, seed int64, bin string) ([]string, error) {
	for i := range int64(tries) {
		r, err := oneSeed(ctx, p.game(seed+i), bin, false)
		if err != nil {
			return nil, err
		}
		var by []string
		for promise := range r.promises() {
			if slices.Contains(p.by, promise) {
				by = append(by, promise)
			}
		}
		slices.Sort(by)
		for _, b := range r.broken {
			if slices.Contains(by, b.promise) {
				fmt.Printf("%s is caught by %s: %s\n", p.name, b.promise, b.what)
				break
			}
		}
		if len(by) > 0 {
			return by, nil
		}
		fmt.Printf("%s did not show with seed %d\n", p.name, seed+i)
	}
	return nil, fmt.Errorf("no promise of %s was found broken with %d seeds from %d", strings.Join(p.by, ", "), tries, seed)
}

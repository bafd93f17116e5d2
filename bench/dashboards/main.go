package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// limit bounds the whole run.
const limit = 10 * time.Minute

// deployed is where the committed files are, from the root of the repository.
const deployed = "deploy"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := play(ctx)
	stop()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func play(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, program := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is missing: run make deps, or install prometheus", program)
		}
	}
	tests, err := testRules(ctx)
	if err != nil {
		return err
	}
	queries, err := readQueries(filepath.Join(deployed, "grafana"))
	if err != nil {
		return err
	}
	if err := expectedOf(queries); err != nil {
		return err
	}
	h, err := newHouse(ctx)
	if err != nil {
		return err
	}
	defer func() { h.close(err != nil) }()
	w := &watch{house: h, queries: queries, fired: map[string]bool{}}
	if err := w.play(); err != nil {
		return err
	}
	panels := map[string]bool{}
	for _, q := range queries {
		panels[q.panel] = true
	}
	fmt.Printf("figure panels=%d\nfigure queries=%d\nfigure changed=%d\nfigure alerts=%d\nfigure rules_tests=%d\nfigure fired=%d\n",
		len(panels), len(queries), w.changed, h.alerts, tests, len(w.fired))
	return nil
}

var testName = regexp.MustCompile(`(?m)^  - name: `)

// testRules runs promtool over what is shipped, and counts the unit tests.
func testRules(ctx context.Context) (n int, err error) {
	dir := filepath.Join(deployed, "prometheus")
	files, err := filepath.Glob(filepath.Join(dir, "tests", "*.yml"))
	if err != nil {
		return 0, err
	}
	for _, args := range [][]string{{"check", "config", filepath.Join(dir, "prometheus.yml")}, append([]string{"test", "rules"}, files...)} {
		out, err := exec.CommandContext(ctx, "promtool", args...).CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if line = strings.TrimSpace(line); line != "" {
				fmt.Println("promtool:", line)
			}
		}
		if err != nil {
			return 0, fmt.Errorf("promtool %s: %w", strings.Join(args[:2], " "), err)
		}
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		n += len(testName.FindAllString(string(raw), -1))
	}
	if n == 0 {
		return 0, errors.New("there are no tests of rules")
	}
	return n, nil
}

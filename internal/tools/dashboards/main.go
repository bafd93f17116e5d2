package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// boards are all dashboards.
func boards() []board { return []board{turns(), retryTokens(), workers()} }

func main() {
	if len(os.Args) != 3 || os.Args[1] != "write" && os.Args[1] != "check" {
		fmt.Fprintln(os.Stderr, "usage: dashboards write|check DIR, which is the folder deploy")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// run writes or checks what is in a folder deploy.
func run(what, deploy string) error {
	v := newVocabulary()
	rules, err := readRules(filepath.Join(deploy, "prometheus", "rules"))
	if err != nil {
		return err
	}
	if err := v.checkRules(rules); err != nil {
		return err
	}
	panels, queries := 0, 0
	for _, b := range boards() {
		if err := v.checkBoard(b); err != nil {
			return fmt.Errorf("%s: %w", b.uid, err)
		}
		raw, err := b.encode()
		if err != nil {
			return fmt.Errorf("%s: %w", b.uid, err)
		}
		file := filepath.Join(deploy, "grafana", b.uid+".json")
		if what == "write" {
			if err := os.WriteFile(file, raw, 0o644); err != nil { //nolint:gosec // for everybody to read
				return err
			}
		}
		if committed, err := os.ReadFile(file); err != nil || !bytes.Equal(committed, raw) {
			return errors.Join(fmt.Errorf("%s is not current: run .ci/grafana write", file), err)
		}
		for _, r := range b.rows {
			panels += len(r.panels)
			for _, p := range r.panels {
				queries += len(p.queries)
			}
		}
	}
	if files, err := filepath.Glob(filepath.Join(deploy, "grafana", "*")); err != nil || len(files) != len(boards()) {
		return errors.Join(fmt.Errorf("%d files are in %s/grafana, of %d dashboards", len(files), deploy, len(boards())), err)
	}
	fmt.Printf("figure rules=%d\nfigure panels=%d\nfigure queries=%d\n", len(rules), panels, queries)
	return nil
}

var legend = regexp.MustCompile(`\{\{(\w+)\}\}`)

// checkBoard demands that each panel says what it shows, and that its queries and legends name what there is.
func (v vocabulary) checkBoard(b board) error {
	var errs []error
	titles := map[string]bool{}
	for _, r := range b.rows {
		for _, p := range r.panels {
			switch {
			case p.title == "" || p.about == "" || p.unit == "" || len(p.queries) == 0:
				errs = append(errs, fmt.Errorf("%q says too little of itself", p.title))
			case titles[p.title]:
				errs = append(errs, fmt.Errorf("two panels are called %q", p.title))
			}
			titles[p.title] = true
			for _, q := range p.queries {
				if err := v.checkQuery(q); err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", p.title, err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// variables are what Grafana puts into an expression.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$job", ".+")

func (v vocabulary) checkQuery(q query) error {
	if !strings.Contains(q.expr, `job=~"$job"`) {
		return errors.New("it does not ask for the chosen installations alone")
	}
	have, err := v.labelsOf(variables.Replace(q.expr))
	if err != nil {
		return err
	}
	for _, m := range legend.FindAllStringSubmatch(q.legend, -1) {
		if len(without(m[1:], have)) > 0 {
			return fmt.Errorf("its legend shows the label %s, which it does not have", m[1])
		}
	}
	return nil
}

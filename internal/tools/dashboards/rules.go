package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// rule is one of a file for Prometheus.
type rule struct {
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func (r rule) name() string { return r.Record + r.Alert }

type ruleFile struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	} `yaml:"groups"`
}

// readRules reads the rules of a folder, recording ones first.
func readRules(dir string) (rules []rule, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yml"))
	if err != nil {
		return nil, err
	}
	var alerts []rule
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var f ruleFile
		decoder := yaml.NewDecoder(strings.NewReader(string(raw)))
		decoder.KnownFields(true)
		if err := decoder.Decode(&f); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, g := range f.Groups {
			for _, r := range g.Rules {
				if r.Record != "" {
					rules = append(rules, r)
				} else {
					alerts = append(alerts, r)
				}
			}
		}
	}
	if rules = append(rules, alerts...); len(rules) == 0 {
		return nil, fmt.Errorf("there are no rules in %s", dir)
	}
	return rules, nil
}

// checkRules demands that rules name what there is; what a recording rule gives may be named by those behind it.
func (v vocabulary) checkRules(rules []rule) error {
	var errs []error
	for _, r := range rules {
		have, err := v.labelsOf(r.Expr)
		if err == nil {
			err = r.mentions(have)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.name(), err))
		}
		if r.Record != "" {
			v[r.Record] = series{labels: without(have, target)}
		}
	}
	return errors.Join(errs...)
}

var mentioned = regexp.MustCompile(`\$labels\.(\w+)`)

// mentions demands that the texts of an alert mention labels that it has.
func (r rule) mentions(have []string) error {
	for _, text := range r.Annotations {
		for _, m := range mentioned.FindAllStringSubmatch(text, -1) {
			if len(without(m[1:], have)) > 0 {
				return fmt.Errorf("its text mentions the label %s, which it does not have", m[1])
			}
		}
	}
	return nil
}

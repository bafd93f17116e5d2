package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// query is one expression of a committed dashboard, as Prometheus is asked.
type query struct {
	board, panel, expr string
	expectation        expectation
}

// window is what rates are taken over here, in place of what Grafana finds fit.
const window = "6s"

// standsIn is what replaces a value that is missing, and with it the sign that something is wrong.
var standsIn = regexp.MustCompile(`\bor\s+vector\s*\(|\bvector\s*\(|\babsent\w*\s*\(`)

// readQueries reads the queries of all panels.
func readQueries(dir string) (all []*query, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	variables := strings.NewReplacer("$__rate_interval", window, "$job", ".+")
	ranges := regexp.MustCompile(`\[\d+[mhd]\]`)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var board struct {
			Title  string
			Panels []struct {
				Type, Title string
				Targets     []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(raw, &board); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, p := range board.Panels {
			if p.Type != "row" && len(p.Targets) == 0 {
				return nil, fmt.Errorf("%s: %s asks nothing", file, p.Title)
			}
			for _, t := range p.Targets {
				if standsIn.MatchString(t.Expr) {
					return nil, fmt.Errorf("%s: %s has a value for what is missing: %s", file, p.Title, t.Expr)
				}
				expr := ranges.ReplaceAllString(variables.Replace(t.Expr), "["+long+"]")
				if strings.Contains(expr, "$") {
					return nil, fmt.Errorf("%s: %s has a variable that is not known here: %s", file, p.Title, expr)
				}
				all = append(all, &query{board: board.Title, panel: p.Title, expr: expr})
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there are no panels in %s", dir)
	}
	return all, nil
}

// long is what an hour and such come to here.
const long = "24s"

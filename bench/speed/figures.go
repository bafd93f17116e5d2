package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/turnd/turnd/bench/speed/load"
)

// Figure is one that has a goal.
type Figure struct {
	Name string `json:"name"`
	// Value is compared with Goal; more is better unless AtMost.
	Value  float64 `json:"value"`
	Goal   float64 `json:"goal"`
	AtMost bool    `json:"at_most"`
	// Of says what Value is made of.
	Of string `json:"of"`
}

func (f Figure) reached() bool {
	if f.AtMost {
		return f.Value <= f.Goal
	}
	return f.Value >= f.Goal
}

// show prints the figure in one line.
func (f Figure) show() {
	sign, word := ">=", "reached"
	if f.AtMost {
		sign = "<="
	}
	if !f.reached() {
		word = "MISSED"
	}
	fmt.Printf("%-16s %8.3f  goal %s %-6.4g %-8s %s\n", f.Name, f.Value, sign, f.Goal, word, f.Of)
}

// Report is what a bench found, with all that is needed to judge it.
type Report struct {
	When     time.Time `json:"when"`
	Short    bool      `json:"short"`
	Machine  string    `json:"machine"`
	Cores    int       `json:"cores"`
	Go       string    `json:"go"`
	Postgres string    `json:"postgres"`
	Figures  []Figure  `json:"figures"`
	// Rounds has, by scene and entrant, each round's result.
	Rounds map[string]map[string][]load.Result `json:"rounds,omitempty"`
	// Notes is what else was found, by name.
	Notes map[string]any `json:"notes,omitempty"`
}

func (s *stage) newReport() *Report {
	return &Report{
		When: time.Now().UTC().Truncate(time.Second), Short: s.short, Machine: machine(), Cores: runtime.NumCPU(), Go: runtime.Version(),
		Postgres: s.pg.settings, Rounds: map[string]map[string][]load.Result{}, Notes: map[string]any{},
	}
}

// machine is the processor's name.
func machine() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.Trim(name, " \t:\n")
		}
	}
	return runtime.GOARCH
}

// note keeps something that is no figure.
func (r *Report) note(name string, value any) { r.Notes[name] = value }

func (r *Report) add(f Figure) { r.Figures = append(r.Figures, f) }

// close shows all figures, writes the report beside the programs, and says which goals were missed, and what is worse than it was
// recorded. A short report is no measurement and misses nothing.
func (r *Report) close(s *stage, name string) error {
	fmt.Printf("machine: %s, %d cores, %s\npostgres: %s\n", r.Machine, r.Cores, r.Go, r.Postgres)
	earlier, err := recorded(name)
	if err != nil {
		return err
	}
	var missed []string
	for _, f := range r.Figures {
		f.show()
		figure(f.Name, fmt.Sprintf("%.3f", f.Value))
		if !f.reached() {
			missed = append(missed, fmt.Sprintf("%s %.3f (goal %.4g)", f.Name, f.Value, f.Goal))
		}
		if from, known := earlier[f.Name]; known && f.fell(from) {
			fell := fmt.Sprintf("%s fell from the recorded %.3f to %.3f", f.Name, from.Value, f.Value)
			fmt.Println(fell)
			missed = append(missed, fell)
		}
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	file := filepath.Join(filepath.Dir(s.self), name+".json")
	if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil { //nolint:gosec // figures are no secret
		return err
	}
	fmt.Println("written to", file)
	if len(missed) > 0 && !s.short {
		return errors.New("missed: " + strings.Join(missed, ", "))
	}
	return nil
}

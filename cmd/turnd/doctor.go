package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

const (
	// doctorTime bounds one question of the doctor's.
	doctorTime = 5 * time.Second
	// doctorHeld is how many held replies are counted at most.
	doctorHeld = 10_000
)

// doctorCmd reads the configuration that serve reads, and looks at what it names.
type doctorCmd struct {
	Config   `embed:""`
	jsonFlag `embed:""`
}

// Levels of a finding. Only a failure is worth an exit status: with it turnd would not serve, or not as promised.
const (
	levelOK   = "ok"
	levelMind = "warn"
	levelFAIL = "FAIL"
)

// finding is one line of the doctor's. It holds no secret: what it names of the configuration is redacted.
type finding struct {
	Level string `json:"level"`
	Name  string `json:"name"`
	// What is how it stands, and Do what to do about it.
	What string `json:"what"`
	Do   string `json:"do,omitempty"`
}

// doctor collects findings.
type doctor struct {
	cfg      Config
	at       place
	findings []finding
}

func (d *doctor) ok(name, what string, args ...any) {
	d.findings = append(d.findings, finding{Level: levelOK, Name: name, What: fmt.Sprintf(what, args...)})
}

func (d *doctor) warn(name, do, what string, args ...any) {
	d.findings = append(d.findings, finding{levelMind, name, fmt.Sprintf(what, args...), do})
}

func (d *doctor) fail(name, do, what string, args ...any) {
	d.findings = append(d.findings, finding{levelFAIL, name, fmt.Sprintf(what, args...), do})
}

// Run implements the command.
func (c doctorCmd) Run(ctx context.Context) error { return c.run(ctx, os.Stdout) }

func (c doctorCmd) run(ctx context.Context, out io.Writer) error {
	at, err := c.Database.place()
	if err != nil {
		return usageError{err}
	}
	d := &doctor{cfg: c.Config, at: at}
	d.database(ctx)
	d.bus(ctx)
	d.endpoints(ctx)
	d.spool()
	if err := d.print(out, c.JSON); err != nil {
		return err
	}
	return d.verdict()
}

func (d *doctor) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(map[string]any{"findings": d.findings})
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range d.findings {
		line := f.Level + "\t" + f.Name + "\t" + f.What
		if f.Do != "" {
			line += "; " + f.Do
		}
		fmt.Fprintln(table, line)
	}
	return table.Flush()
}

// failed reports whether a check that was made already has failed.
func (d *doctor) failed(name string) bool {
	return slices.ContainsFunc(d.findings, func(f finding) bool { return f.Name == name && f.Level == levelFAIL })
}

func (d *doctor) verdict() error {
	failed := 0
	for _, f := range d.findings {
		if f.Level == levelFAIL {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("doctor: %d of %d checks FAIL", failed, len(d.findings))
	}
	return nil
}

// inTime asks one question in bounded time.
func inTime[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, doctorTime, errors.New("no answer within "+doctorTime.String()))
	defer cancel()
	return ask(ctx)
}

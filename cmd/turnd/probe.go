package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/probe"
)

// probeCmd spends tokens, so that it says first how many, and asks.
type probeCmd struct {
	Endpoint string `arg:"" help:"Endpoint of the models file."`
	Models   string `required:"" env:"TURND_MODELS" placeholder:"FILE" help:"Models file that names it."`
	Model    string `placeholder:"NAME" help:"Model to ask, by the provider's name; without it, the first that a route asks there."`
	Yes      bool   `short:"y" help:"Spend the tokens without asking."`
}

// probeEnds are what a probe reads from and writes to.
type probeEnds struct {
	in       io.Reader
	terminal bool // somebody can answer on in
	out      io.Writer
	status   io.Writer
}

// Run implements the command. It fails if something that the file claims was seen not to hold.
func (c *probeCmd) Run(ctx context.Context) error {
	info, err := os.Stdin.Stat()
	return c.run(ctx, probeEnds{in: os.Stdin, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0, out: os.Stdout, status: os.Stderr})
}

func (c *probeCmd) run(ctx context.Context, ends probeEnds) error {
	config, err := c.config()
	if err != nil {
		return err
	}
	c.announce(ends.status, config)
	if err := c.consent(ends); err != nil {
		return err
	}
	report, err := probe.Run(ctx, config)
	if err != nil {
		return fmt.Errorf("probe %s after %d calls: %w", c.Endpoint, report.Calls, err)
	}
	if err := printReport(ends.out, report); err != nil {
		return err
	}
	if refuted := report.Refuted(); len(refuted) > 0 {
		return fmt.Errorf("claimed for %s, and seen not to hold: %s", c.Endpoint, strings.Join(refuted, ", "))
	}
	return nil
}

// config finds the endpoint and what to ask there.
func (c *probeCmd) config() (probe.Config, error) {
	models, err := llm.Load(c.Models)
	if err != nil {
		return probe.Config{}, err
	}
	i := slices.IndexFunc(models.Endpoints, func(e llm.Endpoint) bool { return e.Name == c.Endpoint })
	if i < 0 {
		return probe.Config{}, usageError{fmt.Errorf("models file %s has no endpoint of that name", c.Models)}
	}
	p := probe.Config{
		Endpoint: models.Endpoints[i], Model: c.Model,
		Options: llm.Options{Adapters: adapters(), Logger: slog.New(slog.DiscardHandler)},
	}
	if p.Model == "" {
		p.Model = modelAt(models, c.Endpoint)
	}
	if p.Model == "" {
		return probe.Config{}, usageError{errors.New("--model: no route asks this endpoint; say which model to ask")}
	}
	return p, nil
}

// modelAt is the first model that a route asks at an endpoint.
func modelAt(c llm.Config, endpoint string) string {
	for _, m := range c.Models {
		for _, t := range m.Route {
			if t.Endpoint == endpoint {
				return t.Model
			}
		}
	}
	return ""
}

// announce says what will be spent at most.
func (c *probeCmd) announce(w io.Writer, config probe.Config) {
	plan := config.Plan()
	fmt.Fprintf(w, "probing %s (%s, model %s): at most %d calls of %d tokens in and %d out each",
		c.Endpoint, config.Endpoint.Wire, config.Model, plan.Calls, plan.InputTokens, plan.OutputTokens)
	if plan.Priced {
		fmt.Fprintf(w, ", about %.4f by the prices of the models file\n", plan.Cost)
	} else {
		fmt.Fprint(w, "; the models file has no prices for it\n")
	}
}

// consent asks whether to go on.
func (c *probeCmd) consent(ends probeEnds) error {
	if c.Yes {
		return nil
	}
	nobody := usageError{errors.New("--yes: nobody is there to be asked; give it to spend the tokens")}
	if !ends.terminal {
		return nobody
	}
	fmt.Fprint(ends.status, "go on? [y/N] ")
	line, err := bufio.NewReader(io.LimitReader(ends.in, 80)).ReadString('\n')
	switch {
	case errors.Is(err, io.EOF) && line == "": // such as /dev/null, which passes for a terminal
		return nobody
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errors.New("nothing was sent")
	}
	return nil
}

// printReport writes the table and what to paste.
func printReport(w io.Writer, r probe.Report) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CAPABILITY\tCLAIMED\tSEEN\tEVIDENCE")
	for _, f := range r.Findings {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.Capability, f.Claimed, f.Seen, f.Evidence)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print what was found: %w", err)
	}
	_, err := fmt.Fprintf(w, "\n%d calls; %d tokens in and %d out were reported\n\nTo paste into the models file:\n\n%s",
		r.Calls, r.InputTokens, r.OutputTokens, r.YAML())
	if err != nil {
		return fmt.Errorf("print what was found: %w", err)
	}
	return nil
}

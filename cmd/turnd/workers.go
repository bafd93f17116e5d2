package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

type workersCmd struct {
	operatorFlags `embed:""`
	jsonFlag      `embed:""`
}

// Validate checks what flags alone can tell.
func (c workersCmd) Validate() error { return usageOf(c.check()) }

// Run implements the command.
func (c workersCmd) Run(ctx context.Context) error { return c.run(ctx, os.Stdout) }

func (c workersCmd) run(ctx context.Context, out io.Writer) error {
	return c.ask(ctx, func(ctx context.Context, operator turnsv1.OperatorServiceClient) error {
		got, err := operator.ListWorkers(ctx, &turnsv1.ListWorkersRequest{})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(out, got)
		}
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "WORKER\tNAME\tSTATE\tLEASE\tIN FLIGHT\tUPTIME")
		for _, w := range got.GetWorkers() {
			left := time.Until(w.GetLeaseExpireTime().AsTime())
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\n", w.GetWorkerId(), orDash(w.GetName()), workerState(w, left),
				left.Round(time.Second), w.GetInFlight(), w.GetUptime().AsDuration().Round(time.Second))
		}
		return table.Flush()
	})
}

// workerState is what a worker's lease says of it, by the clock here.
func workerState(w *turnsv1.Worker, left time.Duration) string {
	switch {
	case left <= 0:
		return "gone"
	case w.GetDraining():
		return "draining"
	}
	return "alive"
}

// orDash keeps a column of a table that is empty in sight.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

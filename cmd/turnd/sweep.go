package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

type sweepCmd struct {
	operatorFlags `embed:""`
	jsonFlag      `embed:""`
}

// Validate checks what flags alone can tell.
func (c sweepCmd) Validate() error { return usageOf(c.check()) }

// Run implements the command.
func (c sweepCmd) Run(ctx context.Context) error { return c.run(ctx, os.Stdout) }

func (c sweepCmd) run(ctx context.Context, out io.Writer) error {
	return c.ask(ctx, func(ctx context.Context, operator turnsv1.OperatorServiceClient) error {
		got, err := operator.Sweep(ctx, &turnsv1.SweepRequest{})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(out, got)
		}
		return printSwept(out, got)
	})
}

func printSwept(out io.Writer, got *turnsv1.SweepResponse) error {
	if len(got.GetResults()) == 0 {
		_, err := fmt.Fprintln(out, "nothing is stale: each reply in flight has a worker whose lease holds")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CONVERSATION\tTURN\tREPLY\tEPOCH\tRESULT")
	for _, r := range got.GetReplies() {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", r.GetConversationId(), r.GetTurnId(), r.GetReplyId(), r.GetEpoch(), r.GetResult())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var sums []string
	for _, result := range slices.Sorted(maps.Keys(got.GetResults())) {
		sums = append(sums, fmt.Sprintf("%d %s", got.GetResults()[result], result))
	}
	words := "of all tenants: " + strings.Join(sums, ", ")
	if got.GetMore() {
		words += "; there may be more, so run it again"
	}
	_, err := fmt.Fprintln(out, words)
	return err
}

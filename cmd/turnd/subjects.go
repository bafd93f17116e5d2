package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/turnd/turnd/turns/access"
)

// subjectsCmd is for who stops somebody from spending.
type subjectsCmd struct {
	Suspend   subjectsSuspendCmd   `cmd:"" help:"Refuse everything new of a subject. What runs goes on, and replays are still answered."`
	Reinstate subjectsReinstateCmd `cmd:"" help:"Let a suspended subject go on."`
	List      subjectsListCmd      `cmd:"" help:"List suspended subjects."`
}

// subjectFlags name one subject.
type subjectFlags struct {
	Database `embed:""`
	Tenant   string `required:"" placeholder:"NAME" help:"Tenant of the subject."`
	Subject  string `required:"" placeholder:"NAME" help:"The subject."`
}

// Validate checks what flags alone can tell.
func (f subjectFlags) Validate() error {
	return usageOf(errors.Join(flagged("--tenant", access.CheckIdentity(f.Tenant)), flagged("--subject", access.CheckIdentity(f.Subject))))
}

type subjectsSuspendCmd struct {
	subjectFlags `embed:""`
}

// Run implements the command.
func (c subjectsSuspendCmd) Run(ctx context.Context) error { return c.run(ctx, os.Stdout) }

func (c subjectsSuspendCmd) run(ctx context.Context, out io.Writer) error {
	return withAccess(ctx, c.Database, func(s access.Store) error {
		if err := s.Suspend(ctx, c.Tenant, c.Subject); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "%s in tenant %s is suspended\n", c.Subject, c.Tenant)
		return err
	})
}

type subjectsReinstateCmd struct {
	subjectFlags `embed:""`
}

// Run implements the command.
func (c subjectsReinstateCmd) Run(ctx context.Context) error { return c.run(ctx, os.Stdout) }

func (c subjectsReinstateCmd) run(ctx context.Context, out io.Writer) error {
	return withAccess(ctx, c.Database, func(s access.Store) error {
		was, err := s.Reinstate(ctx, c.Tenant, c.Subject)
		if err != nil {
			return err
		}
		words := "is reinstated"
		if !was {
			words = "was not suspended"
		}
		_, err = fmt.Fprintf(out, "%s in tenant %s %s\n", c.Subject, c.Tenant, words)
		return err
	})
}

type subjectsListCmd struct {
	Database `embed:""`
}

// Run implements the command.
func (c subjectsListCmd) Run(ctx context.Context) error { return c.run(ctx, os.Stdout) }

func (c subjectsListCmd) run(ctx context.Context, out io.Writer) error {
	return withAccess(ctx, c.Database, func(s access.Store) error {
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "TENANT\tSUBJECT\tSUSPENDED")
		after := access.Suspension{}
		for {
			page, err := s.ListSuspended(ctx, after, accessPage)
			if err != nil {
				return err
			}
			for _, one := range page {
				fmt.Fprintf(table, "%s\t%s\t%s\n", shown(one.Tenant), shown(one.Subject), one.CreateTime.Format(time.RFC3339))
				after = one
			}
			if err := table.Flush(); err != nil || len(page) < accessPage {
				return err
			}
		}
	})
}

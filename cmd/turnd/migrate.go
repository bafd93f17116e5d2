package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/turnd/turnd/migrations"
)

// Values of --migrate.
const (
	migrateOn     = "on"
	migrateOff    = "off"
	migrateSQLite = "sqlite"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Apply the migrations that are missing."`
	Status migrateStatusCmd `cmd:"" help:"List the migrations of this build and which are applied."`
}

type migrateUpCmd struct {
	Database `embed:""`
}

type migrateStatusCmd struct {
	Database `embed:""`
}

// Run implements the command.
func (c migrateUpCmd) Run(ctx context.Context) error {
	at, err := c.place()
	if err != nil {
		return usageError{err}
	}
	up := func(set *migrations.Set) error { return migrateUp(ctx, os.Stdout, set) }
	if at.engine == enginePostgres {
		return withPostgres(at, up)
	}
	return alone(ctx, at, up)
}

// Run implements the command.
func (c migrateStatusCmd) Run(ctx context.Context) error {
	at, err := c.place()
	if err != nil {
		return usageError{err}
	}
	status := func(set *migrations.Set) error { return printStatus(ctx, os.Stdout, set) }
	if at.engine == enginePostgres {
		return withPostgres(at, status)
	}
	return withSQLite(at, status)
}

func migrateUp(ctx context.Context, w io.Writer, set *migrations.Set) error {
	applied, err := set.Up(ctx)
	if err != nil {
		return err
	}
	if err := printStatus(ctx, w, set); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "applied %d\n", applied)
	return err
}

func printStatus(ctx context.Context, w io.Writer, set *migrations.Set) error {
	list, err := set.Status(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "VERSION\tNAME\tAPPLIED")
	for _, m := range list {
		applied := "no"
		if m.Applied {
			applied = m.AppliedAt.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%d\t%s\t%s\n", m.Version, m.Name, applied)
	}
	return table.Flush()
}

// migrateAtStart brings the schema up if it may, and refuses one that this build can't serve.
func migrateAtStart(ctx context.Context, set *migrations.Set, engine, when string) error {
	if when == migrateOn || when == migrateSQLite && engine == engineSQLite {
		if _, err := set.Up(ctx); err != nil {
			return err
		}
	}
	return set.Check(ctx)
}

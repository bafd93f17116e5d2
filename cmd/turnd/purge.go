package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/turnd/turnd/migrations"
	"github.com/turnd/turnd/turns"
)

// leastUnused bounds --unused-for: what people talk in today must not go by a mistyped unit.
const leastUnused = time.Hour

// purgeCmd deletes conversations that nobody has used for long.
type purgeCmd struct {
	Database  `embed:""`
	UnusedFor time.Duration     `required:"" placeholder:"TIME" help:"Delete what was last used longer ago, as in 2160h for 90 days."`
	Tenant    string            `placeholder:"NAME" help:"Only conversations of this tenant."`
	Label     map[string]string `mapsep:"none" placeholder:"KEY=VALUE" help:"Only conversations with this label; may be given again, and all must match."`
	DryRun    bool              `help:"Say how many would go, and delete nothing."`
}

// Validate checks what flags alone can tell.
func (c purgeCmd) Validate() error {
	if c.UnusedFor == 0 {
		return usageError{fmt.Errorf("--unused-for is missing: say how long nobody must have used a conversation, at least %s", leastUnused)}
	}
	if c.UnusedFor < leastUnused {
		return usageError{fmt.Errorf("--unused-for: %s is too little, the least is %s", c.UnusedFor, leastUnused)}
	}
	return nil
}

// Run implements the command.
func (c purgeCmd) Run(ctx context.Context) error { return c.run(ctx, os.Stdout) }

func (c purgeCmd) run(ctx context.Context, out io.Writer) (err error) {
	at, err := c.place()
	if err != nil {
		return usageError{err}
	}
	store, closing, err := openRetention(ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing()) }()
	p, err := turns.Purge(ctx, store, turns.PurgeSelection{UnusedFor: c.UnusedFor, Tenant: turns.Tenant(c.Tenant), Labels: c.Label, Dry: c.DryRun})
	verb := "deleted"
	if c.DryRun {
		verb = "would delete"
	}
	fmt.Fprintf(out, "looked at %d conversations, %s %d, kept %d in which something runs, is held or waits\n", p.Looked, verb, p.Deleted, p.Kept)
	return err
}

// openRetention opens a database of this build's schema, and says how to close it. A SQLite file must exist, and not be
// served meanwhile.
func openRetention(ctx context.Context, at place) (turns.Retention, func() error, error) {
	if at.engine == engineSQLite {
		if _, err := os.Stat(at.file); err != nil {
			return nil, nil, fmt.Errorf("no database to purge: %w", err)
		}
		s, err := lockSQLite(ctx, at, func(set *migrations.Set) error { return set.Check(ctx) })
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}
	return openArchivePostgres(ctx, at)
}

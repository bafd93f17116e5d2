package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/turnd/turnd/migrations"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/archive"
)

// shownRefusals is how many conversations that were refused are named; the others are counted.
const shownRefusals = 20

// importCmd brings conversations of a file into a database.
type importCmd struct {
	Database `embed:""`
	In       string `default:"-" placeholder:"FILE" help:"What turnd export wrote; - is standard input."`
	Tenant   string `placeholder:"NAME" help:"Tenant to put all conversations under, instead of their own."`
	DryRun   bool   `help:"Check every line against the database, and write nothing."`
}

// Run implements the command.
func (c importCmd) Run(ctx context.Context) error { return c.run(ctx, os.Stdin, os.Stdout, os.Stderr) }

func (c importCmd) run(ctx context.Context, in io.Reader, out, notes io.Writer) (err error) {
	at, err := c.place()
	if err != nil {
		return usageError{err}
	}
	if c.In != "-" {
		f, err := os.Open(c.In)
		if err != nil {
			return fmt.Errorf("--in: %w", err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	to, closing, err := openArchive(ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing()) }()
	refused := 0
	count, err := archive.Import(ctx, to, in, archive.Options{Tenant: turns.Tenant(c.Tenant), Dry: c.DryRun, Refused: func(err error) {
		if refused++; refused <= shownRefusals {
			fmt.Fprintln(notes, "turnd: "+err.Error())
		}
	}})
	verb := "imported"
	if c.DryRun {
		verb = "would import"
	}
	fmt.Fprintf(out, "%s %d conversations with %d turns, %d replies, %d calls; %d were there already, %d refused\n",
		verb, count.Written, count.Turns, count.Replies, count.Calls, count.Already, count.Refused)
	if err == nil && count.Refused > 0 {
		err = fmt.Errorf("%d conversations are stored with other rows and were left as they are", count.Refused)
	}
	return err
}

// openArchive opens a database of this build's schema for writing, and says how to close it. A SQLite file is made if there
// is none, and must not be served meanwhile.
func openArchive(ctx context.Context, at place) (turns.Archive, func() error, error) {
	if at.engine == engineSQLite {
		s, err := lockSQLite(ctx, at, func(set *migrations.Set) error {
			_, err := set.Up(ctx)
			return errors.Join(err, set.Check(ctx))
		})
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}
	return openArchivePostgres(ctx, at)
}

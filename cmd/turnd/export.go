package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/uuid"

	"github.com/turnd/turnd/migrations"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/archive"
	"github.com/turnd/turnd/turns/postgres"
	"github.com/turnd/turnd/turns/sqlite"
)

// exportCmd copies conversations out of a database, which may be served meanwhile.
type exportCmd struct {
	Database     `embed:""`
	Tenant       string   `placeholder:"NAME" help:"Only conversations of this tenant."`
	Conversation []string `sep:"none" placeholder:"ID" help:"Only this conversation, a UUID; may be given again."`
	Out          string   `default:"-" placeholder:"FILE" help:"Where to write to, for this user alone; - is standard output. The file is as secret as the database."`
}

// Run implements the command.
func (c exportCmd) Run(ctx context.Context) error { return c.run(ctx, os.Stdout, os.Stderr) }

func (c exportCmd) run(ctx context.Context, out, notes io.Writer) (err error) {
	selection, err := c.selection()
	if err != nil {
		return usageError{err}
	}
	at, err := c.place()
	if err != nil {
		return usageError{err}
	}
	from, closing, err := openArchiveReader(ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing()) }()
	file, err := newExportFile(c.Out, out)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	count, err := archive.Export(ctx, from, file, selection)
	if err = errors.Join(err, file.end(err == nil)); err != nil {
		return err
	}
	fmt.Fprintf(notes, "turnd: exported %d conversations (%d of them deleted), %d turns, %d replies, %d calls\n",
		count.Conversations, count.Deleted, count.Turns, count.Replies, count.Calls)
	if count.Unended > 0 {
		fmt.Fprintf(notes, "turnd: %d replies were running or held, and are in the file as abandoned, as far as they were stored\n", count.Unended)
	}
	return nil
}

func (c exportCmd) selection() (archive.Selection, error) {
	s := archive.Selection{Tenant: turns.Tenant(c.Tenant)}
	for _, text := range c.Conversation {
		id, err := uuid.Parse(text)
		if err != nil {
			return s, errors.New("--conversation: must be a UUID")
		}
		s.Conversations = append(s.Conversations, turns.ConversationID{UUID: id})
	}
	return s, nil
}

// openArchiveReader opens a database of this build's schema for reading, and says how to close it. A SQLite file may be
// served meanwhile.
func openArchiveReader(ctx context.Context, at place) (turns.ArchiveReader, func() error, error) {
	check := func(set *migrations.Set) error { return set.Check(ctx) }
	if at.engine == engineSQLite {
		if err := withSQLite(at, check); err != nil {
			return nil, nil, err
		}
		s, err := sqlite.OpenSnapshots(ctx, at.file)
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}
	return openArchivePostgres(ctx, at)
}

// openArchivePostgres connects to a database of this build's schema, and says how to leave it.
func openArchivePostgres(ctx context.Context, at place) (*postgres.Store, func() error, error) {
	if err := withPostgres(at, func(set *migrations.Set) error { return set.Check(ctx) }); err != nil {
		return nil, nil, err
	}
	s, err := postgres.Open(ctx, postgres.Config{URL: at.url, MaxConns: 1, Pooled: at.direct != at.url})
	if err != nil {
		return nil, nil, unreachable("--database-url", err)
	}
	return s, func() error { s.Close(); return nil }, nil
}

// exportFile is a file that gets its name once it is whole, or standard output.
type exportFile struct {
	io.Writer
	file *os.File
	name string
}

func newExportFile(name string, stdout io.Writer) (*exportFile, error) {
	if name == "-" {
		return &exportFile{Writer: stdout}, nil
	}
	file, err := os.OpenFile(name+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &exportFile{file, file, name}, nil
}

// end gives the file its name, or removes what there is of it.
func (o *exportFile) end(whole bool) error {
	if o.file == nil {
		return nil
	}
	if !whole {
		return errors.Join(o.file.Close(), os.Remove(o.file.Name()))
	}
	if err := errors.Join(o.file.Sync(), o.file.Close()); err != nil {
		return err
	}
	return os.Rename(o.file.Name(), o.name)
}

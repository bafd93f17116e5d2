package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/turnd/turnd/migrations"
	"github.com/turnd/turnd/turns/access"
	"github.com/turnd/turnd/turns/sqlite"
)

// accessPage is how many keys or suspensions are read at once.
const accessPage = 500

// keysCmd is for who gives out API keys.
type keysCmd struct {
	Create keysCreateCmd `cmd:"" help:"Make a key and print it, once: only a hash of it is kept."`
	List   keysListCmd   `cmd:"" help:"List keys, without what they are."`
	Revoke keysRevokeCmd `cmd:"" help:"End a key. It is refused everywhere within --auth-cache of turnd serve."`
}

// openAccess opens a database of this build's schema for its keys and suspensions, and says how to close it. It may be served
// meanwhile, a SQLite file too.
func openAccess(ctx context.Context, db Database) (access.Store, func() error, error) {
	at, err := db.place()
	if err != nil {
		return nil, nil, usageError{err}
	}
	if at.engine == enginePostgres {
		return openArchivePostgres(ctx, at)
	}
	if _, err := os.Stat(at.file); errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("there is no database at %s: check --data-dir and --database-url, or make one by turnd migrate up", at.file)
	}
	if err := withSQLite(at, func(set *migrations.Set) error { return set.Check(ctx) }); err != nil {
		return nil, nil, err
	}
	s, err := sqlite.OpenBeside(ctx, at.file)
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// withAccess runs do on the keys and suspensions of a database.
func withAccess(ctx context.Context, db Database, do func(access.Store) error) (err error) {
	s, closing, err := openAccess(ctx, db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing()) }()
	return do(s)
}

type keysCreateCmd struct {
	Database `embed:""`
	Tenant   string         `required:"" placeholder:"NAME" help:"Tenant that the key is of."`
	Subject  string         `required:"" placeholder:"NAME" help:"Who uses it, within the tenant; limits and suspensions go by it."`
	Scopes   string         `default:"turns,read" placeholder:"SCOPES" help:"What it is for, with commas between: turns, read, operator. None implies another."`
	Name     string         `placeholder:"TEXT" help:"A label for people, shown by turnd keys list."`
	Expires  *time.Duration `placeholder:"TIME" help:"When it ends by itself, from now, as in 720h; without it, never."`
}

// Validate checks what flags alone can tell.
func (c keysCreateCmd) Validate() error {
	_, err := access.ParseScopes(c.Scopes)
	problems := []error{flagged("--tenant", access.CheckIdentity(c.Tenant)), flagged("--subject", access.CheckIdentity(c.Subject)),
		flagged("--scopes", err), flagged("--name", access.CheckName(c.Name))}
	if c.Expires != nil {
		problems = append(problems, atLeast("--expires", *c.Expires, time.Second))
	}
	return usageOf(errors.Join(problems...))
}

// flagged names the flag that a problem is with.
func flagged(flag string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", flag, err)
}

// Run implements the command.
func (c keysCreateCmd) Run(ctx context.Context) error { return c.run(ctx, os.Stdout, os.Stderr) }

func (c keysCreateCmd) run(ctx context.Context, out, notes io.Writer) error {
	scopes, err := access.ParseScopes(c.Scopes)
	if err != nil {
		return usageError{flagged("--scopes", err)}
	}
	text := access.Mint()
	k := access.Key{ID: text.ID(), Hash: text.Hash(), Tenant: c.Tenant, Subject: c.Subject, Scopes: scopes, Name: c.Name}
	if c.Expires != nil {
		k.ExpireTime = time.Now().Add(*c.Expires)
	}
	return withAccess(ctx, c.Database, func(s access.Store) error {
		k, err := s.CreateKey(ctx, k)
		if err != nil {
			return fmt.Errorf("%w; if key %s is in turnd keys list all the same, revoke it", err, text.ID())
		}
		if _, err := fmt.Fprintln(out, text.Reveal()); err != nil {
			return fmt.Errorf("key %s was made and can't be printed, revoke it: %w", k.ID, err)
		}
		ends := "it does not expire"
		if !k.ExpireTime.IsZero() {
			ends = "it expires at " + k.ExpireTime.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(notes, "turnd: key %s of %s in tenant %s for %s; %s; it is not shown again\n", k.ID, k.Subject, k.Tenant,
			access.FormatScopes(k.Scopes), ends)
		return nil
	})
}

type keysListCmd struct {
	Database `embed:""`
	Tenant   string `placeholder:"NAME" help:"Only keys of this tenant."`
}

// Run implements the command.
func (c keysListCmd) Run(ctx context.Context) error { return c.run(ctx, os.Stdout) }

func (c keysListCmd) run(ctx context.Context, out io.Writer) error {
	return withAccess(ctx, c.Database, func(s access.Store) error {
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ID\tTENANT\tSUBJECT\tSCOPES\tCREATED\tEXPIRES\tSTATE\tNAME")
		after := ""
		for {
			page, err := s.ListKeys(ctx, c.Tenant, after, accessPage)
			if err != nil {
				return err
			}
			for _, k := range page {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, shown(k.Tenant), shown(k.Subject), shown(access.FormatScopes(k.Scopes)),
					k.CreateTime.Format(time.RFC3339), timeOrNever(k.ExpireTime), stateOf(k), shown(k.Name))
				after = k.ID
			}
			if err := table.Flush(); err != nil || len(page) < accessPage {
				return err
			}
		}
	})
}

func timeOrNever(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.Format(time.RFC3339)
}

// stateOf says how a key stands, by this machine's clock.
func stateOf(k access.Key) string {
	if ended := k.Ended(time.Now()); ended != "" {
		return ended
	}
	return "good"
}

// shown is a text that can't do anything to a terminal or a table.
func shown(text string) string {
	if text == "" {
		return "-"
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return strconv.QuoteToASCII(text)
	}
	return text
}

type keysRevokeCmd struct {
	Database `embed:""`
	Key      string `arg:"" help:"Id of the key, or its whole text; - reads that from standard input, where no list of processes shows it."`
}

// Run implements the command.
func (c keysRevokeCmd) Run(ctx context.Context) error { return c.run(ctx, os.Stdin, os.Stdout) }

func (c keysRevokeCmd) run(ctx context.Context, in io.Reader, out io.Writer) error {
	given := c.Key
	if given == "-" {
		line, err := bufio.NewReader(io.LimitReader(in, maxKeyFile)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the key: %w", err)
		}
		given = line
	}
	id, err := idOf(strings.TrimSpace(given))
	if err != nil {
		return usageError{err}
	}
	return withAccess(ctx, c.Database, func(s access.Store) error {
		k, err := s.RevokeKey(ctx, id)
		if errors.Is(err, access.ErrNotFound) {
			return fmt.Errorf("there is no key %s in this database", id)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "key %s of %s in tenant %s is revoked since %s\n", k.ID, shown(k.Subject), shown(k.Tenant), k.RevokeTime.Format(time.RFC3339))
		return err
	})
}

// idOf is the id of a key that is named by it or by its whole text. Its error does not repeat what was given. A text that was cut
// short still has its id, but may be another's through a mistake.
func idOf(given string) (string, error) {
	if access.IsID(given) {
		return given, nil
	}
	text, err := access.ParseText(given)
	if err != nil {
		return "", errors.New("KEY: must be the id of a key, as turnd keys list shows it, or the whole text of one")
	}
	return text.ID(), nil
}

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/metadata"

	"github.com/turnd/turnd/client"
)

type chatCmd struct {
	dialFlags    `embed:""`
	Message      *string `short:"m" placeholder:"TEXT" help:"Send one turn, print its reply and end: with 0 if the reply is complete, else with 1. Only the reply goes to standard output. After a lost connection the same command goes on with the same turn. Ctrl-C stops the reply, a second one leaves it running."`
	Conversation string  `placeholder:"ID" help:"Conversation to speak in, a UUID. Without it, the conversation of the last time goes on."`
	New          bool    `help:"Open a new conversation."`
	Model        string  `placeholder:"NAME" help:"Model to ask; without it, the service's default."`
	Tenant       string  `placeholder:"NAME" help:"Tenant to speak for, where the service takes it on trust."`
	Record       string  `placeholder:"FILE" help:"Where the turn in flight is kept; by default a file for each server and tenant in the state folder of the user."`
}

// Validate checks what flags alone can tell.
func (c chatCmd) Validate() error {
	var problems []error
	if err := errors.Join(c.check(), checkTenant(c.Tenant)); err != nil {
		problems = append(problems, err)
	}
	if c.Conversation != "" {
		if c.New {
			problems = append(problems, errors.New("--new: can't go with --conversation"))
		}
		if _, err := uuid.Parse(c.Conversation); err != nil {
			problems = append(problems, errors.New("--conversation: must be a UUID"))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return usageError{errors.Join(problems...)}
}

// chatEnds are what a chat reads from and writes to. Only replies go to out; the rest is status.
type chatEnds struct {
	in         io.Reader
	out        io.Writer
	status     io.Writer
	dim        bool                                       // status can show what is not the reply in dim
	interrupts <-chan os.Signal                           // what the user's Ctrl-C sends
	wait       func(context.Context, time.Duration) error // nil for a real pause
}

// Run implements the command. An interrupt is a wish about a reply here, so it is taken from the process; SIGTERM leaves.
func (c *chatCmd) Run(ctx context.Context) error {
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	return c.run(ctx, chatEnds{in: os.Stdin, out: os.Stdout, status: os.Stderr, dim: canDim(os.Stderr), interrupts: interrupts})
}

// canDim tells whether a file is a terminal that takes codes.
func canDim(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func (c *chatCmd) run(ctx context.Context, ends chatEnds) (err error) {
	p, err := c.proof()
	if err != nil {
		return err
	}
	path, err := c.recordPath(p)
	if err != nil {
		return err
	}
	address := c.address()
	conn, err := c.dialAs(p, ends.status)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if c.Tenant != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-turnd-tenant", c.Tenant)
	}
	t := &talk{screen: &screen{out: ends.out, status: ends.status, dim: ends.dim}, interrupts: ends.interrupts,
		ways: waysOfLines(address), model: c.Model, record: client.NewFileRecord(path)}
	t.client = client.New(conn, client.Options{Record: t.record, Wait: ends.wait, Trying: t.trying})
	if err := t.choose(c); err != nil {
		return err
	}
	if c.Message != nil {
		t.ways = waysOfMessage(address)
		return t.once(ctx, *c.Message)
	}
	return t.loop(ctx, ends.in)
}

// recordPath is the file of the turn in flight. Each server, tenant and key has its own, as ids of one mean nothing to
// another.
func (c *chatCmd) recordPath(p proof) (string, error) {
	if c.Record != "" {
		return c.Record, nil
	}
	dir, err := stateDir()
	if err != nil {
		return "", err
	}
	whose := c.Server + "\x00" + c.Tenant
	if id := p.id(); id != "" {
		whose += "\x00" + id
	}
	sum := sha256.Sum256([]byte(whose))
	return filepath.Join(dir, "chat-"+hex.EncodeToString(sum[:6])+".json"), nil
}

// stateDir is the folder for what should outlive a restart, by the XDG base directory rules, which have a relative path
// ignored.
func stateDir() (string, error) {
	if base := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "turnd"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "", errors.New("--record: there is no home directory to keep the turn in flight in; name a file")
	}
	return filepath.Join(home, ".local", "state", "turnd"), nil
}

// choose settles in which conversation to speak, and whether a turn that is in flight is to be gone on with.
func (t *talk) choose(c *chatCmd) error {
	if c.New {
		return nil
	}
	last, err := t.record.LastConversation()
	if err != nil {
		return fmt.Errorf("find the last conversation: %w", err)
	}
	t.conversation = c.Conversation
	if t.conversation == "" {
		t.conversation = last
	}
	t.resumes = t.conversation == last
	return nil
}

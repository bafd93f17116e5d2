package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// cli is the command line: commands, flags, variables and defaults, from which the help is made too.
type cli struct {
	Serve    serveCmd       `cmd:"" help:"Run the service."`
	Migrate  migrateCmd     `cmd:"" help:"Bring a database to this build's schema, or see how it stands."`
	Probe    probeCmd       `cmd:"" help:"Find out what an endpoint of a models file can do about lost answers. Spends tokens, and says how many first."`
	Chat     chatCmd        `cmd:"" help:"Talk to a service from a terminal."`
	Keys     keysCmd        `cmd:"" help:"Create, list and revoke API keys. The database may be served meanwhile."`
	Subjects subjectsCmd    `cmd:"" help:"Suspend subjects, reinstate and list them. The database may be served meanwhile."`
	Held     heldCmd        `cmd:"" help:"See and decide about replies of which nobody knows whether the model answered."`
	Explain  explainCmd     `cmd:"" help:"Tell what became of a turn: its deliveries, workers, calls and tokens in order of time."`
	Ledger   ledgerCmd      `cmd:"" help:"List calls to providers, or sum them up."`
	Workers  workersCmd     `cmd:"" help:"List the workers with their leases."`
	Sweep    sweepCmd       `cmd:"" help:"Have a worker look now for replies whose worker is gone, and say what became of them."`
	Doctor   doctorCmd      `cmd:"" help:"Look whether all is well with what serve is set to use: database, bus, endpoints, spool, workers. Spends nothing."`
	Export   exportCmd      `cmd:"" help:"Copy conversations out of a database, as JSON lines. The database may be served meanwhile."`
	Import   importCmd      `cmd:"" help:"Bring conversations of such a file into a database, of whichever engine."`
	Purge    purgeCmd       `cmd:"" help:"Delete conversations that nobody has used for a time."`
	Scripted scriptedCmd    `cmd:"" name:"scripted-provider" help:"Run the stand-in for a model provider, for tests."`
	Health   healthcheckCmd `cmd:"" name:"healthcheck" help:"Ask a service on this machine whether it is ready; the exit status says so."`
	Version  versionCmd     `cmd:"" help:"Say which build this is."`
}

// newParser builds the parser over a command line.
func newParser(c *cli) (*kong.Kong, error) {
	return kong.New(c, kong.Name("turnd"),
		kong.Description("turnd owns the turns of chat products: one turn, one reply, one bill."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.ValueFormatter(describeFlag),
		kong.ExplicitGroups([]kong.Group{
			{Key: "listen", Title: "Listening:"},
			{Key: "identity", Title: "Identity:"},
			{Key: "store", Title: "Database:"},
			{Key: "models", Title: "Models:"},
			{Key: "worker", Title: "Turns:"},
			{Key: "caps", Title: "Caps:"},
			{Key: "limits", Title: "Limits:"},
			{Key: "telemetry", Title: "Telemetry:"},
			{Key: "log", Title: "Logs:"},
		}))
}

// describeFlag shows default and variable behind a flag's help.
func describeFlag(v *kong.Value) string {
	var notes []string
	if v.Default != "" && v.Default != "false" {
		notes = append(notes, "default "+v.Default)
	}
	if v.Tag != nil {
		notes = append(notes, v.Tag.Envs...)
	}
	if len(notes) == 0 {
		return v.Help
	}
	return fmt.Sprintf("%s (%s)", v.Help, strings.Join(notes, ", "))
}

// command is what was asked for, ready to run unless parsing it has failed.
type command struct{ kong *kong.Context }

// prefix is the name of the command before its flags, with a space after it; empty if none was named.
func (c command) prefix() string {
	var words strings.Builder
	for _, step := range c.kong.Path {
		if step.Command != nil {
			words.WriteString(step.Command.Name + " ")
		}
	}
	return words.String()
}

// Run runs the command. A signal asks it to end, except for a chat, where an interrupt is about a reply.
func (c command) Run(ctx context.Context) error {
	h := haste{context.WithoutCancel(ctx)}
	if c.prefix() != "chat " {
		var stop func()
		ctx, h, stop = interruptible(ctx, c.prefix() == "serve ")
		defer stop()
	}
	c.kong.Bind(h)
	c.kong.BindTo(ctx, (*context.Context)(nil))
	return c.kong.Run()
}

// parse reads the command line and the environment; "help" before a command is --help behind it. Its error is a usageError with all that is wrong, as far as one
// reading can tell.
func parse(args, environ []string) (command, error) {
	var c cli
	parser, err := newParser(&c)
	if err != nil {
		return command{}, err
	}
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help":
		args = append(args[1:len(args):len(args)], "--help")
	}
	ctx, err := parser.Parse(args)
	if bad := (*kong.ParseError)(nil); errors.As(err, &bad) {
		ctx = bad.Context
	}
	// Parse also calls Validate of the command, and puts the command's name before the first of its problems.
	var found usageError
	if errors.As(err, &found) {
		err = found
	}
	if err = errors.Join(err, unknownVariables(environ, variables(parser.Model))); err != nil {
		return command{ctx}, usageError{err}
	}
	return command{ctx}, nil
}

// variables are the names of all TURND_ variables that any command reads, in order.
func variables(app *kong.Application) []string {
	var names []string
	_ = kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && flag.Tag != nil {
			names = append(names, flag.Tag.Envs...)
		}
		return next(nil)
	})
	names = append(names, keyVariable)
	slices.Sort(names)
	return slices.Compact(names)
}

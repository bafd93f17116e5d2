package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the tables of docs/configuration.md anew")

const (
	configurationDoc = "../../docs/configuration.md"
	docBegin         = "<!-- made from the flags by go test ./cmd/turnd -run Configuration -update -->\n"
	docEnd           = "<!-- end of what is made -->\n"
)

func TestTheConfigurationInTheDocsIsTheCommandsOwn(t *testing.T) {
	raw, err := os.ReadFile(configurationDoc)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(raw), docBegin)
	require.True(t, found, "the page has no place for the tables")
	_, after, found := strings.Cut(rest, docEnd)
	require.True(t, found, "the place for the tables has no end")
	parser, err := newParser(&cli{})
	require.NoError(t, err)
	want := before + docBegin + "\n" + configuration(parser.Model) + docEnd + after
	if *update {
		require.NoError(t, os.WriteFile(configurationDoc, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(raw), "stale; go test ./cmd/turnd -run Configuration -update writes it")
}

func TestEveryVariableThatIsReadIsInTheConfigurationOfTheDocs(t *testing.T) {
	raw, err := os.ReadFile(configurationDoc)
	require.NoError(t, err)
	parser, err := newParser(&cli{})
	require.NoError(t, err)
	for _, name := range variables(parser.Model) {
		require.Contains(t, string(raw), "`"+name+"`")
	}
}

// configuration is a section for each command that can be run, with its flags by group.
func configuration(app *kong.Application) string {
	var b strings.Builder
	for _, command := range app.Leaves(true) {
		path := "turnd " + strings.TrimSpace(strings.TrimPrefix(command.Path(), app.Name))
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", path, command.Help)
		describeArguments(&b, command)
		hidden := map[string]bool{"help": true}
		if command.Name == "doctor" {
			b.WriteString("It reads what `turnd serve` reads: all flags and variables of that, and\n\n")
			hidden = flagsOf(app, "serve")
		}
		describeFlags(&b, command, hidden)
	}
	return b.String()
}

func describeArguments(b *strings.Builder, command *kong.Node) {
	for _, arg := range command.Positional {
		need := "may be left out"
		if arg.Required {
			need = "must be given"
		}
		fmt.Fprintf(b, "`%s` (%s): %s\n\n", strings.ToUpper(arg.Name), need, arg.Help)
	}
}

// flagsOf are the names of a command's flags.
func flagsOf(app *kong.Application, command string) map[string]bool {
	names := map[string]bool{}
	for _, leaf := range app.Leaves(true) {
		for _, level := range leaf.AllFlags(true) {
			for _, f := range level {
				names[f.Name] = names[f.Name] || leaf.Name == command || f.Name == "help"
			}
		}
	}
	return names
}

// describeFlags writes a table for each group of flags, in the order in which the help shows them.
func describeFlags(b *strings.Builder, command *kong.Node, hidden map[string]bool) {
	var groups []string
	rows := map[string]string{}
	for _, level := range command.AllFlags(true) {
		for _, f := range level {
			if hidden[f.Name] {
				continue
			}
			title := ""
			if f.Group != nil {
				title = f.Group.Title
			}
			if rows[title] == "" {
				groups = append(groups, title)
			}
			rows[title] += flagRow(f)
		}
	}
	for _, title := range groups {
		if title != "" {
			fmt.Fprintf(b, "### %s\n\n", strings.TrimSuffix(title, ":"))
		}
		fmt.Fprintf(b, "| flag | variable | default | meaning |\n|---|---|---|---|\n%s\n", rows[title])
	}
}

func flagRow(f *kong.Flag) string {
	name := "`--" + f.Name + "`"
	if f.Short != 0 {
		name += ", `-" + string(f.Short) + "`"
	}
	variable, def := "", ""
	if f.Tag != nil && len(f.Tag.Envs) > 0 {
		variable = "`" + strings.Join(f.Tag.Envs, "`, `") + "`"
	}
	if f.Default != "" && f.Default != "false" {
		def = "`" + f.Default + "`"
	}
	if f.Required {
		def = "must be given"
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", name, variable, def, strings.ReplaceAll(f.Help, "|", `\|`))
}

package turns_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

var update = flag.Bool("update", false, "write the picture and the table of docs/state-machine.md anew")

const (
	stateDoc   = "../docs/state-machine.md"
	docBegin   = "<!-- made from turns.Transitions by go test ./turns -run StateMachine -update -->\n"
	docEnd     = "<!-- end of what is made -->\n"
	noRow      = "[*]" // as Mermaid writes where a picture begins
	notYetMark = "not yet"

	modelFiles  = "../docs/model/*.pml"
	notModelled = "not modelled: "
)

// notYet are the verbs that nothing calls so far: none.
var notYet []turns.Verb

func TestTheStateMachineInTheDocsIsTheTable(t *testing.T) {
	raw, err := os.ReadFile(stateDoc)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(raw), docBegin)
	require.True(t, found, "the page has no place for the picture")
	_, after, found := strings.Cut(rest, docEnd)
	require.True(t, found, "the place for the picture has no end")
	want := before + docBegin + picture() + "\n" + table() + docEnd + after
	if *update {
		require.NoError(t, os.WriteFile(stateDoc, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(raw), "stale; go test ./turns -run StateMachine -update writes it")
}

func TestEveryTransitionIsAStepOfTheModelOrSaysWhyNot(t *testing.T) {
	files, err := filepath.Glob(modelFiles)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var model strings.Builder
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		model.Write(raw)
	}
	for _, row := range turns.Transitions {
		if why, left := strings.CutPrefix(row.Model, notModelled); left {
			require.NotEmpty(t, why, "%s", row.Verb)
			continue
		}
		require.NotEmpty(t, row.Model, "%s", row.Verb)
		require.Contains(t, model.String(), "\ninline "+row.Model+"(", "%s is no step of the model", row.Model)
	}
}

func TestTheDocsSayInWordsWhatEachVerbAndStatusIs(t *testing.T) {
	raw, err := os.ReadFile(stateDoc)
	require.NoError(t, err)
	for _, row := range turns.Transitions {
		line := fmt.Sprintf("\n- `%s`", row.Verb)
		require.Contains(t, string(raw), line)
		said := strings.Contains(string(raw), line+" ("+notYetMark+")")
		require.Equal(t, slices.Contains(notYet, row.Verb), said, "%s", row.Verb)
		require.Contains(t, string(raw), fmt.Sprintf("\n- `%s`", row.To))
	}
}

// picture draws one arrow for each pair of states, with the verbs that lead along it.
func picture() string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	var arrows []string
	verbs := map[string][]string{}
	for _, row := range turns.Transitions {
		arrow := fmt.Sprintf("%s --> %s", stateName(row.From), stateName(row.To))
		if verbs[arrow] == nil {
			arrows = append(arrows, arrow)
		}
		if !slices.Contains(verbs[arrow], string(row.Verb)) {
			verbs[arrow] = append(verbs[arrow], string(row.Verb))
		}
	}
	for _, arrow := range arrows {
		fmt.Fprintf(&b, "    %s: %s\n", arrow, strings.Join(verbs[arrow], ", "))
	}
	b.WriteString("```\n")
	return b.String()
}

func stateName(s turns.Status) string {
	if s == "" {
		return noRow
	}
	return string(s)
}

func table() string {
	var b strings.Builder
	b.WriteString("| from | verb | to | by | when | in the model |\n|---|---|---|---|---|---|\n")
	for _, row := range turns.Transitions {
		from := "no row"
		if row.From != "" {
			from = withReasons(row.From, row.FromReasons)
		}
		verb := string(row.Verb)
		if slices.Contains(notYet, row.Verb) {
			verb += " (" + notYetMark + ")"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", from, verb, withReasons(row.To, row.Reasons), row.Actor, row.When, inModel(row.Model))
	}
	return b.String()
}

// inModel shows a step by name, and only that one is left out: the reason stands in the table's source and in docs/model.
func inModel(step string) string {
	if strings.HasPrefix(step, notModelled) {
		return "-"
	}
	return "`" + step + "`"
}

// withReasons names a status and the reasons that bound it.
func withReasons(s turns.Status, reasons []turns.Reason) string {
	words := make([]string, len(reasons))
	for i, r := range reasons {
		words[i] = string(r)
	}
	if len(words) == 0 {
		return string(s)
	}
	return fmt.Sprintf("%s: %s", s, strings.Join(words, ", "))
}

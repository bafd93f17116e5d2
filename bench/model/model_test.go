package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const modelFolder = "../../docs/model"

func modelText(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(modelFolder, "*.pml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var text strings.Builder
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		text.Write(raw)
	}
	return text.String()
}

func TestEverySwitchOfTheModelThatTakesARuleAwayIsTriedAndExplained(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(modelFolder, "README.md"))
	require.NoError(t, err)
	inModel := regexp.MustCompile(`M_[A-Z]+`).FindAllString(modelText(t), -1)
	slices.Sort(inModel)
	inModel = slices.Compact(inModel)
	var tried []string
	for _, m := range mutations {
		tried = append(tried, m.name)
		require.Contains(t, string(readme), "| `"+m.name+"` |")
	}
	require.Equal(t, inModel, tried)
}

func TestTheModelHasEveryBudgetThatASearchSets(t *testing.T) {
	text := modelText(t)
	for _, task := range plan(false) {
		for _, s := range strings.Fields(task.switches) {
			name, _, _ := strings.Cut(strings.TrimPrefix(s, "-D"), "=")
			require.Contains(t, text, name, "%s sets a switch that the model does not know", task.name)
		}
	}
}

const complete = `
(Spin Version 6.5.2 -- 6 December 2019)
State-vector 164 byte, depth reached 67, errors: 0
    54742 states, stored
`

func TestACompleteSearchThatFindsNothingPasses(t *testing.T) {
	o := read(complete)
	require.Equal(t, outcome{states: 54742}, o)
	require.NoError(t, task{name: "any"}.judge(o))
}

func TestASearchThatMetALimitFails(t *testing.T) {
	for _, said := range []string{"error: max search depth too small\n", "pan: out of memory\n", "Warning: Search not completed\n"} {
		require.ErrorContains(t, task{name: "any"}.judge(read(said+complete)), "not complete", "%s", said)
	}
	require.ErrorContains(t, task{name: "any"}.judge(read("Killed")), "not complete")
}

func TestASearchThatFindsARunFails(t *testing.T) {
	found := read("pan:1: assertion violated (n<=1) (at depth 32)\n" + strings.Replace(complete, "errors: 0", "errors: 1", 1))
	require.Equal(t, "(n<=1)", found.violated)
	require.Error(t, task{name: "any"}.judge(found))
}

func TestAMutationPassesOnlyIfItIsCaughtForWhatItTakesAway(t *testing.T) {
	found := read("pan:1: assertion violated (n<=1) (at depth 32)\n" + strings.Replace(complete, "errors: 0", "errors: 1", 1))
	require.NoError(t, task{name: "M_X", breaks: "n<=1"}.judge(found))
	require.ErrorContains(t, task{name: "M_X", breaks: "owed"}.judge(found), "not what the rule is for")
	require.ErrorContains(t, task{name: "M_X", breaks: "n<=1"}.judge(read(complete)), "not caught")
}

func TestOneMutationThatIsNotCaughtFailsTheWhole(t *testing.T) {
	tasks := []task{{name: "any"}, {name: "M_X", breaks: "n<=1"}}
	_, err := judge(tasks, []outcome{{states: 7}, {states: 9}})
	require.ErrorContains(t, err, "M_X")
	verdict, err := judge(tasks, []outcome{{states: 7}, {states: 9, errors: 1, violated: "(n<=1)"}})
	require.NoError(t, err)
	require.Equal(t, "runs=1 states=7 mutations=1 caught=1", verdict)
}

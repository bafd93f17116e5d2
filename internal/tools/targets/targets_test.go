package targets

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is where the Makefile is.
var root = filepath.Join("..", "..", "..")

// script runs a script of .ci with more in its environment, and returns its output and its exit status.
func script(t *testing.T, env []string, name string, args ...string) (string, int) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("the scripts need bash")
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, ".ci", name), args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func TestTheLastLineAndTheExitStatusOfATargetAgree(t *testing.T) {
	for _, c := range []struct {
		name   string
		script string
		want   string // regular expression of the last line
		status int
	}{
		{"a success without figures", `echo hello`, `^PASS x seconds=\d+$`, 0},
		{"figures of several steps", `echo figure a=1; echo noise; echo figure b=2`, `^PASS x a=1 b=2 seconds=\d+$`, 0},
		{"a failure says why", `echo fine; echo disk full >&2; exit 3`, `^FAIL x disk full$`, 1},
		{"a silent failure", `exit 3`, `^FAIL x exit status 3$`, 1},
		{"a line of its own", `echo PASS x turns=20`, `^PASS x turns=20$`, 0},
		{"a failure of its own", `echo FAIL x two bills; exit 1`, `^FAIL x two bills$`, 1},
		{"PASS with a bad status", `echo PASS x turns=20; exit 1`, `^FAIL x .*disagree$`, 1},
		{"FAIL with a good status", `echo FAIL x two bills`, `^FAIL x .*disagree$`, 1},
		{"another target's line is not its own", `echo PASS y turns=20`, `^PASS x seconds=\d+$`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, status := script(t, nil, "verdict", "x", "bash", "-c", c.script)
			require.Regexp(t, c.want, lastLine(out))
			require.Equal(t, c.status, status)
		})
	}
}

func TestKeysAndSettingsDoNotReachATarget(t *testing.T) {
	out, status := script(t, []string{
		"ANTHROPIC_API_KEY=secret", "OPENAI_API_KEY=secret", "TURND_LISTEN=0.0.0.0:1", "OTEL_SERVICE_NAME=mine",
		"TURND_TEST_DATABASE_URL=postgres://db/app", "SHORT=1",
	}, "clean", "env")
	require.Zero(t, status)
	require.NotContains(t, out, "secret")
	require.NotContains(t, out, "TURND_LISTEN")
	require.NotContains(t, out, "OTEL_")
	require.Contains(t, out, "TURND_TEST_DATABASE_URL=postgres://db/app\n")
	require.Contains(t, out, "SHORT=1\n")
	require.Contains(t, out, "HOME=")
}

func TestEveryTargetIsExplainedAndRunsUnderAVerdict(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	targets := regexp.MustCompile(`(?m)^([a-z0-9-]+):(.*)\n\t(.*)`).FindAllStringSubmatch(string(makefile), -1)
	var names []string
	for _, target := range targets {
		name, rest, recipe := target[1], target[2], target[3]
		names = append(names, name)
		require.Contains(t, rest, "## ", "make help does not show %s", name)
		if name != "run" && name != "help" && !strings.HasPrefix(name, "example-") {
			require.True(t, strings.HasPrefix(recipe, "$(VERDICT) "+name+" "), "%s: %s", name, recipe)
		}
	}
	require.Equal(t, strings.Fields(regexp.MustCompile(`(?m)^\.PHONY: (.*)$`).FindStringSubmatch(string(makefile))[1]), names)
}

func TestMakeHelpListsTheTargets(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make")
	}
	cmd := exec.CommandContext(t.Context(), "make", "help")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Regexp(t, `(?m)^  run +Start turnd`, string(out))
	require.Regexp(t, `^PASS help targets=\d+$`, lastLine(string(out)))
}

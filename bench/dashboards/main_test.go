package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const committed = "../../deploy"

func TestEachPanelIsExpectedToShowAFaultThatIsPlayed(t *testing.T) {
	queries, err := readQueries(filepath.Join(committed, "grafana"))
	require.NoError(t, err)
	require.NoError(t, expectedOf(queries))
}

func TestAPanelOfWhichNothingIsExpectedIsRefused(t *testing.T) {
	err := expectedOf([]*query{{panel: "A new one"}})
	require.ErrorContains(t, err, `no fault is known that "A new one" shows`)
	require.ErrorContains(t, err, `there is no panel "Sweeps"`)
}

func TestAPanelThatHasAValueForWhatIsMissingIsRefused(t *testing.T) {
	for _, expr := range []string{"turnd_held or vector(0)", "turnd_held or  vector (0)", "absent(turnd_held)"} {
		dir := t.TempDir()
		board := `{"title": "t", "panels": [{"type": "stat", "title": "p", "targets": [{"expr": "` + expr + `"}]}]}`
		require.NoError(t, os.WriteFile(filepath.Join(dir, "b.json"), []byte(board), 0o600))
		_, err := readQueries(dir)
		require.ErrorContains(t, err, "has a value for what is missing")
	}
}

func TestARuleThatHasAValueForWhatIsMissingIsNotLoaded(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "r.yml"), []byte("expr: (turnd_held or vector(0)) > 1\n"), 0o600))
	require.ErrorContains(t, shorten(dir, t.TempDir()), "has a value for what is missing")
}

func TestOnlyTheTimesOfRulesAreShortened(t *testing.T) {
	const long = `
      - alert: A
        # Above --max-wait, 30s
        expr: max by (job) (increase(a[1h])) > 5 and b offset 30m > max_over_time(c[5m]) > 2100
        for: 10m
        annotations: {description: "for 30m"}
`
	const short = `
      - alert: A
        # Above --max-wait, 30s
        expr: max by (job) (increase(a[24s])) > 5 and b offset 12s > max_over_time(c[4s]) > 2100
        for: 4s
        annotations: {description: "for 30m"}
`
	require.Equal(t, short, shortened(long))
	for _, file := range []string{"alerts.yml", "recording.yml"} {
		raw, err := os.ReadFile(filepath.Join(committed, "prometheus", "rules", file))
		require.NoError(t, err)
		rest := func(text string) string {
			return asWait.ReplaceAllString(inExpression.ReplaceAllString(text, "$1"), "$1")
		}
		require.NotEqual(t, string(raw), shortened(string(raw)))
		require.Equal(t, rest(string(raw)), rest(shortened(string(raw))))
	}
}

func TestAPanelShowsAFaultOnlyByAValueThatIsSeenToRise(t *testing.T) {
	some := func(v float64) reading { return reading{v, true} }
	for _, c := range []struct {
		name          string
		before, after reading
		want          bool
	}{
		{"from nothing to something", reading{}, some(1), true},
		{"from nothing to zero", reading{}, some(0), false},
		{"from nothing to nothing", reading{}, reading{}, false},
		{"from something to nothing", some(1), reading{}, false},
		{"from zero", some(0), some(.1), true},
		{"as before", some(5), some(5), false},
		{"as noise has it", some(5), some(5.5), false},
		{"up", some(5), some(7), true},
		{"down", some(7), some(5), false},
	} {
		require.Equal(t, c.want, expectation{}.rose(c.before, c.after), c.name)
	}
}

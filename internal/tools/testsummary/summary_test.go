package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// summed reads events, one a line, and returns the summary with what it showed.
func summed(t *testing.T, lines ...string) (*summary, string) {
	t.Helper()
	var shown strings.Builder
	s := newSummary(&shown)
	require.NoError(t, s.read(strings.NewReader(strings.Join(lines, "\n"))))
	return s, shown.String()
}

var passing = []string{
	`{"Action":"start","Package":"x/a"}`,
	`{"Action":"output","Package":"x/a","Test":"TestOne","Output":"chatter\n"}`,
	`{"Action":"pass","Package":"x/a","Test":"TestOne"}`,
	`{"Action":"output","Package":"x/a","Output":"pgtest: used postgres 15.18\n"}`,
	`{"Action":"output","Package":"x/a","Output":"ok  \tx/a\t0.1s\n"}`,
	`{"Action":"pass","Package":"x/a"}`,
	`{"Action":"output","Package":"x/b","Output":"?   \tx/b\t[no test files]\n"}`,
	`{"Action":"skip","Package":"x/b"}`,
}

func TestAPassingRunShowsItsClosingLinesAndItsFigures(t *testing.T) {
	s, shown := summed(t, passing...)
	require.Equal(t, "ok  \tx/a\t0.1s\n?   \tx/b\t[no test files]\n", shown)
	line, ok := s.verdict(nil, true)
	require.True(t, ok)
	require.Equal(t, "tests=1 packages=1 skipped=0 postgres=used", line)
}

func TestASkipIsShownWithItsReasonAndPostgresIsMissedInCI(t *testing.T) {
	s, shown := summed(t,
		`{"Action":"pass","Package":"x/a","Test":"TestOne"}`,
		`{"Action":"output","Package":"x/a","Test":"TestTwo","Output":"=== RUN   TestTwo\n"}`,
		`{"Action":"output","Package":"x/a","Test":"TestTwo","Output":"    two_test.go:7: pgtest: skipped: no Postgres found\n"}`,
		`{"Action":"output","Package":"x/a","Test":"TestTwo","Output":"--- SKIP: TestTwo (0.00s)\n"}`,
		`{"Action":"skip","Package":"x/a","Test":"TestTwo"}`,
		`{"Action":"pass","Package":"x/a"}`)
	require.Equal(t, "skipped x/a TestTwo: pgtest: skipped: no Postgres found\n", shown)
	line, ok := s.verdict(nil, false)
	require.True(t, ok)
	require.Equal(t, "tests=1 packages=1 skipped=1 postgres=none", line)
	line, ok = s.verdict(nil, true)
	require.False(t, ok)
	require.Contains(t, line, "no test used Postgres")
}

func TestASkipFailsInCIAlone(t *testing.T) {
	s, _ := summed(t, append(passing, `{"Action":"skip","Package":"x/a","Test":"TestTwo"}`)...)
	line, ok := s.verdict(nil, false)
	require.True(t, ok)
	require.Equal(t, "tests=1 packages=1 skipped=1 postgres=used", line)
	line, ok = s.verdict(nil, true)
	require.False(t, ok)
	require.Equal(t, "skipped=1 tests=1, and CI=true", line)
}

func TestAFailureShowsItsOutputAndIsNamed(t *testing.T) {
	s, shown := summed(t, append(passing,
		`{"Action":"output","Package":"x/c","Test":"TestThree","Output":"    three_test.go:9: boom\n"}`,
		`{"Action":"fail","Package":"x/c","Test":"TestThree"}`,
		`{"Action":"output","Package":"x/c","Output":"FAIL\tx/c\t0.2s\n"}`,
		`{"Action":"fail","Package":"x/c"}`)...)
	require.Contains(t, shown, "three_test.go:9: boom\nFAIL\tx/c\t0.2s\n")
	line, ok := s.verdict(errors.New("exit status 1"), false)
	require.False(t, ok)
	require.Equal(t, "failed=1 tests=2: TestThree", line)
}

func TestAPackageThatFailsWithoutATestIsShown(t *testing.T) {
	s, shown := summed(t,
		`{"Action":"build-output","ImportPath":"x/d","Output":"d.go:1: no such thing\n"}`,
		`{"Action":"output","Package":"x/e","Output":"goleak: found a goroutine\n"}`,
		`{"Action":"fail","Package":"x/e"}`)
	require.Equal(t, "d.go:1: no such thing\ngoleak: found a goroutine\n", shown)
	line, ok := s.verdict(nil, false)
	require.False(t, ok)
	require.Equal(t, "failed=1 tests=0: e", line)
}

func TestRunsBesideEachOtherKeepTheirOutputApart(t *testing.T) {
	var shown strings.Builder
	s := newSummary(&shown)
	slow, events := io.Pipe()
	done := make(chan error)
	go func() { done <- s.read(slow) }()
	_, err := io.WriteString(events, `{"Action":"output","Package":"x/a","Test":"TestOne","Output":"of the slow run\n"}`+"\n")
	require.NoError(t, err)
	require.NoError(t, s.read(strings.NewReader(strings.Join(passing, "\n"))))
	_, err = io.WriteString(events, `{"Action":"fail","Package":"x/a","Test":"TestOne"}`+"\n")
	require.NoError(t, err)
	require.NoError(t, events.Close())
	require.NoError(t, <-done)
	require.Contains(t, shown.String(), "of the slow run\n")
	require.NotContains(t, shown.String(), "chatter")
	line, ok := s.verdict(nil, true)
	require.False(t, ok)
	require.Equal(t, "failed=1 tests=2: TestOne", line)
}

func TestARunThatTestsNothingOrBreaksOffDoesNotPass(t *testing.T) {
	s, _ := summed(t)
	line, ok := s.verdict(nil, false)
	require.False(t, ok)
	require.Equal(t, "no test was run", line)

	s, shown := summed(t, append(passing, "go: cannot find module")...)
	require.Contains(t, shown, "go: cannot find module")
	line, ok = s.verdict(errors.New("signal: killed"), false)
	require.False(t, ok)
	require.Equal(t, "go test: signal: killed", line)
}

func TestTheLastLineNamesAFewFailuresOnly(t *testing.T) {
	s, _ := summed(t)
	s.failed = []string{"A", "B", "C", "D", "E"}
	line, _ := s.verdict(nil, false)
	require.Contains(t, line, "A, B, C and 2 more")
}

func TestTheOutputKeptOfOneTestIsBounded(t *testing.T) {
	s, _ := summed(t)
	k := key{pkg: "x", test: "TestLoud"}
	for range 100 {
		s.keep(k, strings.Repeat("x", maxOutput/10))
	}
	require.LessOrEqual(t, len(s.held(k)), maxOutput*2)
}

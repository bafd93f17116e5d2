package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
)

const (
	// maxOutput is how much output of one test is kept, in bytes, in case that the test fails.
	maxOutput = 256 << 10
	// maxNamed is how many failures the last line names.
	maxNamed = 3
	// postgresUsed begins a line that internal/pgtest prints when its server was used.
	postgresUsed = "pgtest: used postgres"
)

// event is a line of go test -json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// key names a test of a run, or with an empty test its package.
type key struct {
	run       int
	pkg, test string
}

// summary counts events and shows what a reader needs to see of them. Several runs may feed it at once.
type summary struct {
	mu       sync.Mutex
	runs     int
	to       io.Writer
	output   map[key]*strings.Builder // of what has not ended
	tests    int
	packages int
	skipped  int
	failed   []string
	inTests  map[key]bool // packages in which a test failed
	postgres bool
}

func newSummary(to io.Writer) *summary {
	return &summary{to: to, output: map[key]*strings.Builder{}, inTests: map[key]bool{}}
}

// read takes the events of one run until the end of the stream. A line that is no event is shown as it is.
func (s *summary) read(from io.Reader) error {
	s.mu.Lock()
	s.runs++
	run := s.runs
	s.mu.Unlock()
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			s.line(run, line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
	}
}

// line takes one line of a run.
func (s *summary) line(run int, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var e event
	if json.Unmarshal(line, &e) != nil {
		s.show(string(line))
		return
	}
	s.take(e, key{run, e.Package, e.Test})
}

func (s *summary) take(e event, k key) {
	switch e.Action {
	case "build-output":
		s.show(e.Output)
	case "output":
		s.keep(k, e.Output)
	case "pass", "fail", "skip":
		s.end(k, e.Action)
		delete(s.output, k)
	}
}

// keep holds output back until it is known whether it matters, except for the closing line of a package.
func (s *summary) keep(k key, text string) {
	if strings.HasPrefix(text, postgresUsed) {
		s.postgres = true
	}
	if k.test == "" && closing.MatchString(text) {
		s.show(text)
		return
	}
	held := s.output[k]
	if held == nil {
		held = &strings.Builder{}
		s.output[k] = held
	}
	if held.Len() < maxOutput {
		held.WriteString(text)
	}
}

// closing matches the line that go test ends a package with.
var closing = regexp.MustCompile(`^(ok  |FAIL|\?   )\t`)

func (s *summary) end(k key, how string) {
	if k.test == "" {
		s.endPackage(k, how)
		return
	}
	s.tests++
	switch how {
	case "skip":
		s.tests--
		s.skipped++
		s.show(fmt.Sprintf("skipped %s %s: %s\n", k.pkg, k.test, s.reason(k)))
	case "fail":
		s.failed = append(s.failed, k.test)
		s.inTests[key{run: k.run, pkg: k.pkg}] = true
		s.show(s.held(k))
	}
}

// endPackage shows what a package said if it failed: a failure without a failed test is its TestMain or its build.
func (s *summary) endPackage(k key, how string) {
	if how != "skip" { // a package without tests
		s.packages++
	}
	if how != "fail" {
		return
	}
	if !s.inTests[k] {
		s.failed = append(s.failed, k.pkg[strings.LastIndex(k.pkg, "/")+1:])
	}
	s.show(s.held(k))
}

// reason is what a skipped test said, without the place and go test's own lines.
func (s *summary) reason(k key) string {
	for line := range strings.Lines(s.held(k)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "===") || strings.HasPrefix(line, "---") {
			continue
		}
		return place.ReplaceAllString(line, "")
	}
	return "no reason given"
}

var place = regexp.MustCompile(`^\S+\.go:\d+: `)

func (s *summary) held(k key) string {
	if held := s.output[k]; held != nil {
		return held.String()
	}
	return ""
}

func (s *summary) show(text string) { _, _ = io.WriteString(s.to, text) }

// verdict is the rest of the last line, and whether the run passed. runErr is how go test itself ended.
func (s *summary) verdict(runErr error, inCI bool) (line string, ok bool) {
	switch {
	case len(s.failed) > 0:
		return fmt.Sprintf("failed=%d tests=%d: %s", len(s.failed), s.tests, s.names()), false
	case runErr != nil:
		return fmt.Sprintf("go test: %v", runErr), false
	case s.tests == 0:
		return "no test was run", false
	case inCI && !s.postgres:
		return "no test used Postgres, and CI=true", false
	case inCI && s.skipped > 0:
		return fmt.Sprintf("skipped=%d tests=%d, and CI=true", s.skipped, s.tests), false
	}
	used := "none"
	if s.postgres {
		used = "used"
	}
	return fmt.Sprintf("tests=%d packages=%d skipped=%d postgres=%s", s.tests, s.packages, s.skipped, used), true
}

func (s *summary) names() string {
	if len(s.failed) <= maxNamed {
		return strings.Join(s.failed, ", ")
	}
	return strings.Join(s.failed[:maxNamed], ", ") + fmt.Sprintf(" and %d more", len(s.failed)-maxNamed)
}

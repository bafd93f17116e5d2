package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/turnd/turnd/bench/rig"
)

// breakage takes one guard out of the source, for one build of the tests that must notice.
type breakage struct {
	name string
	file string
	// old stands once in the file and is replaced by new.
	old, new string
	// pkg is tested, by the tests that run names.
	pkg, run string
}

var breakages = []breakage{
	{name: "fence_sqlite", file: "turns/sqlite/ending.go", pkg: "./turns/sqlite", run: "TestTheStoreKeepsTheContract/fence",
		old: "AND epoch = @epoch AND owner = @owner", new: "AND (1 OR epoch = @epoch AND owner = @owner)"},
	{name: "fence_postgres", file: "turns/postgres/replies.go", pkg: "./turns/postgres", run: "TestConformance/fence",
		old: "t.status = 'in_flight' AND t.epoch = i.epoch AND t.owner = i.owner", new: "t.status = 'in_flight' AND (true OR t.epoch = i.epoch AND t.owner = i.owner)"},
	{name: "index_sqlite", file: "migrations/sqlite/00001_turns.sql", pkg: "./turns/sqlite", run: "TestTheStoreKeepsTheContract/indexes",
		old: "CREATE UNIQUE INDEX one_live_reply_per_user_turn", new: "CREATE INDEX one_live_reply_per_user_turn"},
	{name: "index_postgres", file: "migrations/postgres/00001_turns.sql", pkg: "./turns/postgres", run: "TestConformance/indexes",
		old: "CREATE UNIQUE INDEX one_live_reply_per_user_turn", new: "CREATE INDEX one_live_reply_per_user_turn"},
	{name: "success_on_eof", file: "llm/wire/call.go", pkg: "./llm/anthropic", run: ".",
		old: "return c.failed(ErrNoTerminal)", new: "return nil"},
}

// broken shows that the tests can fail: each guard is taken out by an overlay, and its tests must fail by a failed test,
// not by a build that broke.
func broken(l *lab) error {
	for _, b := range breakages {
		failed, err := l.tryBroken(b)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		fmt.Printf("%s: %d tests fail: %s\n", b.name, len(failed), strings.Join(failed[:min(5, len(failed))], " "))
		figure(b.name, failed[0])
	}
	return nil
}

// tryBroken runs the tests of a broken build and gives the names of those that failed.
func (l *lab) tryBroken(b breakage) ([]string, error) {
	overlay, err := rig.Overlay(l.dir, b.name, rig.Edit{File: b.file, Old: b.old, New: b.new})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(l.ctx, "go", "test", "-json", "-count=1", "-overlay", overlay, "-run", b.run, b.pkg)
	cmd.Env = append(os.Environ(), "TURND_TEST_REQUIRE_POSTGRES=1")
	out, err := cmd.Output()
	passed, failed := outcomes(out)
	switch {
	case len(failed) > 0:
		return failed, nil
	case err != nil:
		return nil, fmt.Errorf("no test failed, the build did: %w", err)
	case passed == 0:
		return nil, errors.New("no test ran")
	}
	return nil, errors.New("all tests pass though the guard is gone")
}

// outcomes reads how many tests passed and the names of those that failed, in the order in which they ended.
func outcomes(out []byte) (passed int, failed []string) {
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e struct{ Action, Test string }
		switch err := json.Unmarshal(lines.Bytes(), &e); {
		case err != nil || e.Test == "":
		case e.Action == "pass":
			passed++
		case e.Action == "fail":
			failed = append(failed, e.Test)
		}
	}
	return passed, failed
}

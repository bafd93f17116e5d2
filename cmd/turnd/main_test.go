package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/turnd/turnd/internal/pgtest"
)

// program is the binary under test, as it is shipped.
var program string

func TestMain(m *testing.M) { pgtest.Main(built{m}) }

// built runs the tests once the binary is built.
type built struct{ m *testing.M }

// Run implements what pgtest.Main asks for.
func (b built) Run() int {
	dir, err := os.MkdirTemp("", "turnd-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "turnd")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build turnd: %v\n%s", err, out)
		return 1
	}
	return b.m.Run()
}

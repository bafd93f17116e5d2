package pgtest

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// leftoverPrefix begins the name of each folder that Start makes; the id of the process that made it follows.
const leftoverPrefix = "turnd-pgtest-"

// removeLeftovers removes the folders of test binaries that were killed before they could. Folders of processes that
// are alive, and of servers that are, stay.
func removeLeftovers(tmp string) {
	dirs, err := filepath.Glob(filepath.Join(tmp, leftoverPrefix+"*"))
	if err != nil {
		return // only a malformed pattern fails
	}
	for _, dir := range dirs {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), leftoverPrefix), "-")
		if alive(owner) || alive(postmaster(dir)) {
			continue
		}
		_ = os.RemoveAll(dir) // tidying up is a favour: whoever cannot leaves it to the next
	}
}

// postmaster is the process id in the file that a running server keeps, or empty.
func postmaster(dir string) string {
	file, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		return ""
	}
	pid, _, _ := strings.Cut(string(file), "\n")
	return pid
}

// alive tells whether a process with this id exists. What is no id belongs to nobody.
func alive(pid string) bool {
	id, err := strconv.Atoi(pid)
	if err != nil || id <= 0 {
		return false
	}
	err = syscall.Kill(id, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

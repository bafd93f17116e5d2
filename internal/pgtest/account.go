//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user that the server runs as. Its zero value is whoever runs the test.
type account struct {
	uid, gid int
	other    bool // the server runs as another user than the test does
}

// serverAccount is the user running the test, unless that is root, whom Postgres refuses.
func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		if uidErr == nil && gidErr == nil {
			return account{uid: uid, gid: gid, other: true}, nil
		}
	}
	return account{}, errors.New("postgres does not run as root, and there is neither a user postgres nor nobody")
}

// command prepares a program to run as the account, with nothing of the caller's environment but the PATH.
func (a account) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.Dir = string(filepath.Separator)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if a.other {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return cmd
}

// own gives a folder to the account.
func (a account) own(dir string) error {
	if !a.other {
		return nil
	}
	if err := os.Chown(dir, a.uid, a.gid); err != nil {
		return fmt.Errorf("give the folder to the server's user: %w", err)
	}
	return nil
}

// reachable returns a folder from which the account can run the programs in bin. Programs below a home directory that
// is closed to others are copied, with the libraries beside them, into dir.
func (a account) reachable(ctx context.Context, bin, dir string) (string, error) {
	err := a.command(ctx, filepath.Join(bin, "postgres"), "--version").Run()
	if err == nil {
		return bin, nil
	}
	if !errors.Is(err, fs.ErrPermission) || !a.other {
		return "", fmt.Errorf("try %s: %w", filepath.Join(bin, "postgres"), err)
	}
	copied := filepath.Join(dir, "programs")
	if err := os.RemoveAll(copied); err != nil {
		return "", fmt.Errorf("remove an earlier copy of the programs: %w", err)
	}
	if err := os.CopyFS(copied, os.DirFS(filepath.Dir(bin))); err != nil {
		return "", fmt.Errorf("copy the programs to where the server's user can reach them: %w", err)
	}
	return filepath.Join(copied, filepath.Base(bin)), nil
}

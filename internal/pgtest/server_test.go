package pgtest

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// open is a folder that the server's user can reach, which t.TempDir is not when the tests run as root.
func open(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "turnd-server-test-") //nolint:usetesting // t.TempDir is closed to other users
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func TestAServerKeepsItsDataAndItsLogInItsFolder(t *testing.T) {
	dir := open(t)
	server := aloneIn(t, dir, Fsync(), Setting("log_statement", "ddl"))
	conn := connect(t, server.DSN("postgres"))
	require.Equal(t, "on", ask[string](t, conn, `SHOW fsync`))
	_, err := conn.Exec(t.Context(), `CREATE TABLE kept AS SELECT 3 AS n`)
	require.NoError(t, err)
	require.NoError(t, server.Stop())
	_, err = pgx.Connect(t.Context(), server.DSN("postgres"))
	require.Error(t, err, "a stopped server takes no connections")
	log, err := os.ReadFile(server.Log())
	require.NoError(t, err)
	require.Contains(t, string(log), "CREATE TABLE kept")

	again := aloneIn(t, dir)
	require.Equal(t, 3, ask[int](t, connect(t, again.DSN("postgres")), `SELECT n FROM kept`))
}

func TestAServerForTestsListensOnLoopbackAloneAndDoesNotSync(t *testing.T) {
	conn := connect(t, Database(t))
	if shared.server == nil {
		t.Skip("TURND_TEST_DATABASE_URL names a server whose settings are its owner's")
	}
	for setting, want := range map[string]string{
		"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off", "max_connections": "200",
	} {
		require.Equal(t, want, ask[string](t, conn, `SELECT current_setting($1)`, setting), setting)
	}
}

func TestStoppingTwiceIsNoErrorAndTheMadeFolderGoes(t *testing.T) {
	server := Alone(t)
	require.DirExists(t, server.dir)
	require.NoError(t, server.Stop())
	require.NoError(t, server.Stop())
	require.NoDirExists(t, server.dir)
}

func TestAServerThatCannotStartSaysWhyAndLeavesNothing(t *testing.T) {
	if _, err := newFinder().bin(t.Context()); err != nil {
		missing(t, err, os.Getenv)
	}
	dir := open(t)
	_, err := Start(t.Context(), dir, Setting("no_such_setting", "1"))
	require.ErrorContains(t, err, "no_such_setting")
	require.NoFileExists(t, filepath.Join(dir, "data", "postmaster.pid"))
}

func TestAServerCanBeGivenUpWhileItStarts(t *testing.T) {
	if _, err := newFinder().bin(t.Context()); err != nil {
		missing(t, err, os.Getenv)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err := Start(ctx, open(t))
	require.ErrorIs(t, err, context.Canceled)
}

// childVariable makes TestAServerDiesWithTheProcessThatStartedIt play the process that is killed.
const childVariable = "TURND_TEST_PGTEST_CHILD"

func TestAServerDiesWithTheProcessThatStartedIt(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		server, err := Start(t.Context(), "")
		require.NoError(t, err)
		_, _ = os.Stdout.WriteString("child " + strconv.Itoa(server.PID()) + " " + server.dir + "\n")
		<-t.Context().Done() // never: the parent kills this process
	}
	if runtime.GOOS != "linux" {
		t.Skip("only the Linux kernel ties a process to its parent")
	}
	if _, err := newFinder().bin(t.Context()); err != nil {
		missing(t, err, os.Getenv)
	}
	pid, dir := killedChild(t)
	require.Eventually(t, func() bool { return !running(pid) }, 10*time.Second, 20*time.Millisecond)

	removeLeftovers(os.TempDir())
	require.NoDirExists(t, dir)
}

// killedChild runs this test binary until it has a server, kills it, and returns that server's process and folder.
func killedChild(t *testing.T) (pid, dir string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAServerDiesWithTheProcessThatStartedIt$")
	child.Env = append(os.Environ(), childVariable+"=1")
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 3 && words[0] == "child" {
			pid, dir = words[1], words[2]
			break
		}
	}
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	require.NotEmpty(t, pid, "the child has started no server")
	return pid, dir
}

// running tells whether a process exists and is more than an entry that nobody has waited for.
func running(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestLeftoversOfLivingProcessesStay(t *testing.T) {
	tmp := t.TempDir()
	mine := filepath.Join(tmp, leftoverPrefix+strconv.Itoa(os.Getpid())+"-1")
	// A process id above every limit of Linux belongs to nobody.
	served := filepath.Join(tmp, leftoverPrefix+"2147483646-1")
	gone := filepath.Join(tmp, leftoverPrefix+"2147483646-2")
	foreign := filepath.Join(tmp, "other-2147483646-1")
	for _, dir := range []string{mine, filepath.Join(served, "data"), filepath.Join(gone, "data"), foreign} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	pid := []byte(strconv.Itoa(os.Getpid()) + "\n" + served + "\n")
	require.NoError(t, os.WriteFile(filepath.Join(served, "data", "postmaster.pid"), pid, 0o600))

	removeLeftovers(tmp)
	require.DirExists(t, mine)
	require.DirExists(t, served)
	require.NoDirExists(t, gone)
	require.DirExists(t, foreign)
}

func TestProgramsInAClosedFolderAreCopiedForTheServersUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("without root the server's user is the caller, who can reach what the caller can")
	}
	who, err := serverAccount()
	require.NoError(t, err)
	closed, dir := t.TempDir(), open(t)
	bin := filepath.Join(closed, "native", "bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "postgres"), []byte("#!/bin/sh\necho 15\n"), 0o755))
	require.NoError(t, os.Symlink("postgres", filepath.Join(bin, "postmaster")))
	require.NoError(t, os.Chmod(closed, 0o700))
	require.NoError(t, who.own(dir))

	for range 2 { // an earlier copy is in nobody's way
		got, err := who.reachable(t.Context(), bin, dir)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(dir, "programs", "bin"), got)
		require.NoError(t, who.command(t.Context(), filepath.Join(got, "postmaster"), "--version").Run())
	}
}

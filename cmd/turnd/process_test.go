package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds every wait of these tests.
const patience = 30 * time.Second

// process is a running turnd.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    output
	err    output
	exited chan struct{}
	ready  ready
	file   string
}

// output collects what a process writes while a test reads it.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// launch runs turnd with an empty environment but for env, and kills it with the test if it still runs then.
func launch(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(program, args...), exited: make(chan struct{})}
	p.cmd.Env = append([]string{}, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("turnd %s\n%s%s", strings.Join(args, " "), p.out.String(), p.err.String())
		}
	})
	return p
}

// serve starts the demo on free ports and waits until it is ready.
func serve(t *testing.T, url string, args ...string) *process {
	t.Helper()
	return serveIn(t, nil, url, args...)
}

// serveIn is serve with an environment.
func serveIn(t *testing.T, env []string, url string, args ...string) *process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ready.json")
	args = append([]string{"serve", "--demo", "--listen", ":0", "--ops-listen", ":0", "--ready-file", file, "--database-url", url}, args...)
	p := launch(t, env, args...)
	p.file = file
	p.until(func() bool {
		raw, err := os.ReadFile(file)
		return err == nil && json.Unmarshal(raw, &p.ready) == nil
	})
	return p
}

// until waits for a condition, and fails if it does not come or the process ends first.
func (p *process) until(holds func() bool) {
	p.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-p.exited:
			require.FailNow(p.t, "turnd has ended", "%s", p.err.String())
		case <-limit:
			require.FailNow(p.t, "turnd did not get there", "%s", p.err.String())
		}
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// code waits for the end and gives the exit status.
func (p *process) code() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		require.FailNow(p.t, "turnd did not end", "%s", p.err.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

// fails runs turnd to its end and gives what it wrote to stderr.
func fails(t *testing.T, code int, env []string, args ...string) string {
	t.Helper()
	p := launch(t, env, args...)
	require.Equal(t, code, p.code(), p.err.String())
	return p.err.String()
}

// prints runs turnd to a good end and gives what it wrote to stdout.
func prints(t *testing.T, args ...string) string {
	t.Helper()
	p := launch(t, nil, args...)
	require.Equal(t, 0, p.code(), p.err.String())
	return p.out.String()
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/turnd/turnd/internal/pgtest"
)

// lab is the room a check plays in: a folder, the processes started in it, and at most one Postgres.
type lab struct {
	ctx    context.Context
	dir    string
	bin    string
	short  bool
	procs  []*process
	pg     *pgtest.Server
	pgUsed int
}

func newLab(ctx context.Context) (*lab, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "turnd-check-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // Postgres runs as a user of its own
		return nil, err
	}
	return &lab{ctx: ctx, dir: dir, bin: filepath.Join(filepath.Dir(self), "turnd"), short: os.Getenv("SHORT") != ""}, nil
}

// close ends what was started, newest first. After a failure the logs are shown before they go.
func (l *lab) close(failed bool) {
	for _, p := range slices.Backward(l.procs) {
		p.kill(syscall.SIGKILL)
		if failed {
			p.showLog()
		}
	}
	if l.pg != nil {
		_ = l.pg.Stop()
	}
	_ = os.RemoveAll(l.dir)
}

// process is one started program.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// start runs a program with an environment of nothing but PATH and HOME.
func (l *lab) start(name, program string, args ...string) (*process, error) {
	log, err := os.Create(filepath.Join(l.dir, fmt.Sprintf("%s-%d.log", name, len(l.procs))))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.dir}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{name: name, cmd: cmd, log: log.Name(), done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	l.procs = append(l.procs, p)
	return p, nil
}

// kill sends a signal and waits for the end.
func (p *process) kill(sig syscall.Signal) {
	_ = p.cmd.Process.Signal(sig)
	<-p.done
}

func (p *process) showLog() {
	data, err := os.ReadFile(p.log)
	if err != nil || len(data) == 0 {
		return
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	lines = lines[max(0, len(lines)-25):]
	fmt.Printf("--- end of the log of %s\n%s\n", p.name, bytes.Join(lines, []byte("\n")))
}

// ready is what turnd writes once it serves.
type ready struct {
	Listen string `json:"listen"`
	Ops    string `json:"ops"`
}

// awaitReady reads a ready file once it is there.
func (l *lab) awaitReady(p *process, file string) (ready, error) {
	var r ready
	err := l.until(func() (bool, error) {
		select {
		case <-p.done:
			return false, fmt.Errorf("%s ended before it was ready", p.name)
		default:
		}
		data, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return true, json.Unmarshal(data, &r)
	})
	return r, err
}

// until asks again each few milliseconds until the answer is yes, for at most a minute.
func (l *lab) until(ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(l.ctx, time.Minute)
	defer cancel()
	for {
		yes, err := ask()
		if yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("waited for a minute in vain")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// write puts a file into the lab.
func (l *lab) write(name, content string) (string, error) {
	path := filepath.Join(l.dir, name)
	return path, os.WriteFile(path, []byte(content), 0o600)
}

// stop ends a process that is no longer needed.
func (p *process) stop() { p.kill(syscall.SIGTERM) }

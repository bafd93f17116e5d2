package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/turnd/turnd/bench/rig"
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
type process struct{ *rig.Process }

// start runs a program with an environment of nothing but PATH and HOME.
func (l *lab) start(name, program string, args ...string) (*process, error) {
	p, err := rig.Start(l.dir, fmt.Sprintf("%s-%d", name, len(l.procs)), program, args...)
	if err != nil {
		return nil, err
	}
	return l.keep(p), nil
}

// keep sees to the end of a process.
func (l *lab) keep(p *rig.Process) *process {
	started := &process{p}
	l.procs = append(l.procs, started)
	return started
}

// kill sends a signal and waits for the end.
func (p *process) kill(sig syscall.Signal) {
	_ = p.Signal(sig)
	<-p.Done()
}

func (p *process) showLog() {
	if end := p.Tail(25); end != "" {
		fmt.Printf("--- end of the log of %s\n%s\n", p.Name, end)
	}
}

// awaitReady reads a ready file once it is there.
func (l *lab) awaitReady(p *process, file string) (rig.Ready, error) {
	ctx, cancel := context.WithTimeout(l.ctx, time.Minute)
	defer cancel()
	return rig.AwaitReady(ctx, p.Process, file)
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

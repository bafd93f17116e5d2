package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Process is one started program.
type Process struct {
	Name string
	// Log is the file that holds what the program wrote.
	Log string

	cmd  *exec.Cmd
	done chan struct{}
	err  error // of its end; read after done
}

// Start runs a program whose output goes to a file in dir, with an environment of nothing but PATH and HOME.
func Start(dir, name, program string, args ...string) (*Process, error) {
	return StartWith(dir, name, nil, program, args...)
}

// StartWith is Start with more in the environment, each as NAME=value.
func StartWith(dir, name string, env []string, program string, args ...string) (*Process, error) {
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()                                 // the process has its own descriptor
	cmd := exec.CommandContext(context.Background(), program, args...) // it lives until somebody ends it
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, env...)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{Name: name, Log: log.Name(), cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// ErrStubborn says that a process did not end when it was told to.
var ErrStubborn = errors.New("it did not end by itself")

// Signal sends a signal and does not wait. A process that has ended is no error.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// End sends a signal and waits for the end; after patience the process is killed. It returns how the process ended.
func (p *Process) End(sig syscall.Signal, patience time.Duration) error {
	_ = p.Signal(sig)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		_ = p.Signal(syscall.SIGKILL)
		<-p.done
		return fmt.Errorf("%s was still there %s after %s: %w", p.Name, patience, sig, ErrStubborn)
	}
	return p.err
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed once the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Tail is the end of the log, at most n lines.
func (p *Process) Tail(n int) string {
	data, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-n):], []byte("\n")))
}

// Ready is what a program of turnd writes once it serves.
type Ready struct {
	Listen string `json:"listen"`
	Ops    string `json:"ops"`
}

// AwaitReady reads a ready file once it is there.
func AwaitReady(ctx context.Context, p *Process, file string) (r Ready, err error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		data, err := os.ReadFile(file)
		if err == nil {
			return r, json.Unmarshal(data, &r)
		}
		if !errors.Is(err, os.ErrNotExist) {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, fmt.Errorf("%s is not ready: %w", p.Name, ctx.Err())
		case <-p.done:
			return r, fmt.Errorf("%s ended before it was ready:\n%s", p.Name, p.Tail(10))
		case <-tick.C:
		}
	}
}

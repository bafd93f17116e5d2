package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/turnd/turnd/bench/rig"
	"github.com/turnd/turnd/internal/pgtest"
)

// worker is one place for a turnd process, whatever process it has at the time: its links, its name and its spool stay.
type worker struct {
	name       string
	dir        string
	bin        string
	models     string
	front      *rig.Link
	toDatabase []*rig.Link // one for each server, as toHints, which carries LISTEN and NOTIFY alone
	toHints    []*rig.Link
	toProvider *rig.Link

	// busy is held by whoever does something to the process, so that two faults never strike it at once.
	busy sync.Mutex

	mu      sync.Mutex
	process *rig.Process
	starts  int
}

func newWorker(c *cluster, n int) (*worker, error) {
	w := &worker{name: fmt.Sprintf("w%d", n+1), dir: c.dir, bin: c.bin}
	var err error
	if w.front, err = rig.NewLink("127.0.0.1:1"); err != nil {
		return nil, err
	}
	for _, s := range c.database.servers {
		for _, links := range []*[]*rig.Link{&w.toDatabase, &w.toHints} {
			link, err := rig.NewLink(s.Addr())
			if err != nil {
				return nil, err
			}
			*links = append(*links, link)
		}
	}
	if w.toProvider, err = rig.NewLink(c.provider.Addr); err != nil {
		return nil, err
	}
	w.models = filepath.Join(c.dir, w.name+"-models.yaml")
	return w, os.WriteFile(w.models, []byte(fmt.Sprintf(`version: 1
default_model: anthropic
endpoints:
  one: {wire: anthropic.messages, base_url: "http://%[1]s", limits: {first_byte: 3s, idle: 2s, total: 40s}}
  two: {wire: openai.chat, base_url: "http://%[1]s", limits: {first_byte: 3s, idle: 2s, total: 40s}}
models:
  anthropic: {route: [{endpoint: one, model: demo}]}
  openai: {route: [{endpoint: two, model: demo}]}
`, w.toProvider.Addr())), 0o600)
}

// start starts a process and sends the clients' link to it.
func (w *worker) start(ctx context.Context) error {
	w.mu.Lock()
	w.starts++
	n := w.starts
	w.mu.Unlock()
	ready := filepath.Join(w.dir, fmt.Sprintf("%s-%d.json", w.name, n))
	p, err := rig.Start(w.dir, fmt.Sprintf("%s-%d", w.name, n), w.bin, "serve", "--listen", "127.0.0.1:0", "--ready-file", ready,
		"--database-url", through(w.toDatabase), "--database-direct-url", through(w.toHints), "--migrate", "off", "--models", w.models, "--worker-name", w.name,
		"--spool-dir", filepath.Join(w.dir, "spool-"+w.name), "--lease", lease.String(), "--sweep", sweep.String(),
		"--checkpoint", checkpoint.String(), "--grace", drain.String(), "--heartbeat", "1s", "--max-wait", "10s",
		"--backoff", "200ms", "--log-level", "info")
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.process = p
	w.mu.Unlock()
	r, err := rig.AwaitReady(ctx, p, ready)
	if err != nil {
		return err
	}
	w.front.SetTarget(r.Listen)
	return nil
}

// through is the address of the database by way of links.
func through(links []*rig.Link) string {
	var addrs []string
	for _, l := range links {
		addrs = append(addrs, l.Addr())
	}
	return pgtest.ManyHosts(databaseName, addrs...)
}

// startAgain starts a process until one comes up, as a supervisor would: while the database is away none does.
func (w *worker) startAgain(ctx context.Context) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := w.start(attempt)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		_ = w.end(syscall.SIGKILL)
		if !sleep(ctx, 500*time.Millisecond) {
			return errors.Join(err, ctx.Err())
		}
	}
}

// end ends the process with a signal.
func (w *worker) end(sig syscall.Signal) error {
	w.mu.Lock()
	p := w.process
	w.mu.Unlock()
	return p.End(sig, drain+25*time.Second)
}

// signal sends a signal to the process, such as one that stops it or lets it go on.
func (w *worker) signal(sig syscall.Signal) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.process.Signal(sig)
}

func (w *worker) close() {
	if w.process != nil {
		_ = w.process.End(syscall.SIGKILL, time.Second)
	}
	for _, l := range w.links() {
		l.Close()
	}
}

// links are all links of the worker.
func (w *worker) links() []*rig.Link {
	return slices.DeleteFunc(slices.Concat([]*rig.Link{w.front, w.toProvider}, w.toDatabase, w.toHints), func(l *rig.Link) bool { return l == nil })
}

// sleep waits; false says that ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

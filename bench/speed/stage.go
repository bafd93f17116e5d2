package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/turnd/turnd/bench/rig"
	"github.com/turnd/turnd/bench/speed/load"
)

// stage is where a measurement takes place: a folder, a Postgres, and the processes started there.
type stage struct {
	ctx   context.Context
	dir   string
	self  string
	turnd string
	short bool
	args  []string
	procs []*rig.Process
	pg    *database
}

// onStage makes a part of what takes place on a stage. After a failure the logs are shown before they go.
func onStage(do func(*stage) error) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		s, err := newStage(ctx)
		if err != nil {
			return err
		}
		s.args = args
		err = do(s)
		s.close(err != nil)
		return err
	}
}

func newStage(ctx context.Context) (*stage, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "turnd-speed-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // Postgres runs as a user of its own
		return nil, err
	}
	s := &stage{ctx: ctx, dir: dir, self: self, turnd: filepath.Join(filepath.Dir(self), "turnd"), short: os.Getenv("SHORT") != ""}
	if s.pg, err = startDatabase(ctx, filepath.Join(dir, "pg")); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

func (s *stage) close(failed bool) {
	for _, p := range slices.Backward(s.procs) {
		_ = p.End(syscall.SIGTERM, 10*time.Second)
		if end := p.Tail(10); failed && end != "" {
			fmt.Printf("--- end of the log of %s\n%s\n", p.Name, end)
		}
	}
	_ = s.pg.server.Stop()
	_ = os.RemoveAll(s.dir)
}

// name makes a name of its own for a process or a file.
func (s *stage) name(kind string) string { return fmt.Sprintf("%s-%d", kind, len(s.procs)) }

// server is a process that serves.
type server struct {
	*rig.Process
	rig.Ready
}

// serve starts one of this program's own servers.
func (s *stage) serve(kind string, spec served) (*server, error) {
	spec.Ready = filepath.Join(s.dir, s.name(kind)+".ready")
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	p, err := rig.Start(s.dir, s.name(kind), s.self, "serve", string(data))
	return s.await(p, spec.Ready, err)
}

func (s *stage) await(p *rig.Process, ready string, err error) (*server, error) {
	if err != nil {
		return nil, err
	}
	s.procs = append(s.procs, p)
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	r, err := rig.AwaitReady(ctx, p, ready)
	return &server{p, r}, err
}

// provider starts the scripted provider with one answer to everything.
func (s *stage) provider(plan object) (*rig.Provider, error) {
	p, err := rig.StartProvider(s.ctx, s.dir, s.name("provider"), s.turnd, object{"rules": []object{{"name": "all", "plan": plan}}})
	if err != nil {
		return nil, err
	}
	s.procs = append(s.procs, p.Process)
	return p, nil
}

// object is JSON.
type object = map[string]any

// service starts turnd on a database of its own.
func (s *stage) service(provider string, env []string, flags ...string) (*server, error) {
	dsn, err := s.pg.create(s.ctx, s.name("turnd"))
	if err != nil {
		return nil, err
	}
	return s.serviceOn(dsn, modelsOf(provider, ""), env, flags...)
}

// modelsOf is a models file of one model at a provider, with the limits of its endpoint, if any.
func modelsOf(provider, limits string) string {
	return fmt.Sprintf(`version: 1
default_model: demo
endpoints:
  one: {wire: anthropic.messages, base_url: "http://%s"%s}
models:
  demo: {route: [{endpoint: one, model: demo}]}
`, provider, limits)
}

// serviceOn starts turnd on a database that is there.
func (s *stage) serviceOn(dsn, config string, env []string, flags ...string) (*server, error) {
	name := s.name("turnd")
	models := filepath.Join(s.dir, name+".yaml")
	if err := os.WriteFile(models, []byte(config), 0o600); err != nil {
		return nil, err
	}
	ready := filepath.Join(s.dir, name+".ready")
	p, err := rig.StartWith(s.dir, name, env, s.turnd, append([]string{
		"serve", "--listen", "127.0.0.1:0", "--ready-file", ready,
		"--database-url", dsn, "--migrate", "on", "--models", models, "--spool-dir", filepath.Join(s.dir, name+".spool"),
	}, flags...)...)
	return s.await(p, ready, err)
}

// load runs one load to its end, as a process.
func (s *stage) load(spec load.Spec) (r load.Result, err error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(s.ctx, s.self, "load", string(data))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("load %s: %w", spec.Shape, err)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, fmt.Errorf("load %s: %w", spec.Shape, err)
	}
	if r.Error != "" {
		return r, fmt.Errorf("load %s: %s", spec.Shape, r.Error)
	}
	return r, nil
}

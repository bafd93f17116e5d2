package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/turnd/turnd/bench/speed/load"
)

const (
	// profiled is how long a profile is taken.
	profiled = 10 * time.Second
	// profiledStatements is how many statements are shown.
	profiledStatements = 25
)

// shapes are the loads that a profile can be taken under, by the scenes that they come from.
var shapes = map[string]struct {
	shape   string
	clients int
}{
	"streamed":  {load.Turn, streamClients},
	"submitted": {load.Submit, submitClients},
	"replayed":  {load.Replay, streamClients},
}

// profile takes profiles of turnd's CPU and allocations under the load of a scene, that of streamed turns if none is named,
// writes them beside the programs, and prints their heads, and what its statements cost Postgres.
func profile(s *stage) error {
	scene := "streamed"
	if len(s.args) > 0 {
		scene = s.args[0]
	}
	under, ok := shapes[scene]
	if !ok || len(s.args) > 1 {
		return fmt.Errorf("a profile is taken under one of %v, not %q", slices.Sorted(maps.Keys(shapes)), s.args)
	}
	plan := streamed(streamDeltas)
	if under.shape == load.Submit {
		plan["write"] = "once"
	}
	provider, err := s.provider(plan)
	if err != nil {
		return err
	}
	turnd, err := s.service(provider.Addr, nil, "--ops-listen", "127.0.0.1:0")
	if err != nil {
		return err
	}
	spec := load.Spec{
		Shape: under.shape, Target: turnd.Listen, Clients: under.clients, Deltas: streamDeltas,
		Watch: map[string]int{"turnd": turnd.PID(), "provider": provider.PID(), "postgres": s.pg.server.PID()},
	}
	warm := 2 * time.Second
	if err := s.rehearse(pace{warm: warm, window: profiled}, []entrant{{"turnd", spec}}); err != nil {
		return err
	}
	spec.Warm, spec.Window = warm, profiled
	if err := s.pg.forget(s.ctx); err != nil {
		return err
	}
	taken := make(chan error, 1)
	go func() {
		select {
		case <-time.After(warm):
		case <-s.ctx.Done():
		}
		taken <- s.take(turnd, "cpu", fmt.Sprintf("profile?seconds=%d", int(profiled.Seconds())))
	}()
	r, err := s.load(spec)
	if err := <-taken; err != nil {
		return err
	}
	if err != nil {
		return err
	}
	if err := s.take(turnd, "allocs", "allocs"); err != nil {
		return err
	}
	fmt.Printf("%.0f turns/s, CPU a turn, ms: %s\n", r.PerSecond(), cpuWords(r.CPU))
	for _, name := range []string{"cpu", "allocs"} {
		if err := s.top(name); err != nil {
			return err
		}
	}
	return s.pg.statements(s.ctx, r.Turns, profiledStatements)
}

func (s *stage) profileFile(name string) string {
	return filepath.Join(filepath.Dir(s.self), "turnd-"+name+".pprof")
}

// take writes a profile of turnd to a file.
func (s *stage) take(turnd *server, name, path string) error {
	data, err := get(s.ctx, "http://"+turnd.Ops+"/debug/pprof/"+path)
	if err != nil {
		return err
	}
	return os.WriteFile(s.profileFile(name), data, 0o644) //nolint:gosec // a profile holds no secret
}

// top prints the heads of a profile: by what functions do themselves, and with what they call.
func (s *stage) top(name string) error {
	for _, order := range []string{"-flat", "-cum"} {
		args := []string{"tool", "pprof", "-top", order, "-nodecount=40"}
		if name == "allocs" {
			args = append(args, "-sample_index=alloc_objects")
		}
		out, err := exec.CommandContext(s.ctx, "go", append(args, s.turnd, s.profileFile(name))...).Output()
		if err != nil {
			return fmt.Errorf("read the profile: %w", err)
		}
		fmt.Printf("--- %s %s\n%s", name, strings.TrimPrefix(order, "-"), out)
	}
	return nil
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/turnd/turnd/bench/rig"
	"github.com/turnd/turnd/bench/speed/load"
)

const (
	heldStreams      = 10_000
	heldStreamsShort = 500
	// connStreams is how many streams share a connection: a little less than the service allows.
	connStreams = 1000
	// openTime bounds the opening of all streams.
	openTime = 20 * time.Minute
)

// memory: what an open stream on which nothing happens takes in the process that serves it, provider's side and client's.
func (b *bench) memory() error {
	fmt.Println("--- memory")
	n := heldStreams
	if b.short {
		n = heldStreamsShort
	}
	plan := streamed(2)
	plan["steps"] = []object{{"at": "delta:1", "do": "wait", "gate": "held"}}
	held, err := b.provider(plan)
	if err != nil {
		return err
	}
	many := strconv.Itoa(2 * n)
	turnd, err := b.service(held.Addr, nil, "--ops-listen", "127.0.0.1:0", "--max-in-flight", many, "--max-queue", many)
	if err != nil {
		return err
	}
	relay, err := b.serve("relay", served{Provider: held.Addr})
	if err != nil {
		return err
	}
	relayKiB, _, err := b.hold(relay, load.Spec{Shape: load.Relay, Target: relay.Listen, Clients: n})
	if err != nil {
		return err
	}
	turndKiB, replyKiB, err := b.hold(turnd, load.Spec{Shape: load.Turn, Target: turnd.Listen, Clients: n})
	if err != nil {
		return err
	}
	b.report.note("idle_stream_kib", map[string]float64{
		"turnd": turndKiB, "relay": relayKiB, "of_a_reply": replyKiB, "of_its_stream": turndKiB - replyKiB,
	})
	b.report.add(Figure{
		Name: "idle_stream", Goal: 1.3, AtMost: true, Value: turndKiB / relayKiB,
		Of: fmt.Sprintf("of %d open streams each takes: turnd %.1f KiB (its reply %.1f, the stream itself %.1f), relay %.1f KiB",
			n, turndKiB, replyKiB, turndKiB-replyKiB, relayKiB),
	})
	// Replies go on without their clients, and a service that drains waits for them.
	return held.Control(b.ctx, http.MethodPost, "/_scripted/gates/held/open", nil, nil)
}

// hold opens streams and returns what each takes, in KiB, and what is left of each once its client has gone: of the service that is a
// reply which goes on with nobody to follow it.
func (b *bench) hold(s *server, spec load.Spec) (each, left float64, err error) {
	spec.Conns = (spec.Clients + connStreams - 1) / connStreams
	before, err := b.inUse(s)
	if err != nil {
		return 0, 0, err
	}
	ready := filepath.Join(b.dir, b.name("hold")+".ready")
	data, err := json.Marshal(spec)
	if err != nil {
		return 0, 0, err
	}
	p, err := rig.Start(b.dir, b.name("hold"), b.self, "hold", ready, string(data))
	if err != nil {
		return 0, 0, err
	}
	b.procs = append(b.procs, p)
	ctx, cancel := context.WithTimeout(b.ctx, openTime)
	defer cancel()
	if _, err := rig.AwaitReady(ctx, p, ready); err != nil {
		return 0, 0, err
	}
	after, err := b.settled(s)
	if err != nil {
		return 0, 0, err
	}
	each = float64(after-before) / 1024 / float64(spec.Clients)
	if spec.Shape == load.Turn { // for whoever wants to know what it is
		if err := b.take(s, "idle", "heap"); err != nil {
			return 0, 0, err
		}
	}
	fmt.Printf("%-10s %d open streams: %.1f KiB each\n", s.Name, spec.Clients, each)
	if err := p.End(syscall.SIGTERM, time.Minute); err != nil {
		return 0, 0, err
	}
	gone, err := b.settled(s)
	if err != nil {
		return 0, 0, err
	}
	left = max(0, float64(gone-before)/1024/float64(spec.Clients))
	fmt.Printf("%-10s once they were closed: %.1f KiB each\n", s.Name, left)
	return each, left, nil
}

const (
	// steadyLooks bounds how often it is looked whether streams are idle, or closed ones gone, each steadyEvery.
	steadyLooks = 30
	steadyEvery = time.Second
	// steadyNear is how near two looks have to be for nothing to change any more.
	steadyNear = 0.01
)

// settled is what is in use once it does not change: what the last opening or closing has left to do is done.
func (b *bench) settled(s *server) (now int64, err error) {
	last := int64(0)
	for range steadyLooks {
		if err := rest(b.ctx, steadyEvery); err != nil {
			return 0, err
		}
		if now, err = b.inUse(s); err != nil {
			return 0, err
		}
		if math.Abs(float64(last-now)) < steadyNear*float64(last) {
			return now, nil
		}
		last = now
	}
	return now, nil
}

var inUseLine = regexp.MustCompile(`(?m)^# (HeapAlloc = |Stack = )(\d+)`)

// inUse is what a process has on its heap and stacks after a collection.
func (b *bench) inUse(s *server) (sum int64, err error) {
	for range 2 { // what the first collection finds dead, such as pools, goes with the second
		page, err := get(b.ctx, "http://"+s.Ops+"/debug/pprof/heap?gc=1&debug=1")
		if err != nil {
			return 0, err
		}
		found := inUseLine.FindAllSubmatch(page, -1)
		if len(found) != 2 {
			return 0, fmt.Errorf("%s does not say what it has in use", s.Name)
		}
		sum = 0
		for _, line := range found {
			n, err := strconv.ParseInt(string(line[2]), 10, 64)
			if err != nil {
				return 0, err
			}
			sum += n
		}
	}
	return sum, nil
}

// holdProcess keeps streams open until it is told to end.
func holdProcess(ctx context.Context, args []string) error {
	var spec load.Spec
	if len(args) != 2 {
		return fmt.Errorf("holding takes a ready file and a spec, not %d arguments", len(args))
	}
	if err := json.Unmarshal([]byte(args[1]), &spec); err != nil {
		return fmt.Errorf("spec of what is held: %w", err)
	}
	return load.Hold(ctx, spec, func() error { return writeReady(args[0], rig.Ready{}) })
}

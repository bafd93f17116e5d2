package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/turnd/turnd/bench/rig"
	"github.com/turnd/turnd/bench/speed/load"
)

// bench is all scenes, each on the same stage.
type bench struct {
	*stage
	report *Report
	// many and once answer with the same text: in many pieces, each as it is made, and all in one write. long has manyMore.
	many, once, long *rig.Provider
	relay            *server // of many
	relayLong        *server // of long
}

const (
	submitClients = 256
	manyMore      = 512
	crowdWindow   = 4 * time.Second
)

// scenes in their order.
var scenes = []struct {
	name string
	play func(*bench) error
}{
	{"streamed", (*bench).streamed},
	{"submitted", (*bench).submitted},
	{"replayed", (*bench).replayed},
	{"first_delta", (*bench).firstDelta},
	{"each_delta", (*bench).eachDelta},
	{"idle_stream", (*bench).memory},
}

// benchAll plays all scenes, or those that are named.
func benchAll(s *stage) error {
	b := &bench{stage: s, report: s.newReport()}
	if err := b.setUp(); err != nil {
		return err
	}
	played := 0
	for _, scene := range scenes {
		if len(s.args) > 0 && !slices.Contains(s.args, scene.name) {
			continue
		}
		played++
		if err := scene.play(b); err != nil {
			return err
		}
	}
	if played == 0 || played < len(s.args) {
		return fmt.Errorf("there are not all of the scenes %q", s.args)
	}
	return b.report.close(s, "bench")
}

func (b *bench) setUp() (err error) {
	if b.many, err = b.provider(streamed(streamDeltas)); err != nil {
		return err
	}
	plan := streamed(streamDeltas)
	plan["write"] = "once"
	if b.once, err = b.provider(plan); err != nil {
		return err
	}
	if b.long, err = b.provider(streamed(manyMore)); err != nil {
		return err
	}
	if b.relay, err = b.serve("relay", served{Provider: b.many.Addr}); err != nil {
		return err
	}
	b.relayLong, err = b.serve("relay", served{Provider: b.long.Addr})
	return err
}

// pace is that of most scenes.
func (b *bench) pace() pace {
	if b.short {
		return pace{warm: time.Second, window: 2 * time.Second, rounds: 2}
	}
	return pace{warm: 2 * time.Second, window: 6 * time.Second, rounds: 5}
}

// scene measures the entrants and keeps what was found.
func (b *bench) scene(name string, entrants ...entrant) (rounds, error) {
	fmt.Printf("--- %s\n", name)
	p := b.pace()
	for _, e := range entrants {
		if e.spec.Clients > streamClients { // each of many waits longer
			p.window = max(p.window, crowdWindow)
		}
	}
	found, err := b.compete(p, entrants...)
	b.report.Rounds[name] = found
	return found, err
}

// against is an entrant that loads a process, whose CPU is that of "server".
func (b *bench) against(name, shape, target string, clients, deltas int, server *rig.Process) entrant {
	watch := map[string]int{"postgres": b.pg.server.PID(), "provider": b.many.PID(), "once": b.once.PID(), "long": b.long.PID()}
	if server != nil {
		watch["server"] = server.PID()
	}
	return entrant{name, load.Spec{Shape: shape, Target: target, Clients: clients, Deltas: deltas, Watch: watch}}
}

// beside starts turnd on a provider, with a database of their own for the floors that it is measured beside.
func (b *bench) beside(provider string) (turnd *server, floors string, err error) {
	if turnd, err = b.service(provider, nil); err != nil {
		return nil, "", err
	}
	floors, err = b.pg.create(b.ctx, b.name("floors"))
	return turnd, floors, err
}

// composite is what is left where one turn needs the time of several.
func composite(perSecond ...float64) float64 {
	sum := 0.0
	for _, x := range perSecond {
		sum += 1 / x
	}
	return 1 / sum
}

// streamed: whole turns whose deltas are followed, against a relay that keeps nothing and two commits that serve nobody.
func (b *bench) streamed() error {
	turnd, floors, err := b.beside(b.many.Addr)
	if err != nil {
		return err
	}
	found, err := b.scene("streamed",
		b.against("turnd", load.Turn, turnd.Listen, streamClients, streamDeltas, turnd.Process),
		b.against("relay", load.Relay, b.relay.Listen, streamClients, streamDeltas, b.relay.Process),
		b.against("two commits", load.Commits, floors, streamClients, streamDeltas, nil))
	if err != nil {
		return err
	}
	b.report.add(Figure{
		Name: "streamed", Goal: 1.1,
		Value: found.of(func(at func(string) load.Result) float64 {
			return at("turnd").PerSecond() / composite(at("relay").PerSecond(), at("two commits").PerSecond())
		}),
		Of: fmt.Sprintf("turnd %.0f/s; composite %.0f/s of relay %.0f/s, two commits %.0f/s", found.perSecond("turnd"),
			composite(found.perSecond("relay"), found.perSecond("two commits")), found.perSecond("relay"), found.perSecond("two commits")),
	})
	return nil
}

// submitted: whole turns of which only the end is followed.
func (b *bench) submitted() error {
	turnd, floors, err := b.beside(b.once.Addr)
	if err != nil {
		return err
	}
	found, err := b.scene("submitted",
		b.against("turnd", load.Submit, turnd.Listen, submitClients, streamDeltas, turnd.Process),
		b.against("one write", load.Direct, b.once.Addr, submitClients, streamDeltas, nil),
		b.against("group commit", load.Group, floors, submitClients, streamDeltas, nil),
		b.against("two calls", load.Calls, b.relay.Listen, submitClients, streamDeltas, b.relay.Process))
	if err != nil {
		return err
	}
	floor := func(at func(string) load.Result) float64 {
		return composite(at("one write").PerSecond(), at("group commit").PerSecond(), at("two calls").PerSecond())
	}
	b.report.add(Figure{
		Name: "submitted", Goal: 0.8,
		Value: found.of(func(at func(string) load.Result) float64 { return at("turnd").PerSecond() / floor(at) }),
		Of: fmt.Sprintf("turnd %.0f/s; composite %.0f/s of one write %.0f/s, group commit %.0f/s, two calls %.0f/s",
			found.perSecond("turnd"), found.of(floor), found.perSecond("one write"), found.perSecond("group commit"), found.perSecond("two calls")),
	})
	return nil
}

// replayed: finished turns that are sent again, against one indexed SELECT behind a bare server.
func (b *bench) replayed() error {
	turnd, floors, err := b.beside(b.many.Addr)
	if err != nil {
		return err
	}
	lookup, err := b.serve("lookup", served{DSN: floors, Bytes: streamDeltas * load.PieceBytes})
	if err != nil {
		return err
	}
	found, err := b.scene("replayed",
		b.against("turnd", load.Replay, turnd.Listen, streamClients, streamDeltas, turnd.Process),
		b.against("one SELECT", load.Lookup, lookup.Listen, streamClients, streamDeltas, lookup.Process))
	if err != nil {
		return err
	}
	b.report.add(Figure{
		Name: "replayed", Goal: 0.7,
		Value: found.of(func(at func(string) load.Result) float64 {
			return at("turnd").PerSecond() / at("one SELECT").PerSecond()
		}),
		Of: fmt.Sprintf("turnd %.0f/s; one SELECT %.0f/s", found.perSecond("turnd"), found.perSecond("one SELECT")),
	})
	return nil
}

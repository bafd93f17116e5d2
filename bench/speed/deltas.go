package main

import (
	"fmt"

	"github.com/turnd/turnd/bench/speed/load"
)

// graceFirst is what the first delta may be late above one commit, in milliseconds.
const graceFirst = 1

// firstDelta: how much later the first delta comes than from the provider itself, for a client that is alone. The figure is
// what is left over of a commit and a millisecond: nothing is lost while it is above 1.
func (b *bench) firstDelta() error {
	turnd, floors, err := b.beside(b.many.Addr)
	if err != nil {
		return err
	}
	found, err := b.scene("first delta",
		b.against("turnd", load.Turn, turnd.Listen, 1, streamDeltas, turnd.Process),
		b.against("provider", load.Direct, b.many.Addr, 1, streamDeltas, nil),
		b.against("two commits", load.Commits, floors, 1, streamDeltas, nil))
	if err != nil {
		return err
	}
	first := func(name string) float64 {
		return found.of(func(at func(string) load.Result) float64 { return at(name).First })
	}
	b.report.add(Figure{
		Name: "first_delta_ms", AtMost: true,
		Value: found.of(func(at func(string) load.Result) float64 { return at("turnd").First - at("provider").First }),
		Goal:  found.of(func(at func(string) load.Result) float64 { return at("two commits").First + graceFirst }),
		Of: fmt.Sprintf("added at the median: turnd %.2f ms, provider %.2f ms; the goal is one commit, %.2f ms, and %d ms",
			first("turnd"), first("provider"), first("two commits"), graceFirst),
	})
	return nil
}

// eachDelta: what each further delta costs the process in the middle. The difference of a long and a short reply leaves out
// all that a turn costs once.
func (b *bench) eachDelta() error {
	short, err := b.service(b.many.Addr, nil)
	if err != nil {
		return err
	}
	long, err := b.service(b.long.Addr, nil)
	if err != nil {
		return err
	}
	found, err := b.scene("each delta",
		b.against("turnd short", load.Turn, short.Listen, streamClients, streamDeltas, short.Process),
		b.against("turnd long", load.Turn, long.Listen, streamClients, manyMore, long.Process),
		b.against("relay short", load.Relay, b.relay.Listen, streamClients, streamDeltas, b.relay.Process),
		b.against("relay long", load.Relay, b.relayLong.Listen, streamClients, manyMore, b.relayLong.Process))
	if err != nil {
		return err
	}
	// In microseconds a delta.
	cost := func(at func(string) load.Result, who string) float64 {
		return (at(who + " long").CPU["server"] - at(who + " short").CPU["server"]) * 1000 / (manyMore - streamDeltas)
	}
	figureOf := func(who string) float64 {
		return found.of(func(at func(string) load.Result) float64 { return cost(at, who) })
	}
	b.report.add(Figure{
		Name: "each_delta", Goal: 1.3, AtMost: true,
		Value: found.of(func(at func(string) load.Result) float64 { return cost(at, "turnd") / cost(at, "relay") }),
		Of:    fmt.Sprintf("CPU a delta: turnd %.2f us, relay %.2f us", figureOf("turnd"), figureOf("relay")),
	})
	return nil
}

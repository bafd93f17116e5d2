package bustest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/live"
)

const (
	// tick is short, so that what is not hinted is read soon; never makes hints the only way.
	tick  = 20 * time.Millisecond
	never = time.Hour
)

// script is a reply in steps. Each is checkpointed and heard before the next.
var script = [][]turns.Piece{
	{{Kind: turns.KindThinking, Starts: true, Text: "hm "}, {Kind: turns.KindThinking, Text: "…", Ends: true}},
	{{Block: 1, Kind: turns.KindText, Starts: true, Text: "grüße "}, {Block: 1, Kind: turns.KindText, Text: "🦀"}},
	{{Block: 1, Kind: turns.KindText, Text: "and on"}, {Block: 1, Kind: turns.KindText, Text: " and on"}},
	{{Block: 1, Kind: turns.KindText, Ends: true}, {Block: 2, Kind: turns.KindToolUse, Starts: true, ToolUseID: "t", ToolName: "n"}},
	{{Block: 2, Kind: turns.KindToolUse, Text: "{}", Ends: true}},
}

// play makes a reply on a hub by the script, with followers on all of them: some from the start, some that come later and
// from elsewhere. All must hear the log, step by step.
func (w *world) play(owner int) {
	reply := w.shelf.add()
	log := w.hubs[owner].Open(key, reply)
	var whole []turns.Piece
	type follower struct {
		ear  *ear
		from int // the number of pieces it did not ask for
	}
	var followers []follower
	for i := range w.hubs {
		followers = append(followers, follower{w.listen(i, reply.ID, 0), 0})
	}
	for step, pieces := range script {
		for _, p := range pieces {
			require.NoError(w.t, log.Append(p))
		}
		whole = append(whole, pieces...)
		stored := w.shelf.checkpoint(reply.ID, log)
		log.Stored(stored)
		for _, f := range followers {
			w.until("a follower hears what is stored", func() bool { return f.ear.reached(stored) })
		}
		if step < 3 {
			followers = append(followers, follower{w.listen(step%len(w.hubs), reply.ID, stored), len(whole)})
		}
	}
	log.End(w.shelf.end(reply.ID))
	for _, f := range followers {
		var want string
		for _, p := range whole[f.from:] {
			want += spell(p)
		}
		w.heard(f.ear, want)
	}
}

func followersHearTheLog(t *testing.T, open Opener) {
	w := newWorld(t, tick, open(t, 3)...)
	for owner := range w.hubs {
		w.play(owner)
	}
}

func faultsChangeNothing(t *testing.T, open Opener) {
	for owner := range 3 {
		t.Run(fmt.Sprintf("hub %d owns", owner), func(t *testing.T) {
			t.Parallel()
			var buses []live.Bus
			for i, bus := range open(t, 3) {
				buses = append(buses, newFaulty(bus, faults{lose: 15, repeat: 20, hold: 20, forge: 50}, uint64(3*owner+i)))
			}
			newWorld(t, tick, buses...).play(owner)
		})
	}
}

func progressWithoutHints(t *testing.T, open Opener) {
	var buses []live.Bus
	for _, bus := range open(t, 2) {
		buses = append(buses, newFaulty(bus, faults{lose: 100}, 0))
	}
	newWorld(t, tick, buses...).play(0)
}

// hintsBringNews checkpoints until a follower elsewhere hears of it, since the first hint may come before the bus is there.
func hintsBringNews(t *testing.T, open Opener) {
	w := newWorld(t, never, open(t, 2)...)
	reply := w.shelf.add()
	log := w.hubs[0].Open(key, reply)
	e := w.listen(1, reply.ID, 0)
	require.NoError(t, log.Append(turns.Piece{Kind: turns.KindText, Starts: true}))
	w.until("a hint brings news", func() bool {
		require.NoError(t, log.Append(turns.Piece{Kind: turns.KindText, Text: "more "}))
		log.Stored(w.shelf.checkpoint(reply.ID, log))
		return e.reached(40)
	})
}

// piecesComeEarly stores nothing at all.
func piecesComeEarly(t *testing.T, open Opener) {
	buses := open(t, 2)
	if buses[0].PieceBytes() == 0 {
		return // this bus carries none
	}
	w := newWorld(t, never, buses...)
	reply := w.shelf.add()
	e := w.listen(1, reply.ID, 0)
	w.until("pieces arrive", func() bool {
		// A reply opened anew publishes from its start: the first pieces may come before the bus is there.
		log := w.hubs[0].Open(key, reply)
		require.NoError(t, log.Append(turns.Piece{Kind: turns.KindText, Starts: true, Text: "unstored"}))
		return e.reached(9)
	})
}

func stopsReachTheOwner(t *testing.T, open Opener) {
	w := newWorld(t, never, open(t, 3)...)
	reply := w.shelf.add()
	w.hubs[2].Open(key, reply)
	w.until("the owner hears of a stop", func() bool {
		w.hubs[0].HintStop(reply.ID)
		select {
		case id := <-w.stops:
			return id == reply.ID
		default:
			return false
		}
	})
}

// ledger notes what a bus tells its handler.
type ledger struct{ connected atomic.Bool }

func (*ledger) Take([]live.Hint) {}

func (l *ledger) Connected(yes bool) { l.connected.Store(yes) }

func connectionsAreTold(t *testing.T, open Opener) {
	w := newWorld(t, tick)
	bus, l := open(t, 1)[0], new(ledger)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- bus.Run(ctx, l) }()
	w.until("the bus is connected", l.connected.Load)
	cancel()
	require.NoError(t, <-done)
	require.False(t, l.connected.Load(), "a bus that has ended is not connected")
}

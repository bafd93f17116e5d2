package bustest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/live"
)

// patience is how long a check waits for what has to happen.
const patience = 30 * time.Second

// world is a store and some hubs that follow it, joined by a bus.
type world struct {
	t     *testing.T
	ctx   context.Context
	shelf *shelf
	hubs  []*live.Hub
	stops chan turns.ReplyID
	wg    sync.WaitGroup
}

// newWorld runs a hub on each bus. With a tick of an hour nothing is read but for a hint.
func newWorld(t *testing.T, tick time.Duration, buses ...live.Bus) *world {
	w := &world{t: t, shelf: newShelf(), stops: make(chan turns.ReplyID, 1)}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	w.ctx = ctx
	t.Cleanup(func() {
		cancel()
		w.wg.Wait()
	})
	for _, bus := range buses {
		hub := live.New(live.Config{Store: w.shelf, Logger: slog.New(slog.DiscardHandler), Tick: tick,
			Heartbeat: time.Minute, Patience: time.Minute, Bus: bus, OnStop: w.stopped})
		w.hubs = append(w.hubs, hub)
		w.wg.Go(func() {
			if err := hub.Run(ctx); err != nil {
				t.Errorf("a hub ended with %v", err)
			}
		})
	}
	return w
}

func (w *world) stopped(id turns.ReplyID) {
	select {
	case w.stops <- id:
	default:
	}
}

// until tries again until the answer is yes.
func (w *world) until(what string, try func() bool) {
	w.t.Helper()
	for !try() {
		select {
		case <-w.ctx.Done():
			require.Fail(w.t, "waited in vain", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// ear is one follower.
type ear struct {
	mu    sync.Mutex
	next  uint32
	said  strings.Builder
	fault string
	ends  int
	done  chan struct{}
}

// listen follows a reply on a hub from an offset.
func (w *world) listen(hub int, id turns.ReplyID, from uint32) *ear {
	e := &ear{next: from, done: make(chan struct{})}
	w.wg.Go(func() {
		defer close(e.done)
		for event, err := range w.hubs[hub].Follow(w.ctx, key, id, from) {
			e.take(event, err)
		}
	})
	return e
}

func (e *ear) take(event turns.Event, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.fault = err.Error()
		return
	}
	switch event := event.(type) {
	case turns.Grew:
		if event.Offset != e.next || e.ends > 0 {
			e.fault = fmt.Sprintf("a piece at %d after %d", event.Offset, e.next)
		}
		e.next = event.Next
		e.said.WriteString(spell(event.Piece))
	case turns.Ended:
		e.ends++
	}
}

// spell writes a piece so that it does not matter where it was cut.
func spell(p turns.Piece) string {
	var s strings.Builder
	if p.Starts {
		fmt.Fprintf(&s, "<%d %s>", p.Block, p.Kind)
	}
	s.WriteString(p.Text)
	if p.Ends {
		s.WriteString("</>")
	}
	return s.String()
}

func (e *ear) reached(offset uint32) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.next >= offset
}

// heard demands that the ear heard these pieces, no more, and one end.
func (w *world) heard(e *ear, want string) {
	w.t.Helper()
	<-e.done
	e.mu.Lock()
	defer e.mu.Unlock()
	require.Empty(w.t, e.fault)
	require.Equal(w.t, want, e.said.String())
	require.Equal(w.t, 1, e.ends, "one end")
}

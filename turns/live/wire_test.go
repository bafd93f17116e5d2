package live_test

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/live"
)

// wire is a bus in the hands of a test: it keeps what is published, and delivers what the test says.
type wire struct {
	pieceBytes int

	mu        sync.Mutex
	handler   live.Handler
	published [][]live.Hint
	watched   map[turns.ReplyID]int
}

func (w *wire) Run(ctx context.Context, h live.Handler) error {
	w.change(func() { w.handler = h })
	h.Connected(true)
	<-ctx.Done()
	return nil
}

func (w *wire) Publish(_ context.Context, hints []live.Hint) error {
	w.change(func() { w.published = append(w.published, hints) })
	return nil
}

func (w *wire) Watch(id turns.ReplyID, _ live.Topic) {
	w.change(func() {
		if w.watched == nil {
			w.watched = map[turns.ReplyID]int{}
		}
		w.watched[id]++
	})
}

func (w *wire) Unwatch(id turns.ReplyID, _ live.Topic) { w.change(func() { w.watched[id]-- }) }

func (w *wire) PieceBytes() int { return w.pieceBytes }

func (w *wire) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// sent takes what was published, each publishing by itself.
func (w *wire) sent() (all [][]live.Hint) {
	w.change(func() { all, w.published = w.published, nil })
	return all
}

// running is a hub on a wire, with its loops.
type running struct {
	*live.Hub
	*wire
	stops []turns.ReplyID
	end   func()
}

// run starts a hub on a shelf. end must be called before the bubble ends.
func run(ctx context.Context, s *shelf, pieceBytes int) *running {
	ctx, cancel := context.WithCancel(ctx)
	r := &running{wire: &wire{pieceBytes: pieceBytes}}
	r.Hub = live.New(live.Config{Store: s, Logger: slog.New(slog.DiscardHandler), Tick: 250 * time.Millisecond,
		Heartbeat: 15 * time.Second, Patience: 15 * time.Second, Bus: r.wire, MaxFollowers: 50,
		OnStop: func(id turns.ReplyID) { r.stops = append(r.stops, id) }})
	var loops sync.WaitGroup
	loops.Go(func() { _ = r.Run(ctx) })
	r.end = func() {
		cancel()
		loops.Wait()
	}
	return r
}

// follow lets somebody follow the shelf's reply from its start; what it hears is there once it ends.
func (r *running) follow(ctx context.Context, s *shelf) (heardAll func() heard) {
	var h heard
	var wg sync.WaitGroup
	wg.Go(func() { h = listen(r.Follow(ctx, key, s.reply.ID, 0), 0) })
	return func() heard {
		wg.Wait()
		return h
	}
}

// Run resolves what both parts have.
func (r *running) Run(ctx context.Context) error { return r.Hub.Run(ctx) }

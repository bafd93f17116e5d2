package live

import (
	"context"
	"slices"
	"time"

	"github.com/turnd/turnd/turns"
)

// lineBatch bounds how many turns in line one read serves.
const lineBatch = 256

// waiter is a turn that waits in line, shared by all who follow it here. It lives while it has followers.
type waiter struct {
	place turns.LinePlace
	hub   *Hub

	// Under the hub's mu. changed is closed when any of the others changes.
	followers int
	view      turns.LineView
	read      bool // view was read
	err       error
	changed   chan struct{}

	// For the loop: when the store last answered for it.
	fed time.Time
}

// joinLine gives the waiter of a turn, made if there is none. The caller must leave it.
func (h *Hub) joinLine(place turns.LinePlace) (*waiter, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leaving {
		return nil, leavingError()
	}
	w := h.inLine[place.Key][place.Turn]
	if w == nil {
		w = &waiter{place: place, hub: h, changed: make(chan struct{}), fed: time.Now()}
		if h.inLine[place.Key] == nil {
			h.inLine[place.Key] = map[turns.TurnID]*waiter{}
		}
		h.inLine[place.Key][place.Turn] = w
		h.lineMoved(place.Key)
	}
	w.followers++
	return w, nil
}

func (h *Hub) leaveLine(w *waiter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.followers--; w.followers == 0 {
		h.forgetWaiter(w)
	}
}

// forgetWaiter drops a waiter: who comes now gets another. The caller holds mu.
func (h *Hub) forgetWaiter(w *waiter) {
	line := h.inLine[w.place.Key]
	if line[w.place.Turn] != w {
		return
	}
	delete(line, w.place.Turn)
	if len(line) == 0 {
		delete(h.inLine, w.place.Key)
	}
}

// look is how a waiter stands, and where its next change shows.
func (w *waiter) look() (view turns.LineView, read bool, changed chan struct{}, err error) {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	return w.view, w.read, w.changed, w.err
}

// take notes what was read.
func (w *waiter) take(view turns.LineView) {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	if w.read && w.view == view {
		return
	}
	w.view, w.read = view, true
	close(w.changed)
	w.changed = make(chan struct{})
}

// fail lets the followers go.
func (w *waiter) fail(err error) {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	if w.err != nil {
		return
	}
	w.err = err
	w.hub.forgetWaiter(w)
	close(w.changed)
	w.changed = make(chan struct{})
}

// LineMoved implements turns.Logs.
func (h *Hub) LineMoved(key turns.ConversationKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.inLine[key] != nil {
		h.lineMoved(key)
	}
}

// lineMoved lets the loop read a line before its time. The caller holds mu.
func (h *Hub) lineMoved(key turns.ConversationKey) {
	h.moved[key] = struct{}{}
	select {
	case h.lines <- struct{}{}:
	default:
	}
}

// movedInLine takes those whose line has moved.
func (h *Hub) movedInLine() (waiters []*waiter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key := range h.moved {
		for _, w := range h.inLine[key] {
			waiters = append(waiters, w)
		}
	}
	clear(h.moved)
	return waiters
}

// allInLine are all that are followed in line. The caller holds mu.
func (h *Hub) allInLine() (waiters []*waiter) {
	for _, line := range h.inLine {
		for _, w := range line {
			waiters = append(waiters, w)
		}
	}
	return waiters
}

// lineLoop reads where all turns stand that are followed in line here, each tick and when something is known to have moved.
func (h *Hub) lineLoop(ctx context.Context) {
	ticker := time.NewTicker(h.cfg.Tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			h.mu.Lock()
			all := h.allInLine()
			h.mu.Unlock()
			h.feedLines(ctx, all)
		case <-h.lines:
			h.feedLines(ctx, h.movedInLine())
			if !pause(ctx, feedGap) {
				return
			}
		}
	}
}

func (h *Hub) feedLines(ctx context.Context, waiters []*waiter) {
	for batch := range slices.Chunk(waiters, lineBatch) {
		h.feedLineBatch(ctx, batch)
	}
}

func (h *Hub) feedLineBatch(ctx context.Context, waiters []*waiter) {
	places := make([]turns.LinePlace, len(waiters))
	for i, w := range waiters {
		places[i] = w.place
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Patience)
	defer cancel()
	views, err := h.cfg.Store.ReadLine(ctx, places)
	if err != nil {
		h.cfg.Logger.Warn("places in line not read", "turns", len(waiters), "err", err)
	}
	for i, w := range waiters {
		switch {
		case err == nil:
			w.fed = time.Now()
			w.take(views[i])
		case time.Since(w.fed) > h.cfg.Patience:
			w.fail(turns.Unavailable(err)) // they follow again, maybe elsewhere
		}
	}
}

// await follows a turn in line until it has a reply, which is the follower's from then on.
func (f *follower) await(turn turns.TurnID) error {
	w, err := f.hub.joinLine(turns.LinePlace{Key: f.key, Turn: turn})
	if err != nil {
		return err
	}
	defer f.hub.leaveLine(w)
	heartbeat := time.NewTimer(f.hub.cfg.Heartbeat)
	defer heartbeat.Stop()
	for shown := -1; ; {
		view, read, changed, err := w.look()
		switch {
		case err != nil:
			return err
		case read && (!view.Found || !view.Waiting && view.Reply.IsZero()):
			return f.noTurn(turn)
		case read && !view.Waiting:
			f.id = view.Reply
			return nil
		case read && view.Position != shown:
			if shown = view.Position; !f.emit(turns.Queued{Position: shown}) {
				return nil
			}
			heartbeat.Reset(f.hub.cfg.Heartbeat)
		}
		select {
		case <-f.ctx.Done():
			return context.Cause(f.ctx)
		case <-changed:
		case <-heartbeat.C:
			if !f.emit(turns.Heartbeat{}) {
				return nil
			}
			heartbeat.Reset(f.hub.cfg.Heartbeat)
		}
	}
}

// noTurn says why a turn is not in line any more and has no reply.
func (f *follower) noTurn(turn turns.TurnID) error {
	if _, err := f.hub.cfg.Store.FindTurn(f.ctx, f.key, turn.Row()); err != nil {
		return err
	}
	return turns.NotFound("turn", "turn_id")
}

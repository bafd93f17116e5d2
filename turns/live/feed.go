package live

import (
	"context"
	"slices"
	"time"

	"github.com/turnd/turnd/turns"
)

const (
	// mirrorBatch bounds how many mirrors one read serves, mirrorPage how much of a log it brings.
	mirrorBatch = 256
	mirrorPage  = 256 << 10
	// patrol is how often a mirror is read of which nothing is heard.
	patrol = time.Second
	// leastMark is the least time for which a reply's owner is told that it is followed here: it must outlast the wait for
	// the next mark.
	leastMark = 3 * patrol
	// feedGap is the least time between two reads for hints: what comes meanwhile is read at once.
	feedGap = 5 * time.Millisecond
)

// attach gives the mirror of a reply if there is one. The caller must leave it.
func (h *Hub) attach(key turns.ConversationKey, id turns.ReplyID) *mirror {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.mirrors[id]
	if m == nil || m.log.key != key {
		return nil
	}
	m.followers++
	return m
}

// join gives the mirror of a reply in flight, made from the row just read if there is none. The caller must leave it. A new
// mirror is read once more as soon as the bus was asked for its hints: none is missed in between.
func (h *Hub) join(key turns.ConversationKey, reply turns.Reply) (*mirror, error) {
	m, err := newMirror(h, key, reply)
	if err != nil {
		return nil, err
	}
	h.cfg.Bus.Watch(reply.ID, TopicNews)
	h.mu.Lock()
	if h.leaving {
		h.mu.Unlock()
		h.cfg.Bus.Unwatch(reply.ID, TopicNews)
		return nil, leavingError()
	}
	if old := h.mirrors[reply.ID]; old != nil {
		old.followers++
		h.mu.Unlock()
		h.cfg.Bus.Unwatch(reply.ID, TopicNews)
		return old, nil
	}
	h.mirrors[reply.ID] = m
	m.followers++
	h.mu.Unlock()
	h.readSoon(m)
	return m, nil
}

func (h *Hub) leave(m *mirror) {
	h.mu.Lock()
	m.followers--
	id, last := m.log.id, m.followers == 0
	if last && h.mirrors[id] == m {
		delete(h.mirrors, id)
	}
	h.mu.Unlock()
	if last {
		h.cfg.Bus.Unwatch(id, TopicNews)
	}
}

// feedLoop reads the store for mirrors: those that are hinted at once, the others when their time has come.
func (h *Hub) feedLoop(ctx context.Context) {
	ticker := time.NewTicker(h.cfg.Tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			h.feed(ctx, h.dueMirrors())
		case <-h.news:
			h.feed(ctx, h.hintedMirrors())
			if !pause(ctx, feedGap) {
				return
			}
		}
	}
}

// pause waits, or reports that ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// hintedMirrors takes those that are to be read before their time.
func (h *Hub) hintedMirrors() []*mirror {
	h.mu.Lock()
	defer h.mu.Unlock()
	var alive []*mirror
	for _, m := range h.hinted {
		m.hinted = false
		if h.mirrors[m.log.id] == m {
			alive = append(alive, m)
		}
	}
	h.hinted = nil
	return alive
}

// dueMirrors are those that were not read for a while: for a tick while the bus brings no hints.
func (h *Hub) dueMirrors() []*mirror {
	wait := patrol - h.cfg.Tick/2 // a ticker is a little early or late
	if !h.connected.Load() {
		wait = 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	due := make([]*mirror, 0, len(h.mirrors))
	for _, m := range h.mirrors {
		if time.Since(m.asked) >= wait {
			due = append(due, m)
		}
	}
	return due
}

func (h *Hub) feed(ctx context.Context, mirrors []*mirror) {
	for batch := range slices.Chunk(mirrors, mirrorBatch) {
		h.feedBatch(ctx, batch)
	}
}

func (h *Hub) feedBatch(ctx context.Context, mirrors []*mirror) {
	positions := make([]turns.LogPosition, len(mirrors))
	for i, m := range mirrors {
		positions[i] = turns.LogPosition{Key: m.log.key, Reply: m.log.id, From: m.stored(), Max: mirrorPage}
		m.asked = time.Now()
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Patience)
	defer cancel()
	views, err := h.cfg.Store.ReadLogs(ctx, positions)
	if err != nil {
		h.starve(mirrors, err)
		return
	}
	now := time.Now()
	var marks []turns.FollowMark
	for i, m := range mirrors {
		m.fed = now
		if m.take(views[i]) {
			h.readSoon(m)
		}
		if lasts := markFor(views[i].Reply.DisconnectGrace); lasts > 0 && now.Sub(m.marked) >= lasts/3 {
			m.marked = now
			marks = append(marks, turns.FollowMark{Key: m.log.key, Reply: m.log.id, For: lasts})
		}
	}
	h.mark(ctx, marks)
}

// markFor is how long a mark is good, for a reply that ends when it was not followed for a grace; 0 is a reply that needs
// none.
func markFor(grace time.Duration) time.Duration {
	if grace <= 0 {
		return 0
	}
	return max(grace, leastMark)
}

// stored is how far the mirror was read from the store.
func (m *mirror) stored() uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known
}

// mark tells the owners of replies that end when their last follower leaves that they are followed here. A mark that is
// lost is made up for by the next, of which there are three in the time that one is good.
func (h *Hub) mark(ctx context.Context, marks []turns.FollowMark) {
	if len(marks) == 0 {
		return
	}
	if err := h.cfg.Store.MarkFollowed(ctx, marks); err != nil {
		h.cfg.Logger.Warn("followers not announced to the owner", "replies", len(marks), "err", err)
	}
}

// starve lets followers go once the store has been silent for too long: they follow again, maybe elsewhere.
func (h *Hub) starve(mirrors []*mirror, err error) {
	h.cfg.Logger.Warn("mirrors not fed", "mirrors", len(mirrors), "err", err)
	for _, m := range mirrors {
		if time.Since(m.fed) > h.cfg.Patience {
			m.log.Move() // they resolve the reply again, which fails while the store is away
		}
	}
}

package live

import (
	"context"
	"time"

	"github.com/turnd/turnd/turns"
)

// mirrorBatch bounds how many mirrors one read serves.
const mirrorBatch = 256

// mirror is a log fed from the store, shared by all who follow the reply here. It lives while it has followers.
type mirror struct {
	log       *Log
	followers int
	// fed is when the store last answered for it.
	fed time.Time
	// marked is when the owner was last told that the reply is followed here.
	marked time.Time
}

// join gives the mirror of a reply in flight, made from the row just read if there is none. The caller must leave it.
func (h *Hub) join(key turns.ConversationKey, reply turns.Reply) (*mirror, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.mirrors[reply.ID]
	if m == nil {
		log := newLog(h, key, reply, false)
		for _, p := range reply.Content {
			if err := log.log.Append(p); err != nil {
				return nil, err
			}
		}
		m = &mirror{log: log, fed: time.Now()}
		h.mirrors[reply.ID] = m
	}
	m.followers++
	return m, nil
}

func (h *Hub) leave(m *mirror) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m.followers--
	if id := m.log.id; m.followers == 0 && h.mirrors[id] == m {
		delete(h.mirrors, id)
	}
}

// Run feeds the mirrors, each tick, until ctx ends.
func (h *Hub) Run(ctx context.Context) error {
	ticker := time.NewTicker(h.cfg.Tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			h.feed(ctx)
		}
	}
}

// feed reads what is new for every mirror.
func (h *Hub) feed(ctx context.Context) {
	h.mu.Lock()
	mirrors := make([]*mirror, 0, len(h.mirrors))
	for _, m := range h.mirrors {
		mirrors = append(mirrors, m)
	}
	h.mu.Unlock()
	for len(mirrors) > 0 {
		n := min(len(mirrors), mirrorBatch)
		h.feedBatch(ctx, mirrors[:n])
		mirrors = mirrors[n:]
	}
}

func (h *Hub) feedBatch(ctx context.Context, mirrors []*mirror) {
	positions := make([]turns.LogPosition, len(mirrors))
	for i, m := range mirrors {
		positions[i] = turns.LogPosition{Key: m.log.key, Reply: m.log.id, From: m.log.Len()}
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
		m.log.take(views[i])
		if grace := views[i].Reply.DisconnectGrace; grace > 0 && now.Sub(m.marked) >= grace/3 {
			m.marked = now
			marks = append(marks, turns.FollowMark{Key: m.log.key, Reply: m.log.id, For: grace})
		}
	}
	h.mark(ctx, marks)
}

// mark tells the owners of replies that end when their last follower leaves that they are followed here. A mark that is
// lost is made up for by the next, of which there are three in a grace.
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

// take grows a mirror by what was read. A row that is gone, or bytes that don't fit, let the followers resolve the
// reply again.
func (l *Log) take(v turns.LogView) {
	if v.Reply.ID.IsZero() {
		l.Move()
		return
	}
	length := l.Len()
	for _, p := range v.Pieces {
		length += p.Len()
	}
	if length != v.Reply.Length {
		l.Move() // the stored log is another than the one that was mirrored
		return
	}
	for _, p := range v.Pieces {
		if err := l.Append(p); err != nil {
			l.Move()
			return
		}
	}
	if v.Reply.Status.Terminal() {
		l.End(v.Reply)
	}
}

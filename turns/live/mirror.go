package live

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/turnd/turnd/turns"
)

const (
	// maxAhead bounds how far a mirror may run ahead of what is stored.
	maxAhead = 1 << 20
	// maxParked bounds the bytes that wait, and maxParkedHints the hints, for what comes before them.
	maxParked      = 256 << 10
	maxParkedHints = 1024
)

// mirror is the log of a reply that another worker runs, shared by all who follow it here. It lives while it has followers.
// It grows by what is stored and by what the bus brings, and knows which of its bytes are stored.
type mirror struct {
	log *Log

	// Under the hub's mu.
	followers int
	hinted    bool

	// For the feeding loop: when the store last answered for it, when it was last asked, and when the owner was last told
	// that the reply is followed here.
	fed, asked, marked time.Time

	mu sync.Mutex
	// epoch is the row's, as last read, and known how far the log was read from the store.
	epoch int64
	known uint32
	// parked are hints whose pieces begin past the log's end, by offset.
	parked      []Hint
	parkedBytes uint64
	// late is when the owner got the oldest text that a hint said is stored, and that was not read yet.
	late time.Time
}

func newMirror(h *Hub, key turns.ConversationKey, reply turns.Reply) (*mirror, error) {
	m := &mirror{log: newLog(h, key, reply, false), fed: time.Now(), epoch: reply.Epoch}
	if err := m.log.extend(reply.Content, time.Time{}, viaStore); err != nil {
		return nil, err
	}
	m.known = m.log.Len()
	m.log.trimTo(m.known)
	return m, nil
}

// hear takes a hint and says whether the store should be read for it.
func (m *mirror) hear(h Hint) (read bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.Epoch == m.epoch && len(h.Pieces) > 0 {
		m.grow(h)
	}
	if h.Length > m.log.Len() && m.late.IsZero() {
		m.late = h.At
	}
	return h.Ended || h.Epoch > m.epoch || h.Length > m.log.Len()
}

// grow takes the pieces of a hint if they fit the log's end, and keeps them for later if they lie past it. The caller holds
// mu.
func (m *mirror) grow(h Hint) {
	if h.From > m.log.Len() {
		m.park(h)
		return
	}
	m.join(h)
	m.unpark()
}

// join appends what a hint holds past the log's end. What doesn't fit is left to the store. The caller holds mu.
func (m *mirror) join(h Hint) {
	end := uint64(h.From) + lengthOf(h.Pieces)
	if end > uint64(m.known)+maxAhead {
		return
	}
	rest, err := partFrom(h.Pieces, h.From, m.log.Len())
	if err == nil {
		_ = m.log.extend(rest, h.At, viaBus) // pieces that make no log are compared with the store's as far as they were taken
	}
}

// park keeps a hint, dropping those furthest ahead if there is no room. The caller holds mu.
func (m *mirror) park(h Hint) {
	at, _ := slices.BinarySearchFunc(m.parked, h.From, func(p Hint, from uint32) int { return int(int64(p.From) - int64(from)) })
	m.parked = slices.Insert(m.parked, at, h)
	m.parkedBytes += lengthOf(h.Pieces)
	for len(m.parked) > maxParkedHints || m.parkedBytes > maxParked {
		last := m.parked[len(m.parked)-1]
		m.parkedBytes -= lengthOf(last.Pieces)
		m.parked = m.parked[:len(m.parked)-1]
	}
}

// unpark joins what was waiting for the log's present end. The caller holds mu.
func (m *mirror) unpark() {
	n := 0
	for n < len(m.parked) && m.parked[n].From <= m.log.Len() {
		m.join(m.parked[n])
		m.parkedBytes -= lengthOf(m.parked[n].Pieces)
		n++
	}
	m.parked = slices.Delete(m.parked, 0, n)
}

// take grows the mirror by what was read at known, and says whether the row has more than was read. Where the store does
// not go on from what was mirrored, the followers resolve the reply again.
func (m *mirror) take(v turns.LogView) (more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	end := uint64(v.From) + lengthOf(v.Pieces)
	if v.Reply.ID.IsZero() || v.From > m.known || end > uint64(v.Reply.Length) || v.Reply.Length < m.known {
		m.log.Move() // the row is gone, or its log is another than the one that was mirrored
		return false
	}
	fresh, err := partFrom(v.Pieces, v.From, m.known)
	shown, shownTo := m.log.Tail(m.known)
	if err != nil || !agree(fresh, shown) {
		m.spoil(m.known)
		return false
	}
	rest, err := partFrom(fresh, m.known, shownTo)
	if err == nil {
		err = m.log.extend(rest, m.late, viaStore)
		m.late = time.Time{}
	}
	switch {
	case errors.Is(err, errClosed):
		return false // it moved meanwhile
	case err != nil:
		m.spoil(m.known)
		return false
	}
	if m.epoch != v.Reply.Epoch {
		m.epoch, m.parked, m.parkedBytes = v.Reply.Epoch, nil, 0
	}
	if more = end < uint64(v.Reply.Length); more && end <= uint64(m.known) {
		m.log.Move() // a part is missing, and asking again and again would not bring it
		return false
	}
	m.known = max(m.known, uint32(end))
	if more {
		return true
	}
	m.settle(v.Reply)
	return false
}

// settle goes on once everything that is stored was read. The caller holds mu.
func (m *mirror) settle(row turns.Reply) {
	switch {
	case !row.Status.Terminal():
		m.unpark()
		m.log.trimTo(m.known)
	case row.Status == turns.StatusComplete && m.log.Len() > row.Length:
		m.spoil(row.Length)
	default:
		m.log.End(row)
	}
}

// spoil lets go of followers of a log that showed what is not stored. The caller holds mu.
func (m *mirror) spoil(known uint32) {
	m.log.hub.cfg.Logger.Warn("a mirror showed what the store does not hold; its followers begin again",
		"reply_id", m.log.id.String(), "offset", known)
	m.log.spoil(known)
}

// handOver lets the followers go on with the owner's log, which begins with what is stored, of this length. What was shown
// past it is not known to be what comes next.
func (m *mirror) handOver(stored uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.log.Len() > stored {
		m.spoil(stored)
		return
	}
	m.log.Move()
}

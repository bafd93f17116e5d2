package webhook

import (
	"sync"
	"time"
)

// remembered is how long an id is known: a message of the farthest future that is taken is in time for two windows.
const remembered = 2 * Window

// maxRemembered bounds the ids that are known at once. The oldest are forgotten first; what is repeated then only asks once
// more.
const maxRemembered = 1 << 14

// Memory knows the ids of messages that were taken. The zero value is ready.
type Memory struct {
	mu    sync.Mutex
	until map[string]time.Time
	// order are the ids in the order in which they came; one that was forgotten before its time may still be among them.
	order []entry
}

type entry struct {
	id    string
	until time.Time
}

// Take remembers an id and reports whether it is new.
func (m *Memory) Take(id string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.until == nil {
		m.until = map[string]time.Time{}
	}
	for len(m.order) > 0 && (len(m.order) >= maxRemembered || !m.order[0].until.After(now)) {
		if oldest := m.order[0]; m.until[oldest.id].Equal(oldest.until) {
			delete(m.until, oldest.id)
		}
		m.order = m.order[1:]
	}
	if _, known := m.until[id]; known {
		return false
	}
	e := entry{id, now.Add(remembered)}
	m.until[id], m.order = e.until, append(m.order, e)
	return true
}

// Forget lets an id be taken again: what it asked for was not done.
func (m *Memory) Forget(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.until, id)
}

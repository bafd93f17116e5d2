package live

import (
	"maps"
	"slices"
	"time"

	"github.com/turnd/turnd/turns"
)

// Drain lets go of those who follow replies of other workers or turns in line, and turns away who comes for one, with CodeDraining: they
// follow again on another worker. Replies that run here, and those that have ended, are followed to their end.
func (h *Hub) Drain() {
	h.mu.Lock()
	h.leaving = true
	mirrors := slices.Collect(maps.Values(h.mirrors))
	waiters := h.allInLine()
	h.mu.Unlock()
	for _, w := range waiters {
		w.fail(leavingError())
	}
	for _, m := range mirrors {
		m.log.Move() // its followers look for the reply again, and are turned away if it still runs
	}
}

func (h *Hub) isLeaving() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leaving
}

func leavingError() error {
	return &turns.Error{Code: turns.CodeDraining, Problem: "this worker is shutting down; follow again on another",
		RetryAfter: 100 * time.Millisecond}
}

package live

import (
	"context"
	"slices"
	"sync"

	"github.com/turnd/turnd/turns"
)

// Memory joins the hubs of one process. Each hub needs an end of its own. A hint is delivered by the time Publish returns.
type Memory struct {
	pieceBytes int

	mu   sync.Mutex
	ends []*MemoryEnd
}

// NewMemory makes one whose hints carry about so many bytes of pieces, 0 for none.
func NewMemory(pieceBytes int) *Memory { return &Memory{pieceBytes: pieceBytes} }

// End makes the bus of one hub.
func (m *Memory) End() *MemoryEnd { return &MemoryEnd{between: m} }

// MemoryEnd is a Bus.
type MemoryEnd struct {
	between *Memory
	handler Handler // set while it runs
}

// Run implements Bus.
func (e *MemoryEnd) Run(ctx context.Context, h Handler) error {
	e.between.change(func(ends []*MemoryEnd) []*MemoryEnd {
		e.handler = h
		return append(ends, e)
	})
	h.Connected(true)
	<-ctx.Done()
	e.between.change(func(ends []*MemoryEnd) []*MemoryEnd {
		return slices.DeleteFunc(ends, func(other *MemoryEnd) bool { return other == e })
	})
	h.Connected(false)
	return nil
}

func (m *Memory) change(f func([]*MemoryEnd) []*MemoryEnd) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ends = f(m.ends)
}

// Publish implements Bus.
func (e *MemoryEnd) Publish(_ context.Context, hints []Hint) error {
	e.between.mu.Lock()
	others := make([]Handler, 0, len(e.between.ends))
	for _, other := range e.between.ends {
		if other != e {
			others = append(others, other.handler)
		}
	}
	e.between.mu.Unlock()
	for _, h := range others {
		h.Take(hints)
	}
	return nil
}

// Watch implements Bus.
func (e *MemoryEnd) Watch(turns.ReplyID, Topic) {}

// Unwatch implements Bus.
func (e *MemoryEnd) Unwatch(turns.ReplyID, Topic) {}

// PieceBytes implements Bus.
func (e *MemoryEnd) PieceBytes() int { return e.between.pieceBytes }

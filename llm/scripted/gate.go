package scripted

import "errors"

// errTooManyGates keeps the names that a control client makes up within bounds.
var errTooManyGates = errors.New("too many gates: reset first")

// gate holds what arrives until it is opened; then it lets everything pass until the next reset.
type gate struct {
	opened  chan struct{}
	isOpen  bool
	arrived int
}

// gate returns a gate by name, or nil when there are too many. The book's mutex is held.
func (b *book) gate(name string) *gate {
	g, known := b.gates[name]
	if !known && len(b.gates) < maxGates {
		g = &gate{opened: make(chan struct{})}
		b.gates[name] = g
	}
	return g
}

// arrive announces an arrival and returns what is closed when the gate is open. A gate beyond the bound never opens.
func (b *book) arrive(name string) <-chan struct{} {
	var opened chan struct{}
	b.change(func() {
		if g := b.gate(name); g != nil {
			g.arrived++
			opened = g.opened
		}
	})
	return opened
}

func (b *book) openGate(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.gate(name)
	if g == nil {
		return errTooManyGates
	}
	if !g.isOpen {
		g.isOpen = true
		close(g.opened)
	}
	return nil
}

// hasArrived says that n arrivals were announced since the reset. The book's mutex is held.
func (b *book) hasArrived(name string, n int) bool {
	g, known := b.gates[name]
	return known && g.arrived >= n || n == 0
}

package scripted

// bell wakes everybody who waits for a change. It is guarded by the mutex of what it belongs to, and costs nothing while
// nobody waits.
type bell struct{ next chan struct{} }

// wait returns a channel that the next ring closes.
func (b *bell) wait() <-chan struct{} {
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *bell) ring() {
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

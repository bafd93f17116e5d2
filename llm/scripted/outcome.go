package scripted

import "context"

// outcome is what became of a generation.
type outcome int

const (
	outcomeNone      outcome = iota // it runs
	outcomeWhole                    // its terminal event is in the log
	outcomeFailed                   // its error event is
	outcomeStopped                  // its clients had gone, or the era was cut
	outcomeCancelled                // somebody asked for its end
)

// end notes the first outcome and its time. The mutex is held.
func (g *generation) end(o outcome) {
	if g.outcome == outcomeNone {
		g.outcome, g.ended = o, g.book.now()
	}
}

// cancel ends a generation that runs, and returns when nothing of it runs any more, or the context ends.
func (g *generation) cancel(ctx context.Context) {
	g.mu.Lock()
	g.end(outcomeCancelled)
	cancelled := g.outcome == outcomeCancelled
	g.mu.Unlock()
	if !cancelled {
		return
	}
	g.stop()
	for {
		g.mu.Lock()
		closed, changed := g.closed, g.changed.wait()
		g.mu.Unlock()
		if closed || !await(ctx, changed) {
			return
		}
	}
}

// cutShort is the end of a connection whose generation was cancelled under it: the log ends without a last event.
func (g *generation) cutShort() End {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.outcome == outcomeCancelled {
		return EndClosed
	}
	return ""
}

// attach adds a reader, whatever became of the generation.
func (g *generation) attach() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readers++
}

// now is what a generation has come to: its outcome, the kind of its failure, and its log so far.
func (g *generation) now() (outcome, string, []item) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.outcome, g.failure, g.items
}

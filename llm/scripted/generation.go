package scripted

import (
	"context"
	"sync"
	"time"
)

// itemKind is what an item in a generation's log stands for.
type itemKind int

const (
	itemHeaders  itemKind = iota // the response may start
	itemBegin                    // the opening event
	itemPiece                    // a part of the content
	itemWrapUp                   // why it ended, and usage
	itemTerminal                 // the terminal event
	itemFailure                  // the error event, instead of the rest
	itemStep                     // a step that the owner's connection plays
)

// item is an entry in the log of a generation.
type item struct {
	kind   itemKind
	piece  piece
	totals totals // of a wrap-up
	step   Step   // of a step or a failure
}

// generation produces one reply into a log that any number of exchanges read at their own pace. The call that caused it is
// its owner: its connection-level steps lie in the log at their place.
type generation struct {
	id      string
	created int64
	req     request
	plan    Plan
	owner   *record
	book    *book
	ctx     context.Context
	stop    context.CancelFunc

	mu      sync.Mutex
	changed bell
	items   []item // append-only, so a slice handed out stays valid
	closed  bool   // nothing more will be appended
	failed  bool   // ended before its terminal event
	outcome outcome
	ended   time.Time // when outcome came
	failure string    // the kind of an error event
	readers int
	// ownerAt is how many items the owner's exchange has dealt with; negative once it will deal with no more.
	ownerAt int
}

// roomAhead bounds the room that is made for a log before it is known to fill it; framing is what stands around the deltas.
const (
	roomAhead = 1024
	framing   = 8
)

// newGeneration is born with its owner as the only reader; produce must be started.
func newGeneration(ctx context.Context, b *book, owner *record, req request, plan Plan, id string) *generation {
	ctx, stop := context.WithCancel(ctx)
	g := &generation{
		id: id, created: b.now().Unix(), req: req, plan: plan.on(req.wire), owner: owner, book: b, ctx: ctx, stop: stop, readers: 1,
	}
	if r := g.plan.Reply; r != nil {
		g.items = make([]item, 0, min(r.Deltas, roomAhead)+framing)
	}
	return g
}

// produce runs to the end of the plan, to an error event, or until the generation is stopped.
func (g *generation) produce() {
	defer g.stop()
	ended := g.open() && g.speak()
	g.close(!ended)
	g.book.generationOver(g.owner)
}

// open goes up to the point before the first delta.
func (g *generation) open() bool {
	if !g.reach(AtBeforeHeaders) {
		return false
	}
	g.append(item{kind: itemHeaders})
	if !g.reach(AtAfterHeaders) {
		return false
	}
	g.append(item{kind: itemBegin})
	return g.reach(AfterDelta(0))
}

// speak says the content and the end. A delta is counted before it is appended.
func (g *generation) speak() bool {
	var sum totals
	for p := range g.plan.pieces() {
		if !p.isDelta() {
			g.append(item{kind: itemPiece, piece: p})
			continue
		}
		if !g.pace() {
			return false
		}
		g.book.generated(g.owner)
		g.append(item{kind: itemPiece, piece: p})
		sum.output++
		if p.kind == pieceThinking {
			sum.thinking++
		}
		if !g.reach(AfterDelta(sum.output)) {
			return false
		}
	}
	g.append(item{kind: itemWrapUp, totals: sum})
	if !g.reach(AtBeforeTerminal) {
		return false
	}
	g.append(item{kind: itemTerminal})
	g.reach(AtAfterTerminal)
	return true
}

// reach plays the steps at a point. False ends the generation.
func (g *generation) reach(at Point) bool {
	for _, step := range g.plan.Steps {
		if step.At != at {
			continue
		}
		switch step.Do {
		case DoWait:
			if !g.wait(step.Gate) {
				return false
			}
		case DoErrorEvent:
			g.append(item{kind: itemFailure, step: step})
			return false
		default:
			g.append(item{kind: itemStep, step: step})
		}
	}
	return g.ctx.Err() == nil
}

// wait arrives at a gate when the owner has written all that comes before it, or is gone.
func (g *generation) wait(gate string) bool {
	for {
		g.mu.Lock()
		if g.ownerAt < 0 || g.ownerAt == len(g.items) {
			g.mu.Unlock()
			break
		}
		changed := g.changed.wait()
		g.mu.Unlock()
		if !await(g.ctx, changed) {
			return false
		}
	}
	return await(g.ctx, g.book.arrive(gate))
}

// pace pauses before a delta. False is that the generation was stopped.
func (g *generation) pace() bool {
	if g.plan.PaceMS == 0 {
		return g.ctx.Err() == nil
	}
	timer := time.NewTimer(time.Duration(g.plan.PaceMS) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-g.ctx.Done():
		return false
	}
}

// await returns false when the context ended first.
func await(ctx context.Context, c <-chan struct{}) bool {
	select {
	case <-c:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// append adds to the log and wakes its readers. With its last event the generation is over before anybody can read that:
// who has read it finds it counted, and who finds it counted finds it in the log.
func (g *generation) append(it item) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.outcome == outcomeCancelled {
		return
	}
	switch it.kind {
	case itemTerminal:
		g.end(outcomeWhole)
	case itemFailure:
		g.failure = it.step.Error
		g.end(outcomeFailed)
	}
	if g.outcome != outcomeNone {
		g.book.generationOver(g.owner)
	}
	g.items = append(g.items, it)
	g.changed.ring()
}

// close ends the log. One that failed is not replayed to later requests.
func (g *generation) close(failed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed, g.failed = true, failed
	g.end(outcomeStopped)
	g.changed.ring()
}

// read returns the items from position at, waiting for the first of them. Nothing means that the log ended there, or that
// the context did.
func (g *generation) read(ctx context.Context, at int) []item {
	for {
		g.mu.Lock()
		items := g.items[at:]
		if len(items) > 0 || g.closed {
			g.mu.Unlock()
			return items
		}
		changed := g.changed.wait()
		g.mu.Unlock()
		if !await(ctx, changed) {
			return nil
		}
	}
}

// passed tells how far the owner's exchange has come.
func (g *generation) passed(at int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ownerAt = at
	g.changed.ring()
}

// join adds a reader, unless the generation has failed or been stopped: then its reply will never be whole.
func (g *generation) join() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failed || !g.closed && g.ctx.Err() != nil {
		return false
	}
	g.readers++
	return true
}

// leave takes a reader away. The last one ends a generation that is to stop with its clients.
func (g *generation) leave(isOwner bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readers--
	if isOwner {
		g.ownerAt = -1
	}
	if g.readers == 0 && g.plan.OnClientGone == ClientGoneStop {
		g.stop()
	}
	g.changed.ring()
}

func (g *generation) isFailed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed
}

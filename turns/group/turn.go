package group

import (
	"context"
	"slices"
	"time"
)

// stand brings a line to where its items say: among the ready ones of its tenant if there is one to take, out of the group
// if there is none at all. The caller holds mu, as with all below that do not say otherwise.
func (g *Group[K, I, R]) stand(l *line[K, I, R]) {
	t := l.of
	switch ready := len(l.items) > 0 && !l.busy; {
	case ready && l.place == nil:
		l.place = t.ready.PushBack(l)
	case !ready && l.place != nil:
		t.ready.Remove(l.place)
		l.place = nil
	}
	if len(l.items) == 0 && !l.busy {
		delete(g.lines, l.key)
		t.lines--
		g.forget(t)
	}
	switch {
	case t.ready.Len() > 0 && t.place == nil:
		t.place = g.ring.PushBack(t)
	case t.ready.Len() == 0 && t.place != nil:
		g.ring.Remove(t.place)
		t.place = nil
	}
}

// start has a writer go if there is something to take and one is free.
func (g *Group[K, I, R]) start() {
	if g.ring.Len() > 0 && g.writing < g.config.Writers {
		g.writing++
		g.writers.Go(g.serve)
	}
}

// serve writes until there is nothing left to take. It takes the lock itself.
func (g *Group[K, I, R]) serve() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		items := g.take()
		if len(items) == 0 {
			g.writing--
			return
		}
		g.start() // what is left over
		b := g.begin(items)
		ctx, cancel := context.WithCancel(context.WithoutCancel(items[0].ctx))
		b.cancel = cancel
		g.mu.Unlock()
		g.run(ctx, b, items)
		cancel()
		g.mu.Lock()
		b.over = true
		if b.slow {
			g.slow--
			if g.writing >= g.config.Writers {
				return
			}
			g.writing++
		}
	}
}

// take removes the items of the next statement: one of each tenant in its turn, again and again.
func (g *Group[K, I, R]) take() (items []*item[K, I, R]) {
	size := 0
	for len(items) < max(g.config.Most, 1) && g.ring.Len() > 0 {
		t := g.ring.Front().Value.(*tenant)
		l := t.ready.Front().Value.(*line[K, I, R])
		it := l.items[0]
		if size += it.size; len(items) > 0 && size > g.config.Bytes {
			break
		}
		items = append(items, it)
		l.busy = true
		g.ring.MoveToBack(t.place)
		g.remove(it)
	}
	return items
}

// remove takes an item that waits out of its line.
func (g *Group[K, I, R]) remove(it *item[K, I, R]) {
	l := it.line
	i := slices.Index(l.items, it)
	l.items = slices.Delete(l.items, i, i+1)
	g.count(l, -1)
	g.stand(l)
}

func (g *Group[K, I, R]) begin(items []*item[K, I, R]) *batch {
	b := &batch{callers: len(items)}
	for _, it := range items {
		it.in = b
	}
	return b
}

// run writes a batch. The caller does not hold mu.
func (g *Group[K, I, R]) run(ctx context.Context, b *batch, items []*item[K, I, R]) {
	if g.config.Slow > 0 {
		watch := time.AfterFunc(g.config.Slow, func() { g.isSlow(b) })
		defer watch.Stop()
	}
	values := make([]I, len(items))
	for i, it := range items {
		values[i] = it.value
	}
	g.write(ctx, values, func(i int, result R, err error) { g.answer(items[i], result, err) })
	for _, it := range items {
		var none R
		g.answer(it, none, errForgotten) // changes nothing where there was an answer
	}
}

// answer answers an item's caller and lets the next item of its key go. It takes the lock itself.
func (g *Group[K, I, R]) answer(it *item[K, I, R], result R, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if it.line == nil {
		return
	}
	if !it.left {
		it.in.callers--
	}
	it.result, it.err = result, err
	l := it.line
	g.tell(it)
	l.busy = false
	g.stand(l)
	g.start()
}

// tell ends the wait of an item's caller.
func (g *Group[K, I, R]) tell(it *item[K, I, R]) {
	it.line = nil
	g.pending--
	close(it.done)
}

// isSlow lets another writer go in the place of one that takes long. It takes the lock itself.
func (g *Group[K, I, R]) isSlow(b *batch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if b.over || g.slow >= g.config.Spare {
		return
	}
	b.slow = true
	g.slow++
	g.writing--
	g.start()
}

// withdraw takes back an item that still waits, and reports whether it did. It takes the lock itself.
func (g *Group[K, I, R]) withdraw(it *item[K, I, R]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if it.in != nil || it.line == nil {
		return false
	}
	g.remove(it)
	g.tell(it)
	return true
}

// abandon notes that the caller of an item that is being written gives up, and reports whether it may go: the last one stays,
// since its statement is cancelled and will say what became of it. It takes the lock itself.
func (g *Group[K, I, R]) abandon(it *item[K, I, R]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if it.line == nil || g.config.Stays {
		return false
	}
	it.left = true
	if it.in.callers--; it.in.callers > 0 {
		return true
	}
	it.in.cancel()
	return false
}

package group

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"
)

// Config says how much is written at once.
type Config struct {
	// Writers is the number of statements that may run at the same time.
	Writers int
	// Most is how many items a statement takes, and Bytes how much they may hold together; one item goes whatever it holds.
	Most  int
	Bytes int
	// Waiting bounds the callers that wait for a writer; half of them may be one tenant's. More are refused with ErrFull.
	Waiting int
	// Wait is the longest that a caller waits for a writer, asked for at each call; nil: as long as its context lasts.
	Wait func() time.Duration
	// Slow, if not 0, is how long a statement may run before its writer counts no longer as one, so that others are not held
	// up by what holds that one up. Spare bounds how many may be slow at once.
	Slow  time.Duration
	Spare int
	// Stays keeps a caller until it is answered once its item is being written, whatever its context says.
	Stays bool
}

// Place says where an item waits.
type Place[K comparable] struct {
	// Tenant takes its turn with the other tenants. The first item of a key that waits says whose the key is.
	Tenant string
	Key    K
	// Size is how much the item holds, in bytes.
	Size int
}

// Write writes items, all of other keys, in one go, and answers each by its place in them.
type Write[I, R any] func(ctx context.Context, items []I, answer func(i int, result R, err error))

// Group gathers items. It is safe for concurrent use; Close ends it.
type Group[K comparable, I, R any] struct {
	config  Config
	write   Write[I, R]
	writers sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	writing int // statements under way, without those that are slow
	slow    int
	waiting int
	pending int // that wait, and that are being written
	lines   map[K]*line[K, I, R]
	tenants map[string]*tenant
	ring    list.List // of the tenants that have something to take
}

// line are the items of one key, in the order in which they came. It is there while one waits or is being written.
type line[K comparable, I, R any] struct {
	key   K
	of    *tenant
	items []*item[K, I, R]
	busy  bool
	place *list.Element // in the tenant's ready lines; nil while there is nothing to take
}

// tenant are the lines of one tenant. It is there while it has one.
type tenant struct {
	name    string
	lines   int
	waiting int
	ready   list.List
	place   *list.Element // in the ring; nil while nothing is ready
}

// item is one caller's.
type item[K comparable, I, R any] struct {
	value I
	size  int
	ctx   context.Context
	line  *line[K, I, R] // nil once it is answered
	in    *batch         // nil while it waits
	left  bool           // its caller has given up
	done  chan struct{}
	// result and err are set before done is closed.
	result R
	err    error
}

// batch is one statement.
type batch struct {
	cancel  context.CancelFunc
	callers int // that wait for an answer
	slow    bool
	over    bool
}

// New makes a group that writes by a function, which may be called by several goroutines at once.
func New[K comparable, I, R any](config Config, write Write[I, R]) *Group[K, I, R] {
	return &Group[K, I, R]{config: config, write: write, lines: map[K]*line[K, I, R]{}, tenants: map[string]*tenant{}}
}

// Do has an item written and gives its result, or its error as the writer gave it. The group's own errors are NotTaken and
// ErrUnanswered. A statement that was cancelled since the time of its last caller had run out says so of itself: the error
// wraps context.DeadlineExceeded then. The values of the context, though neither its end nor its deadline, may become those of the statement.
func (g *Group[K, I, R]) Do(ctx context.Context, place Place[K], value I) (result R, err error) {
	it := &item[K, I, R]{value: value, size: place.Size, ctx: ctx, done: make(chan struct{})}
	if err := g.join(place, it); err != nil {
		return result, NotTaken{err}
	}
	var late <-chan time.Time
	if g.config.Wait != nil {
		timer := time.NewTimer(g.config.Wait())
		defer timer.Stop()
		late = timer.C
	}
	over := ctx.Done()
	for {
		select {
		case <-it.done:
			return it.result, inTime(ctx, it.err)
		case <-late:
			if late = nil; g.withdraw(it) {
				return result, NotTaken{ErrLate}
			}
		case <-over:
			over = nil
			if g.withdraw(it) {
				return result, NotTaken{ctx.Err()}
			}
			if g.abandon(it) {
				return result, fmt.Errorf("%w: %w", ErrUnanswered, ctx.Err())
			}
		}
	}
}

// Pending is how many callers are not answered yet.
func (g *Group[K, I, R]) Pending() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pending
}

// Close refuses who waits and who comes, and waits for what is being written. Closing again does the same.
func (g *Group[K, I, R]) Close() {
	g.mu.Lock()
	g.closed = true
	for _, l := range g.lines {
		for len(l.items) > 0 {
			it := l.items[0]
			g.remove(it)
			it.err = NotTaken{ErrClosed}
			g.tell(it)
		}
	}
	g.mu.Unlock()
	g.writers.Wait()
}

func (g *Group[K, I, R]) join(place Place[K], it *item[K, I, R]) error {
	if err := it.ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrClosed
	}
	t := g.tenantOf(place)
	if g.waiting >= g.config.Waiting || t.waiting >= max(1, g.config.Waiting/2) {
		g.forget(t)
		return ErrFull
	}
	l := g.lines[place.Key]
	if l == nil {
		l = &line[K, I, R]{key: place.Key, of: t}
		t.lines++
		g.lines[place.Key] = l
	}
	it.line = l
	g.pending++
	l.items = append(l.items, it)
	g.count(l, 1)
	g.stand(l)
	g.start()
	return nil
}

// tenantOf is the tenant of a place: whose its key is, or who comes with it.
func (g *Group[K, I, R]) tenantOf(place Place[K]) *tenant {
	if l := g.lines[place.Key]; l != nil {
		return l.of
	}
	t := g.tenants[place.Tenant]
	if t == nil {
		t = &tenant{name: place.Tenant}
		g.tenants[place.Tenant] = t
	}
	return t
}

// forget drops a tenant that has nothing here.
func (g *Group[K, I, R]) forget(t *tenant) {
	if t.lines == 0 {
		delete(g.tenants, t.name)
	}
}

func (g *Group[K, I, R]) count(l *line[K, I, R], n int) {
	g.waiting += n
	l.of.waiting += n
}

package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/group"
)

const (
	// sharedWriters is how many statements of one kind run at once. More of them are smaller ones, and what a statement costs
	// before its first item is more than what the wait for another one does.
	sharedWriters = 1
	// sharedMost is how many items share a statement, and sharedBytes how much they may hold, unless one alone holds more.
	sharedMost  = 64
	sharedBytes = 8 << 20
	// lookedUpBytes is what a user turn or a reply that is looked up is taken to hold. How much it does is not known before; it may be 16 times
	// as much, which bounds what one statement brings to some hundred MiB.
	lookedUpBytes = 256 << 10
	// sharedWaiting bounds the items of one kind that wait for a statement.
	sharedWaiting = 16384
	// slowStatement is how long a statement takes that something holds up, such as a lock on a row: others then go past it.
	slowStatement = 250 * time.Millisecond
	// slowShare is the part of a pool's connections that slow statements of one kind may hold, though at least one: the few of
	// checkpoints and endings too must not all wait for one row.
	slowShare = 4
)

// groups are what shares statements, by its kinds.
type groups struct {
	lookups     shared[turns.LookupQuery, looked]
	replies     shared[replyName, readOf]
	claims      shared[turns.Claim, turns.ClaimResult]
	permits     shared[turns.CallPermit, turns.PermitResult]
	notes       shared[turns.CallNote, turns.NoteResult]
	closings    shared[turns.CallOutcome, struct{}]
	checkpoints shared[turns.Checkpoint, turns.CheckpointResult]
	endings     shared[turns.Ending, turns.EndResult]
	stops       shared[stop, stopAnswer]
}

// line is what items wait behind: one writes, or is written, after the other. Reads wait behind none, and each has a line that
// is its own.
type line struct {
	key  turns.ConversationKey
	read any // what is asked for, by its address
}

// place is where an item waits: with its conversation and its tenant.
type place = group.Place[line]

func placeOf(tenant turns.Tenant, key turns.ConversationKey, size int) place {
	return place{Tenant: string(tenant), Key: line{key: key}, Size: size}
}

// open makes the groups of a store whose pools are there.
func (g *groups) open(s *Store) {
	g.lookups.open(s.pool, s.lookups(), func(q *turns.LookupQuery) place {
		return place{Tenant: string(q.Tenant), Key: line{read: q}, Size: int(q.ContentUpTo) + lookedUpBytes}
	})
	g.replies.open(s.pool, s.replies(), func(n *replyName) place { return place{Key: line{read: n}, Size: lookedUpBytes} })
	g.claims.open(s.pool, s.claims(), func(c *turns.Claim) place { return placeOf(c.Tenant, c.Key, sizeOfClaim(c)) })
	g.permits.open(s.pool, s.permits(), func(p *turns.CallPermit) place {
		return placeOf(p.Tenant, p.Fence.Key, len(p.Call.Body))
	})
	g.notes.open(s.pool, s.notes(), func(n *turns.CallNote) place { return placeOf(n.Tenant, n.Fence.Key, len(n.Session)) })
	g.closings.open(s.pool, s.closings(), func(o *turns.CallOutcome) place { return placeOf(o.Tenant, o.Key, 0) })
	g.checkpoints.open(s.vital, s.checkpoints(), func(c *turns.Checkpoint) place {
		return placeOf("", c.Fence.Key, sizeOfPieces(c.Pieces))
	})
	g.endings.open(s.vital, s.endings(), func(e *turns.Ending) place { return placeOf(e.Tenant, e.Fence.Key, sizeOfPieces(e.Content)) })
	g.stops.open(s.pool, s.stops(), func(o *stop) place { return placeOf("", o.key, 0) })
}

// pending is how many calls are not answered yet.
func (g *groups) pending() int {
	return g.lookups.group.Pending() + g.replies.group.Pending() + g.claims.group.Pending() + g.permits.group.Pending() +
		g.notes.group.Pending() + g.closings.group.Pending() + g.checkpoints.group.Pending() + g.endings.group.Pending() + g.stops.group.Pending()
}

// close refuses who waits for a statement, and waits for those that run.
func (g *groups) close() {
	var all sync.WaitGroup
	for _, end := range []func(){
		g.lookups.close, g.replies.close, g.claims.close, g.permits.close, g.notes.close, g.closings.close, g.checkpoints.close,
		g.endings.close, g.stops.close,
	} {
		all.Go(end)
	}
	all.Wait()
}

// shared is one kind of statements.
type shared[I, R any] struct {
	kind  kind[I, R]
	place func(*I) place
	group *group.Group[line, I, R]
}

func (g *shared[I, R]) open(p *pool, k kind[I, R], place func(*I) place) {
	config := group.Config{
		Writers: sharedWriters, Most: sharedMost, Bytes: sharedBytes, Waiting: sharedWaiting,
		Wait: func() time.Duration { return p.limits.wait },
		Slow: slowStatement, Spare: max(1, int(p.Config().MaxConns)/slowShare),
	}
	g.kind, g.place = k, place
	g.group = group.New[line](config, k.apart)
}

func (g *shared[I, R]) close() {
	if g.group != nil {
		g.group.Close()
	}
}

// write is a batch by itself, and one item in the company of those that others write at the same time.
func (g *shared[I, R]) write(ctx context.Context, items []I) ([]R, error) {
	switch len(items) {
	case 0:
		return nil, nil
	case 1:
		result, err := g.one(ctx, items[0])
		if err != nil {
			return nil, err
		}
		return []R{result}, nil
	}
	return g.kind.each(ctx, items)
}

func (g *shared[I, R]) one(ctx context.Context, item I) (R, error) {
	result, err := g.group.Do(ctx, g.place(&item), item)
	switch {
	case errors.As(err, new(group.NotTaken)):
		err = g.kind.meaning(notSent{err})
	case errors.Is(err, group.ErrUnanswered):
		err = g.kind.meaning(err)
	}
	return result, err
}

// kind says how items of one kind are written.
type kind[I, R any] struct {
	op string
	// reads says that nothing is written.
	reads bool
	// lost says of an item's own failure that it is an answer: nothing was written for it, and its result is zero. Nil: of none.
	lost func(error) bool
	// run writes items, of which none or all is written if it fails. Its error is raw.
	run func(ctx context.Context, items []I) ([]R, error)
}

func (k kind[I, R]) meaning(err error) error { return mapError(k.op, err, !k.reads) }

// apart writes items in one statement, and answers each. If what one of them holds made the statement fail, the halves are
// written by themselves, down to that one: a bad item must not undo the others. Other failures are those of all.
func (k kind[I, R]) apart(ctx context.Context, items []I, answer func(i int, result R, err error)) {
	type part struct{ from, to int }
	parts := []part{{0, len(items)}}
	var over error // of all that is not written yet
	for ; len(parts) > 0; parts = parts[1:] {
		var results []R
		p, err := parts[0], over
		if err == nil {
			results, err = k.run(ctx, items[p.from:p.to])
		}
		alone := p.to-p.from == 1
		switch own := over == nil && isOfItem(err); {
		case err == nil:
		case alone && over == nil && k.lost != nil && k.lost(err):
			results, err = make([]R, 1), nil
		case own && !alone:
			half := (p.from + p.to) / 2
			parts = append(parts, part{p.from, half}, part{half, p.to})
			continue
		case !own && over == nil:
			over = notSent{err} // the others would meet the same
		}
		err = k.meaning(err)
		for i := p.from; i < p.to; i++ {
			var result R
			if err == nil {
				result = results[i-p.from]
			}
			answer(i, result, err)
		}
	}
}

// each is apart for one caller: the errors of items come joined, beside the results of the others.
func (k kind[I, R]) each(ctx context.Context, items []I) ([]R, error) {
	results := make([]R, len(items))
	var failed []error
	k.apart(ctx, items, func(i int, result R, err error) {
		results[i] = result
		if err != nil && (len(failed) == 0 || failed[len(failed)-1] != err) {
			failed = append(failed, err)
		}
	})
	return results, errors.Join(failed...)
}

func sizeOfClaim(c *turns.Claim) int {
	size := len(c.Call.Body)
	if c.NewTurn != nil {
		size += turns.SizeOf(c.NewTurn.Content) + len(c.NewTurn.Options.System)
	}
	return size
}

func sizeOfPieces(pieces []turns.Piece) (size int) {
	for i := range pieces {
		size += len(pieces[i].Text) + len(pieces[i].Seal)
	}
	return size
}

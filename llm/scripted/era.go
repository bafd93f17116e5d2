package scripted

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// era is the time between two resets: its records, its gates, its stored generations, and whatever runs in it. Cutting
// the era ends all of that.
type era struct {
	ctx     context.Context
	cut     context.CancelFunc
	running sync.WaitGroup // exchanges and generations
	book    *book
	played  atomic.Pointer[program]
	replays replays
	kept    kept
}

func newEra(script Script, now func() time.Time) *era {
	ctx, cut := context.WithCancel(context.Background())
	e := &era{ctx: ctx, cut: cut, book: newBook(now)}
	e.played.Store(newProgram(script))
	return e
}

func (e *era) program() *program { return e.played.Load() }

// end cuts what runs and waits for it.
func (e *era) end() {
	e.cut()
	e.running.Wait()
}

// generate starts the generation of a call, or finds the one that its key stands for.
func (e *era) generate(p *program, x *exchange, want stored, id string) (*generation, verdict) {
	create := func() *generation {
		g := newGeneration(e.ctx, e.book, x.rec, x.req, x.plan, id)
		e.book.began(x.rec, id, x.req.words)
		e.running.Go(g.produce)
		return g
	}
	if p.endpoint.Idempotency != IdempotencyEnforce || want.at.key == "" {
		return create(), verdictNew
	}
	g, what := e.replays.find(want, p.endpoint.retention(), create)
	if what == verdictReplay {
		e.book.joined(x.rec, g.id, g.owner.N)
	}
	return g, what
}

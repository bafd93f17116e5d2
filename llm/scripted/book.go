package scripted

import (
	"context"
	"maps"
	"sync"
	"time"
)

// What is kept of the past.
const (
	maxCalls    = 100_000
	maxKeys     = 100_000
	maxGates    = 10_000
	maxPageSize = 10_000
)

// book holds the records, counts and gates between two resets. Whoever began under an old book goes on writing into it,
// so nothing of the past leaks into the counts after a reset.
type book struct {
	now      func() time.Time
	maxCalls int

	mu       sync.Mutex
	changed  bell
	records  []*record // the last maxCalls
	counts   Counts
	finished int
	gates    map[string]*gate
}

// record is a call being written. It is guarded by the book's mutex.
type record struct {
	Call
	end        End // of the connection; empty while it goes on
	generating bool
}

func newBook(now func() time.Time) *book {
	return &book{
		now: now, maxCalls: maxCalls,
		counts: Counts{ByKey: make(map[string]KeyCounts)},
		gates:  make(map[string]*gate),
	}
}

// change runs one change and wakes the waiting.
func (b *book) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	b.changed.ring()
}

// connection adds or takes back a connection.
func (b *book) connection(n int) { b.change(func() { b.counts.Connections += n }) }

// request opens the record of a request whose body was read.
func (b *book) request(call Call) *record {
	r := &record{Call: call}
	b.change(func() {
		b.counts.Requests++
		r.N, r.AcceptedAt, r.Call.End = b.counts.Requests, b.now().UTC(), EndRunning
		b.key(r.IdempotencyKey, KeyCounts{Requests: 1})
		b.records = append(b.records, r)
		if len(b.records) > b.maxCalls {
			b.records[0] = nil
			b.records = b.records[1:]
		}
	})
	return r
}

// asked counts a request that only asks.
func (b *book) asked() { b.change(func() { b.counts.Asked++ }) }

// key adds to the sums of a key, while there is room for it. The mutex is held.
func (b *book) key(key string, add KeyCounts) {
	if key == "" {
		return
	}
	sum, known := b.counts.ByKey[key]
	if !known && len(b.counts.ByKey) >= maxKeys {
		b.counts.KeysDropped += add.Requests
		return
	}
	b.counts.ByKey[key] = KeyCounts{sum.Requests + add.Requests, sum.Generations + add.Generations}
}

// began counts a generation, and its input tokens, as the vendor would from here on.
func (b *book) began(r *record, responseID string, input int) {
	b.change(func() {
		r.generating, r.ResponseID, r.InputTokens = true, responseID, input
		b.counts.Generations++
		b.counts.Running++
		b.counts.InputTokens += input
		b.key(r.IdempotencyKey, KeyCounts{Generations: 1})
	})
}

// joined marks a call that produces nothing itself.
func (b *book) joined(r *record, responseID string, first int) {
	b.change(func() { r.ResponseID, r.ReplayOf = responseID, first })
}

// generated counts a delta before anybody can read it, so no client has seen more than was counted.
func (b *book) generated(r *record) {
	b.change(func() {
		r.DeltasGenerated++
		r.OutputTokens++
		b.counts.OutputTokens++
	})
}

// generationOver may be called again.
func (b *book) generationOver(r *record) {
	b.change(func() {
		if r.generating {
			r.generating = false
			b.counts.Running--
			b.settle(r)
		}
	})
}

// connectionOver may be called again; the first end stands.
func (b *book) connectionOver(r *record, end End) {
	b.change(func() {
		if r.end == "" {
			r.end = end
			b.settle(r)
		}
	})
}

// settle ends a call when both its halves are over. The mutex is held.
func (b *book) settle(r *record) {
	if r.end == "" || r.generating {
		return
	}
	now := b.now().UTC()
	r.Call.End, r.EndedAt = r.end, &now
	b.finished++
}

// clientGone notes when the client was first found to have left.
func (b *book) clientGone(r *record) {
	b.change(func() {
		if r.ClientGoneAt == nil {
			now := b.now().UTC()
			r.ClientGoneAt = &now
		}
	})
}

func (b *book) sent(r *record, deltas int) { b.change(func() { r.DeltasSent += deltas }) }

func (b *book) status(r *record, status int) { b.change(func() { r.Status = status }) }

func (b *book) reported(r *record) { b.change(func() { r.UsageReported = true }) }

// page returns up to limit calls after number n, of one key unless it is empty.
func (b *book) page(n int, key string, limit int) CallPage {
	b.mu.Lock()
	defer b.mu.Unlock()
	page := CallPage{Calls: []Call{}, Dropped: b.counts.Requests - len(b.records)}
	for _, r := range b.records[min(max(n-page.Dropped, 0), len(b.records)):] {
		if key != "" && r.IdempotencyKey != key {
			continue
		}
		if len(page.Calls) == limit {
			page.More = true
			break
		}
		page.Calls = append(page.Calls, r.Call)
	}
	return page
}

// sums returns a copy.
func (b *book) sums() Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := b.counts
	counts.ByKey = maps.Clone(counts.ByKey)
	return counts
}

// await returns when the condition holds, or with the context's cause. The condition is asked under the book's mutex.
func (b *book) await(ctx context.Context, holds func() bool) error {
	for {
		b.mu.Lock()
		if holds() {
			b.mu.Unlock()
			return nil
		}
		changed := b.changed.wait()
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hasDeltas says that n deltas of a call reached the socket. When its connection is over, deltas that were produced
// count too: no more can be sent, and the caller wants to know of the generation.
func (b *book) hasDeltas(call, n int) bool {
	i := call - 1 - (b.counts.Requests - len(b.records))
	if i < 0 || i >= len(b.records) {
		return false
	}
	r := b.records[i]
	return r.DeltasSent >= n || r.end != "" && r.DeltasGenerated >= n
}

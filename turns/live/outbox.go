package live

import (
	"context"
	"sync"
	"time"

	"github.com/turnd/turnd/turns"
)

const (
	// gather is how long hints wait for others to go with them, gatherPieces how long pieces do.
	gather       = 2 * time.Millisecond
	gatherPieces = time.Millisecond
	// maxHints bounds the hints that wait. Those past it are lost, which a hint may be.
	maxHints = 8192
	// publishTime bounds one publishing.
	publishTime = 5 * time.Second
)

// outbox holds what a hub has to publish: one hint a reply, and the logs that grew. The publishing loop empties it, so that
// what happens meanwhile is gathered.
type outbox struct {
	mu    sync.Mutex
	hints map[turns.ReplyID]Hint
	grown []*Log
	due   time.Time // when it is to be emptied; zero: never
	last  time.Time // when it was
	wake  chan struct{}
}

func newOutbox() *outbox {
	return &outbox{hints: map[turns.ReplyID]Hint{}, wake: make(chan struct{}, 1)}
}

// put adds a hint to what is known of its reply, to go out after at least so long since the last publishing.
func (o *outbox) put(h Hint, spacing time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	waiting, known := o.hints[h.Reply]
	if !known && len(o.hints) >= maxHints {
		return
	}
	h.Ended, h.Stop = h.Ended || waiting.Ended, h.Stop || waiting.Stop
	if waiting.Epoch > h.Epoch {
		h.Epoch, h.Length = waiting.Epoch, waiting.Length
	}
	o.hints[h.Reply] = h
	now := time.Now()
	due := now.Add(gather)
	if at := o.last.Add(spacing); at.After(due) {
		due = at
	}
	o.hurry(due)
}

// grew says that a log has pieces to publish. It is not said again until it was emptied.
func (o *outbox) grew(l *Log) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.grown = append(o.grown, l)
	o.hurry(time.Now().Add(gatherPieces))
}

// hurry makes the outbox be emptied at a time or before. The caller holds mu.
func (o *outbox) hurry(due time.Time) {
	if !o.due.IsZero() && !due.Before(o.due) {
		return
	}
	o.due = due
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// wait is how long it may still gather; negative: nothing waits.
func (o *outbox) wait() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.due.IsZero() {
		return -1
	}
	return max(0, time.Until(o.due))
}

// empty takes everything out: pieces first, since they may spare the read that a hint asks for.
func (o *outbox) empty(pieceBytes int) []Hint {
	o.mu.Lock()
	hints, grown := o.hints, o.grown
	o.hints, o.grown, o.due, o.last = map[turns.ReplyID]Hint{}, nil, time.Time{}, time.Now()
	o.mu.Unlock()
	var all []Hint
	for _, l := range grown {
		all = append(all, l.unsent(pieceBytes)...)
	}
	for _, h := range hints {
		all = append(all, h)
	}
	return all
}

// publishLoop empties the outbox into the bus whenever it is due, and once more at the end.
func (h *Hub) publishLoop(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			h.publish(ctx, &failing)
			return
		case <-h.out.wake:
			if wait := h.out.wait(); wait >= 0 {
				timer.Reset(wait)
			}
		case <-timer.C:
			h.publish(ctx, &failing)
		}
	}
}

func (h *Hub) publish(ctx context.Context, failing *bool) {
	hints := h.out.empty(h.cfg.Bus.PieceBytes())
	if len(hints) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTime)
	defer cancel()
	err := h.cfg.Bus.Publish(ctx, hints)
	if err != nil && !*failing {
		h.cfg.Logger.Warn("hints not published; followers on other workers read more slowly", "hints", len(hints), "err", err)
	}
	*failing = err != nil
}

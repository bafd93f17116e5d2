package live

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/turnd/turnd/turns"
)

// DefaultMaxFollowers is Config.MaxFollowers where it is not set.
const DefaultMaxFollowers = 50_000

// Reader is what a hub needs of a store.
type Reader interface {
	ReadReply(ctx context.Context, key turns.ConversationKey, id turns.ReplyID) (turns.Reply, error)
	ReadLogs(ctx context.Context, positions []turns.LogPosition) ([]turns.LogView, error)
	FindTurn(ctx context.Context, key turns.ConversationKey, id turns.RowID) (turns.UserTurn, error)
	MarkFollowed(ctx context.Context, marks []turns.FollowMark) error
	ReadLine(ctx context.Context, places []turns.LinePlace) ([]turns.LineView, error)
}

// Config makes a Hub. Store, Logger, Tick, Heartbeat and Patience must be set.
type Config struct {
	Store  Reader
	Logger *slog.Logger
	// Tick is how often mirrors read the store while the bus brings no hints, and how often at most it is told of endings.
	Tick time.Duration
	// Heartbeat is the silence after which a follower is told that the stream is alive.
	Heartbeat time.Duration
	// Patience is how long the store may be out of reach before the followers of mirrors are let go, and how long a reply
	// that the store has lost may stay away before its followers are told.
	Patience time.Duration
	// Bus joins this hub to those of other workers; nil is Poll.
	Bus Bus
	// OnStop is told that a stop may have been asked for of a reply that is run here. It must return at once; nil: nobody is
	// told.
	OnStop func(turns.ReplyID)
	// MaxFollowers bounds the streams that are open here; 0 is DefaultMaxFollowers.
	MaxFollowers int
	// Meter counts followers and how far behind they are; nil counts nothing.
	Meter metric.Meter
}

// Hub holds the logs of one worker: those it owns and its mirrors of others. It implements turns.Logs and Handler.
type Hub struct {
	cfg       Config
	lag       lag
	out       *outbox
	followers atomic.Int64
	connected atomic.Bool
	// news says that mirrors are hinted, lines that a line has moved.
	news, lines chan struct{}

	mu      sync.Mutex
	leaving bool // Drain was called
	owned   map[turns.ReplyID]*Log
	mirrors map[turns.ReplyID]*mirror
	hinted  []*mirror
	inLine  map[turns.ConversationKey]map[turns.TurnID]*waiter
	moved   map[turns.ConversationKey]struct{} // lines that are to be read before their time
}

// New makes a hub. Its mirrors are fed, and hints are published, while Run runs.
func New(cfg Config) *Hub {
	if cfg.Bus == nil {
		cfg.Bus = Poll{}
	}
	if cfg.OnStop == nil {
		cfg.OnStop = func(turns.ReplyID) {}
	}
	if cfg.Meter == nil {
		cfg.Meter = noop.Meter{}
	}
	if cfg.MaxFollowers == 0 {
		cfg.MaxFollowers = DefaultMaxFollowers
	}
	return &Hub{cfg: cfg, lag: newLag(cfg.Meter, cfg.Logger), out: newOutbox(), news: make(chan struct{}, 1),
		owned: map[turns.ReplyID]*Log{}, mirrors: map[turns.ReplyID]*mirror{},
		inLine: map[turns.ConversationKey]map[turns.TurnID]*waiter{}, moved: map[turns.ConversationKey]struct{}{}, lines: make(chan struct{}, 1)}
}

// Run feeds the mirrors and keeps the bus until ctx ends. What is to be published by then still is.
func (h *Hub) Run(ctx context.Context) error {
	onBus, leaveBus := context.WithCancel(context.WithoutCancel(ctx))
	defer leaveBus()
	var bus, loops sync.WaitGroup
	var err error
	bus.Go(func() {
		if err = h.cfg.Bus.Run(onBus, h); err != nil {
			h.cfg.Logger.Error("the bus has failed; followers of other workers' replies are served by polling", "err", err)
		}
	})
	loops.Go(func() { h.feedLoop(ctx) })
	loops.Go(func() { h.lineLoop(ctx) })
	loops.Go(func() { h.publishLoop(ctx) })
	loops.Wait()
	leaveBus()
	bus.Wait()
	return err
}

// Open implements turns.Logs. Who has followed the reply from afar goes on with the log itself.
func (h *Hub) Open(key turns.ConversationKey, reply turns.Reply) turns.LiveLog {
	log := newLog(h, key, reply, true)
	for _, p := range reply.Content { // of a reply that was taken over
		if err := log.log.Append(p); err != nil {
			h.cfg.Logger.Error("stored log does not open", "reply_id", reply.ID.String(), "err", err)
			break // what comes next does not fit either, which ends the reply
		}
	}
	log.sent, log.stored = log.log.Len(), log.log.Len()
	h.cfg.Bus.Watch(reply.ID, TopicStops)
	h.mu.Lock()
	h.owned[reply.ID] = log
	m := h.mirrors[reply.ID]
	h.mu.Unlock()
	if m != nil {
		m.handOver(log.Len())
	}
	h.LineMoved(key)
	return log
}

// HintStop implements turns.Logs. Of a reply that is opened here its own worker is told, without the bus.
func (h *Hub) HintStop(id turns.ReplyID) {
	if h.ownedLog(id) != nil {
		h.cfg.OnStop(id)
		return
	}
	h.out.put(Hint{Reply: id, Stop: true}, 0)
}

// ownedLog is the log of a reply that this worker runs, nil if it does not.
func (h *Hub) ownedLog(id turns.ReplyID) *Log {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.owned[id]
}

// forget drops a log that has ended; those who read it go on reading it. It tells whether it was one of this worker's own.
func (h *Hub) forget(log *Log) (own bool) {
	h.mu.Lock()
	id := log.id
	if own = h.owned[id] == log; own {
		delete(h.owned, id)
	}
	if m := h.mirrors[id]; m != nil && m.log == log {
		delete(h.mirrors, id)
	}
	h.mu.Unlock()
	if own {
		h.cfg.Bus.Unwatch(id, TopicStops)
	}
	return own
}

// farewell publishes that a reply is no longer run here.
func (h *Hub) farewell(hint Hint) {
	hint.Ended = true
	spacing := h.cfg.Tick
	if h.cfg.Bus.PieceBytes() > 0 {
		spacing = 0 // whoever sees pieces at once should not wait for the end
	}
	h.out.put(hint, spacing)
}

// Take implements Handler.
func (h *Hub) Take(hints []Hint) {
	for _, hint := range hints {
		h.mu.Lock()
		m, owned := h.mirrors[hint.Reply], h.owned[hint.Reply] != nil
		h.mu.Unlock()
		if owned && hint.Stop {
			h.cfg.OnStop(hint.Reply)
		}
		if m != nil && m.hear(hint) {
			h.readSoon(m)
		}
	}
}

// Connected implements Handler. After a gap everything is read, and what this worker has to say is said again.
func (h *Hub) Connected(yes bool) {
	if h.connected.Swap(yes) || !yes {
		return
	}
	h.mu.Lock()
	mirrors, owned := slices.Collect(maps.Values(h.mirrors)), slices.Collect(maps.Values(h.owned))
	h.mu.Unlock()
	h.readSoon(mirrors...)
	for _, log := range owned {
		log.announce()
	}
}

// readSoon lets the feeding loop read mirrors before their time.
func (h *Hub) readSoon(mirrors ...*mirror) {
	h.mu.Lock()
	for _, m := range mirrors {
		if !m.hinted {
			m.hinted = true
			h.hinted = append(h.hinted, m)
		}
	}
	h.mu.Unlock()
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// Followers is how many streams are open here.
func (h *Hub) Followers() int { return int(h.followers.Load()) }

// enter counts a follower in, if there is room.
func (h *Hub) enter() error {
	if h.followers.Add(1) > int64(h.cfg.MaxFollowers) {
		h.followers.Add(-1)
		return &turns.Error{Code: turns.CodeOverloaded,
			Problem: "too many streams are open on this worker; follow again later, or on another", RetryAfter: time.Second}
	}
	return nil
}

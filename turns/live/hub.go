package live

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/turnd/turnd/turns"
)

// Reader is what a hub needs of a store.
type Reader interface {
	ReadReply(ctx context.Context, key turns.ConversationKey, id turns.ReplyID) (turns.Reply, error)
	ReadLogs(ctx context.Context, positions []turns.LogPosition) ([]turns.LogView, error)
	MarkFollowed(ctx context.Context, marks []turns.FollowMark) error
}

// Config makes a Hub. All fields must be set.
type Config struct {
	Store  Reader
	Logger *slog.Logger
	// Tick is how often mirrors read the store's checkpoints.
	Tick time.Duration
	// Heartbeat is the silence after which a follower is told that the stream is alive.
	Heartbeat time.Duration
	// Patience is how long the store may be out of reach before the followers of mirrors are let go.
	Patience time.Duration
}

// Hub holds the logs of one worker: those it owns and its mirrors of others. It implements turns.Logs.
type Hub struct {
	cfg Config

	mu      sync.Mutex
	owned   map[turns.ReplyID]*Log
	mirrors map[turns.ReplyID]*mirror
}

// New makes a hub. Its mirrors are fed while Run runs.
func New(cfg Config) *Hub {
	return &Hub{cfg: cfg, owned: map[turns.ReplyID]*Log{}, mirrors: map[turns.ReplyID]*mirror{}}
}

// Open implements turns.Logs.
func (h *Hub) Open(key turns.ConversationKey, reply turns.Reply) turns.LiveLog {
	log := newLog(h, key, reply, true)
	for _, p := range reply.Content {
		if err := log.log.Append(p); err != nil {
			h.cfg.Logger.Error("stored log does not open", "reply_id", reply.ID.String(), "err", err)
			break // what comes next does not fit either, which ends the reply
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.owned[reply.ID] = log
	return log
}

// HintStop implements turns.Logs.
func (h *Hub) HintStop(turns.ReplyID) {}

// ownedLog is the log of a reply that this worker runs, nil if it does not.
func (h *Hub) ownedLog(id turns.ReplyID) *Log {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.owned[id]
}

// forget drops a log that has ended; those who read it go on reading it.
func (h *Hub) forget(log *Log) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := log.id
	if h.owned[id] == log {
		delete(h.owned, id)
	}
	if m := h.mirrors[id]; m != nil && m.log == log {
		delete(h.mirrors, id)
	}
}

// Package natsbus carries hints, and the pieces of replies, between workers over NATS.
//
// There is one subject a reply for its news and one for stops. A worker subscribes to the first while somebody follows the
// reply there, and to the second while it runs the reply; so a server carries each message only to those who need it. What
// NATS loses, and it may lose anything, is made up for from the database.
//
// What surprises: pieces are text of replies. Whoever can read the subjects reads replies, and whoever can write them can
// make followers begin again. A worker that can't reach NATS serves all the same and polls the database.
package natsbus

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/live"
)

const (
	// pieceBytes bounds the pieces of a hint. A message stays far below the megabyte that servers take, however its text is
	// escaped.
	pieceBytes = 64 << 10
	maxMessage = 768 << 10
	// maxPending bounds the messages that were received and not handled yet; further ones are dropped.
	maxPending = 4096
	// reconnectWait is the time between two tries of a server, and jitter what is added to it at most.
	reconnectWait = time.Second
	jitter        = time.Second
	dialTime      = 5 * time.Second
	// writeTime bounds a write to a server that has stopped to read: whoever watches a reply, as a claim does, waits for it.
	writeTime = time.Second
)

var errAway = errors.New("NATS is not connected")

// Config says how to reach NATS.
type Config struct {
	// URL names one or more servers, with commas between them.
	URL string
	// Prefix begins all subjects. Workers hear each other only under the same one.
	Prefix string
	Logger *slog.Logger
}

// Bus is a live.Bus over NATS.
type Bus struct {
	cfg     Config
	pending chan *nats.Msg

	mu   sync.Mutex
	conn *nats.Conn // nil while it does not run
	// subjects are those that are watched.
	subjects map[string]*subject
}

// subject is a subscription and how many asked for it.
type subject struct {
	watchers int
	sub      *nats.Subscription // nil while there is no connection to have it on
}

var _ live.Bus = (*Bus)(nil)

// New makes a bus. It connects while Run runs.
func New(cfg Config) *Bus {
	return &Bus{cfg: cfg, pending: make(chan *nats.Msg, maxPending), subjects: map[string]*subject{}}
}

// PieceBytes implements live.Bus.
func (b *Bus) PieceBytes() int { return pieceBytes }

// subjectOf names the subject of a topic of a reply.
func (b *Bus) subjectOf(id turns.ReplyID, topic live.Topic) string {
	kind := ".r."
	if topic == live.TopicStops {
		kind = ".s."
	}
	return b.cfg.Prefix + kind + hex.EncodeToString(id.UUID[:])
}

// Watch implements live.Bus.
func (b *Bus) Watch(id turns.ReplyID, topic live.Topic) {
	name := b.subjectOf(id, topic)
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.subjects[name]
	if s == nil {
		s = new(subject)
		b.subjects[name] = s
		b.subscribe(name, s)
	}
	s.watchers++
}

// subscribe asks the server for a subject, if there is a connection. The caller holds mu.
func (b *Bus) subscribe(name string, s *subject) {
	if b.conn == nil {
		return
	}
	sub, err := b.conn.ChanSubscribe(name, b.pending)
	if err != nil {
		b.cfg.Logger.Warn("not subscribed; a reply is followed by polling", "err", err)
		return
	}
	s.sub = sub
}

// Unwatch implements live.Bus.
func (b *Bus) Unwatch(id turns.ReplyID, topic live.Topic) {
	name := b.subjectOf(id, topic)
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.subjects[name]
	if s == nil {
		return
	}
	if s.watchers--; s.watchers > 0 {
		return
	}
	delete(b.subjects, name)
	if s.sub != nil {
		_ = s.sub.Unsubscribe() // fails only on a connection that is closed
	}
}

// Publish implements live.Bus.
func (b *Bus) Publish(_ context.Context, hints []live.Hint) error {
	b.mu.Lock()
	conn := b.conn
	b.mu.Unlock()
	if conn == nil || !conn.IsConnected() {
		return errAway
	}
	for i := range hints {
		if err := b.publish(conn, hints[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bus) publish(conn *nats.Conn, h live.Hint) error {
	messages, err := live.EncodeHints([]live.Hint{h}, maxMessage)
	if err != nil {
		return err
	}
	topic := live.TopicNews
	if h.Stop {
		topic = live.TopicStops
	}
	if err := conn.Publish(b.subjectOf(h.Reply, topic), messages[0]); err != nil {
		return fmt.Errorf("publish a hint: %w", err)
	}
	return nil
}

// Run implements live.Bus.
func (b *Bus) Run(ctx context.Context, h live.Handler) error {
	closed := make(chan struct{})
	conn, err := nats.Connect(b.cfg.URL, b.options(h, closed)...)
	if err != nil {
		return fmt.Errorf("connect to NATS: %w", err)
	}
	b.attach(conn)
	defer func() {
		b.attach(nil)
		conn.Close()
		<-closed
		h.Connected(false)
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-b.pending:
			if hints, err := live.DecodeHints(m.Data); err == nil {
				h.Take(hints)
			}
		}
	}
}

// options let the client find its way back by itself, for as long as it takes. While it is away nothing is kept to be sent
// later: by then it is stored.
func (b *Bus) options(h live.Handler, closed chan struct{}) []nats.Option {
	up := func(*nats.Conn) {
		b.cfg.Logger.Info("the NATS bus is connected")
		h.Connected(true)
	}
	return []nats.Option{
		nats.Name("turnd"), nats.NoEcho(), nats.Timeout(dialTime), nats.FlusherTimeout(writeTime),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(jitter, jitter), nats.ReconnectBufSize(-1),
		nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(2),
		nats.ConnectHandler(up), nats.ReconnectHandler(up),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			h.Connected(false)
			b.cfg.Logger.Warn("the NATS bus is away; followers of other workers' replies are served by polling", "err", err)
		}),
		// Dropped messages are no news: the store has them.
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }),
	}
}

// attach gives the subscriptions a connection, or takes it away.
func (b *Bus) attach(conn *nats.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conn = conn
	for name, s := range b.subjects {
		s.sub = nil
		b.subscribe(name, s)
	}
}

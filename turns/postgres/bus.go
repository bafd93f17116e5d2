package postgres

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/live"
)

const (
	// channel is where hints are sent, one for all workers of a database.
	channel = "turnd_hints"
	// maxPayload is what Postgres takes in one notification, and maxMessage as many bytes before base64.
	maxPayload = 7999
	maxMessage = maxPayload * 3 / 4
	// echoTime is how long a notification to oneself may take, and echoEvery how often one is sent.
	echoTime  = 3 * time.Second
	echoEvery = 20 * time.Second
	// busBackoff is the first wait before another connection, maxBusBackoff the longest.
	busBackoff    = 250 * time.Millisecond
	maxBusBackoff = 30 * time.Second
	// maxOutgoing bounds the messages that wait for the connection.
	maxOutgoing = 256
)

var (
	errDeaf    = errors.New("LISTEN has no effect here, as behind a pooler in transaction mode; give a direct address")
	errNoBus   = errors.New("no connection to send hints on")
	errBusFull = errors.New("more hints than the connection takes")
)

// BusConfig says how a Bus reaches the database.
type BusConfig struct {
	// URL is the database's address past any pooler.
	URL    string
	Logger *slog.Logger
}

// Bus is a live.Bus over NOTIFY: one connection listens and sends. What is sent is no part of any transaction of the store.
//
// Whether LISTEN works is tried, not assumed: the connection sends itself a word and waits for it, at its start and now and
// then. Until it is back the bus is not connected.
type Bus struct {
	cfg BusConfig

	mu sync.Mutex
	// interrupt ends the wait for notifications, so that the connection can send; nil while there is none.
	interrupt context.CancelFunc
	outgoing  []string
}

var _ live.Bus = (*Bus)(nil)

// NewBus makes a bus. It connects while Run runs.
func NewBus(cfg BusConfig) *Bus { return &Bus{cfg: cfg} }

// Watch implements live.Bus: every worker hears everything.
func (b *Bus) Watch(turns.ReplyID, live.Topic) {}

// Unwatch implements live.Bus.
func (b *Bus) Unwatch(turns.ReplyID, live.Topic) {}

// PieceBytes implements live.Bus: notifications are too small to carry pieces.
func (b *Bus) PieceBytes() int { return 0 }

// Publish implements live.Bus. The hints are sent as soon as the connection is free, which is at once but for a moment.
func (b *Bus) Publish(_ context.Context, hints []live.Hint) error {
	messages, err := live.EncodeHints(hints, maxMessage)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.interrupt == nil {
		return errNoBus
	}
	for _, m := range messages {
		if len(b.outgoing) == maxOutgoing {
			return errBusFull
		}
		b.outgoing = append(b.outgoing, base64.RawStdEncoding.EncodeToString(m))
	}
	b.interrupt()
	return nil
}

// Run implements live.Bus.
func (b *Bus) Run(ctx context.Context, h live.Handler) error {
	for wait := busBackoff; ; wait = min(2*wait, maxBusBackoff) {
		e := ear{bus: b, handler: h}
		err := e.listen(ctx)
		h.Connected(false)
		if ctx.Err() != nil {
			return nil
		}
		if e.heard {
			wait = busBackoff
		}
		b.cfg.Logger.Warn("the Postgres bus is away; followers of other workers' replies are served by polling",
			"again_in", wait.String(), "err", err)
		if !pauseFor(ctx, wait/2+time.Duration(rand.Int64N(int64(wait)))) {
			return nil
		}
	}
}

func pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// waiting lets Publish interrupt, or no longer. What was published meanwhile is taken.
func (b *Bus) waiting(interrupt context.CancelFunc) (outgoing []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	outgoing, b.outgoing, b.interrupt = b.outgoing, nil, interrupt
	return outgoing
}

// ear is one connection of a bus.
type ear struct {
	bus     *Bus
	handler live.Handler
	conn    *pgx.Conn
	// word is what it sends itself; heard says that it came back once, and due is when the next is sent, or the last one
	// must be back.
	word  string
	heard bool
	sent  bool
	due   time.Time
}

// listen connects and delivers until something fails.
func (e *ear) listen(ctx context.Context) (err error) {
	connect, cancel := context.WithTimeout(ctx, echoTime)
	defer cancel()
	if e.conn, err = connectBus(connect, e.bus.cfg.URL); err != nil {
		return fmt.Errorf("connect to listen: %w", err)
	}
	defer e.close(ctx)
	// A hint that is lost with the server is worth no wait for its disk.
	for _, sql := range []string{`SET synchronous_commit = off`, `LISTEN ` + channel} {
		if _, err := e.conn.Exec(connect, sql); err != nil {
			return fmt.Errorf("listen: %w", err)
		}
	}
	e.word = "echo " + uuid.NewString()
	for {
		if err := e.turn(ctx); err != nil {
			return err
		}
	}
}

// connectBus connects to a server that takes writes: a standby knows no notifications.
func connectBus(ctx context.Context, url string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.DialFunc = dial
	if config.ValidateConnect == nil {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return pgx.ConnectConfig(ctx, config)
}

func (e *ear) close(ctx context.Context) {
	e.bus.waiting(nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = e.conn.Close(ctx) // the connection is given up either way
	select {
	case <-e.conn.PgConn().CleanupDone():
	case <-ctx.Done():
	}
}

// turn sends what waits, and listens until there is more to send.
func (e *ear) turn(ctx context.Context) error {
	wait, interrupt := context.WithCancel(ctx)
	defer interrupt()
	outgoing := e.bus.waiting(interrupt)
	if !e.sent && !time.Now().Before(e.due) {
		outgoing = append(outgoing, e.word)
		e.sent, e.due = true, time.Now().Add(echoTime)
	}
	if err := e.notify(ctx, outgoing); err != nil {
		return err
	}
	wait, cancel := context.WithDeadline(wait, e.due)
	defer cancel()
	for {
		n, err := e.conn.WaitForNotification(wait)
		switch {
		case err == nil:
			e.take(n)
		case ctx.Err() != nil:
			return ctx.Err()
		case e.conn.IsClosed():
			return fmt.Errorf("wait for hints: %w", err)
		case e.sent && !time.Now().Before(e.due):
			return errDeaf
		default:
			return nil
		}
	}
}

// notify sends messages, each as a notification of its own, in one round trip.
func (e *ear) notify(ctx context.Context, messages []string) error {
	if len(messages) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, echoTime)
	defer cancel()
	if _, err := e.conn.Exec(ctx, `SELECT pg_notify($1, m) FROM unnest($2::text[]) AS m`, channel, messages); err != nil {
		return fmt.Errorf("send hints: %w", err)
	}
	return nil
}

// take hands over what came in. What is no message of hints is passed over: anyone with the database's password can send.
func (e *ear) take(n *pgconn.Notification) {
	if n.Payload == e.word {
		e.sent, e.due = false, time.Now().Add(echoEvery)
		if !e.heard {
			e.heard = true
			e.handler.Connected(true)
		}
		return
	}
	if n.PID == e.conn.PgConn().PID() {
		return
	}
	message, err := base64.RawStdEncoding.DecodeString(n.Payload)
	if err != nil {
		return
	}
	if hints, err := live.DecodeHints(message); err == nil {
		e.handler.Take(hints)
	}
}

package client

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// maxReceive is the size in bytes of the largest message taken from a server: one event can hold a whole reply.
const maxReceive = 16 << 20

// RetryPolicy says who decides about another attempt after a reply was abandoned or held. Another attempt can cost money,
// so it is not the same as connecting again, which never does.
type RetryPolicy int

const (
	// Ask hands the terminal event to the caller, who may call Stream.Again. It suits programs with a person before them.
	Ask RetryPolicy = iota
	// Auto sends the turn again where the advice is to send the same id, up to Options.MaxAgain times. The caller does not
	// see the terminal events that are acted on. It suits consumers of queues.
	Auto
)

// Options tune a Client. The zero value is good for a program that need not survive a restart.
type Options struct {
	// Record keeps the turn that is in flight. One store holds one turn: a program with several conversations gives each a
	// Client and a store of its own. Nil keeps it in memory.
	Record RecordStore
	// RecordEvery is the least time between two writes of the cursor; 1 s if zero.
	RecordEvery time.Duration
	// MaxReconnects bounds the tries in a row that bring nothing new; 8 if zero, none if negative.
	MaxReconnects int
	// Backoff is the upper bound of the wait before the first try. It doubles with each try up to MaxBackoff, and the wait is
	// drawn evenly from what lies below it. 250 ms and 8 s if zero.
	Backoff    time.Duration
	MaxBackoff time.Duration
	// MaxWait is the longest delay of the server's that is waited for; a longer one is returned as an error. 1 min if zero.
	MaxWait time.Duration
	// MaxSilence is how long a stream may be silent before it counts as lost, whatever the link says of itself; 45 s if zero,
	// which is three of the server's heartbeats.
	MaxSilence time.Duration
	// Retry decides what happens after a reply was abandoned or held.
	Retry RetryPolicy
	// MaxAgain bounds what Auto sends again; 3 if zero.
	MaxAgain int
	// Trying is told of each failure that is followed by a wait and another try, just before the wait; nil tells nobody.
	Trying func(cause *Error, wait time.Duration)
	// Logger gets what is mended in silence; nil discards it. It never gets content.
	Logger *slog.Logger

	// Now, Wait and Rand stand in for the clock, a pause that ends early with its context, and chance from 0 up to 1.
	Now  func() time.Time
	Wait func(context.Context, time.Duration) error
	Rand func() float64
}

// Client sends turns and follows replies. It is safe for concurrent use, but its RecordStore holds one turn only: that of
// the latest Send.
type Client struct {
	rpc  turnsv1.TurnServiceClient
	opt  Options
	slot slot
}

// New makes a Client on a connection, which stays the caller's to close. Use Dial for one whose settings fit.
func New(conn grpc.ClientConnInterface, o Options) *Client {
	o = o.withDefaults()
	return &Client{rpc: turnsv1.NewTurnServiceClient(conn), opt: o,
		slot: slot{store: o.Record, every: o.RecordEvery, now: o.Now, log: o.Logger}}
}

func (o Options) withDefaults() Options {
	if o.Record == nil {
		o.Record = &MemoryRecord{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	o.RecordEvery = orElse(o.RecordEvery, time.Second)
	o.MaxReconnects = orElse(o.MaxReconnects, 8)
	o.Backoff = orElse(o.Backoff, 250*time.Millisecond)
	o.MaxBackoff = orElse(o.MaxBackoff, 8*time.Second)
	o.MaxWait = orElse(o.MaxWait, time.Minute)
	o.MaxSilence = orElse(o.MaxSilence, 45*time.Second)
	o.MaxAgain = orElse(o.MaxAgain, 3)
	return o
}

func orElse[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

// wait pauses for a time, or until the context ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package live

import (
	"context"
	"time"

	"github.com/turnd/turnd/turns"
)

// Hint says that there may be news of a reply. Nothing may rest on it: any hint may be lost, repeated, late, out of order,
// or wrong.
type Hint struct {
	Reply turns.ReplyID
	// Epoch is the one under which the publisher runs the reply.
	Epoch int64
	// Length is how far the log is stored.
	Length uint32
	// Pieces are a part of the log that begins at From, stored or not. They carry no seals.
	From   uint32
	Pieces []turns.Piece
	// At is when the publisher got the text that the hint is about, by its clock; zero: it does not say.
	At time.Time
	// Ended says that the publisher no longer runs the reply.
	Ended bool
	// Stop says that somebody asked for the reply to be stopped.
	Stop bool
}

// Topic is a kind of hints about one reply.
type Topic uint8

// The topics: news of a reply's log, and stops that were asked for.
const (
	TopicNews Topic = iota
	TopicStops
)

// Bus carries hints between the hubs of workers.
type Bus interface {
	// Run delivers hints to the handler until ctx ends, and finds its way back after a failure. It does not wait for the
	// other side to be there.
	Run(ctx context.Context, h Handler) error
	// Publish sends hints to the other workers. What it can't send is lost. It keeps no hint after it has returned.
	Publish(ctx context.Context, hints []Hint) error
	// Watch asks for the hints of a topic about a reply, and Unwatch takes one Watch back. A bus may deliver others too.
	Watch(id turns.ReplyID, topic Topic)
	Unwatch(id turns.ReplyID, topic Topic)
	// PieceBytes is about how many bytes of pieces a hint may carry; 0: the bus carries none.
	PieceBytes() int
}

// Handler takes what a bus delivers. Its methods return at once.
type Handler interface {
	// Take takes hints, in any order.
	Take(hints []Hint)
	// Connected says whether what others publish arrives. It is called at each change; at first it does not.
	Connected(yes bool)
}

// Poll is the bus that carries nothing: mirrors are read each tick.
type Poll struct{}

// Run implements Bus.
func (Poll) Run(ctx context.Context, _ Handler) error {
	<-ctx.Done()
	return nil
}

// Publish implements Bus.
func (Poll) Publish(context.Context, []Hint) error { return nil }

// Watch implements Bus.
func (Poll) Watch(turns.ReplyID, Topic) {}

// Unwatch implements Bus.
func (Poll) Unwatch(turns.ReplyID, Topic) {}

// PieceBytes implements Bus.
func (Poll) PieceBytes() int { return 0 }

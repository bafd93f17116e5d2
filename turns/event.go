package turns

import "time"

// Event is one step of a reply as a follower sees it. The set is closed: Queued, Started, Grew, Restarted, Ended, Heartbeat.
// Every stream of events ends with Ended or with an error, and an error means that the stream was lost: follow again
// from the offset reached.
type Event interface{ isEvent() }

// Queued says that the turn waits in line, with Position turns before it. It comes before Started alone.
type Queued struct{ Position int }

// Started names the reply that is followed from here on. It holds no content.
type Started struct{ Reply Reply }

// Grew is a piece of the log, from Offset to Next. Pieces may be merged or split anywhere between runes; only offsets
// count.
type Grew struct {
	Offset uint32
	Next   uint32
	Piece  Piece
}

// Restarted says that Reply takes the place of Previous: what was shown of it is to be dropped, unless Reply Continues it:
// then its log goes on at Offset, and holds before that what was shown.
type Restarted struct {
	Reply     ReplyID
	Previous  Reply
	Continues bool
	Offset    uint32
}

// Ended is the terminal event. The reply's status says which: complete, abandoned or held. It holds no content.
type Ended struct{ Reply Reply }

// Heartbeat says that nothing was new for a while. It takes no room in the log.
type Heartbeat struct{}

func (Queued) isEvent()    {}
func (Started) isEvent()   {}
func (Grew) isEvent()      {}
func (Restarted) isEvent() {}
func (Ended) isEvent()     {}
func (Heartbeat) isEvent() {}

// Logs is the port to the live logs of replies that this worker runs.
type Logs interface {
	// Open makes the live log of a reply that was just claimed, or taken over: then it begins with the reply's content. The
	// caller must end it by End or Move.
	Open(key ConversationKey, reply Reply) LiveLog
	// HintStop tells the worker that runs a reply, whichever it is, that a stop was asked for. It is a hint and may be lost:
	// the store has the truth.
	HintStop(id ReplyID)
	// LineMoved tells those who follow waiting turns of a conversation on this worker that its line is another now.
	LineMoved(key ConversationKey)
}

// LiveLog is the log of a running reply in memory, with its followers. A slow follower never holds up the writer: it
// reads at its own pace and gets bigger pieces. It is safe for concurrent use, with one writer.
type LiveLog interface {
	// Append adds a piece and wakes the followers.
	Append(p Piece) error
	// Tail is the log from an offset on, and its length. An offset before First gives no pieces.
	Tail(from uint32) (pieces []Piece, length uint32)
	// First is where the part of the log that is in memory begins.
	First() uint32
	// Stored says that the log is stored up to an offset. What lies before it may be let go of: a long log keeps its tail in
	// memory, and followers further back read from the store.
	Stored(to uint32)
	// Renewed says under which epoch the reply goes on, after it was revived or put back.
	Renewed(epoch int64)
	// Len is the log's length.
	Len() uint32
	// Watched counts those who follow here and says since when that is so.
	Watched() (followers int, since time.Time)
	// HasContent is as of Log.
	HasContent() bool
	// End tells the followers how the reply ended. It must come after the commit that ended it.
	End(reply Reply)
	// Stall lets go of the followers without an end, since the commit can't be had for now: they follow again.
	Stall(err error)
	// Move says that the reply is no longer run here; followers go on from the store.
	Move()
}

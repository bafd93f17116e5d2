package live

import (
	"sync"
	"time"

	"github.com/turnd/turnd/turns"
)

// Log is a reply's log with its followers: the owner's, or a mirror of it. It implements turns.LiveLog.
type Log struct {
	key turns.ConversationKey
	id  turns.ReplyID
	hub *Hub
	// owned says that this worker runs the reply, so that nothing can lie past the log's end.
	owned bool

	mu sync.Mutex
	// followers read here since the last of them came or left.
	followers int
	since     time.Time
	reply     turns.Reply
	log       turns.Log
	state     logState
	changed   chan struct{}
	// stalls counts the calls of Stall, and stall is the last one's error.
	stalls int
	stall  error
}

type logState int

const (
	stateOpen  logState = iota
	stateEnded          // reply says how
	stateMoved          // followers resolve the reply again
)

func newLog(hub *Hub, key turns.ConversationKey, reply turns.Reply, owned bool) *Log {
	reply.Content = nil
	return &Log{since: time.Now(), key: key, id: reply.ID, hub: hub, owned: owned, reply: reply, changed: make(chan struct{})}
}

// wake lets everybody who waits look again. The caller holds mu.
func (l *Log) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Append implements turns.LiveLog.
func (l *Log) Append(p turns.Piece) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.log.Append(p); err != nil {
		return err
	}
	l.wake()
	return nil
}

// Tail implements turns.LiveLog.
func (l *Log) Tail(from uint32) ([]turns.Piece, uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pieces, _, err := l.log.From(from, 0)
	if err != nil {
		return nil, l.log.Len()
	}
	return pieces, l.log.Len()
}

// First implements turns.LiveLog.
func (l *Log) First() uint32 { return 0 }

// Stored implements turns.LiveLog.
func (l *Log) Stored(uint32) {}

// Len implements turns.LiveLog.
func (l *Log) Len() uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Len()
}

// Watched implements turns.LiveLog.
func (l *Log) Watched() (followers int, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.followers, l.since
}

// watch counts a follower in, or out by -1.
func (l *Log) watch(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followers, l.since = l.followers+n, time.Now()
}

// HasContent implements turns.LiveLog.
func (l *Log) HasContent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.HasContent()
}

// End implements turns.LiveLog.
func (l *Log) End(reply turns.Reply) {
	reply.Content = nil
	l.hub.forget(l)
	l.set(func() { l.state, l.reply = stateEnded, reply })
}

// Move implements turns.LiveLog.
func (l *Log) Move() {
	l.hub.forget(l)
	l.set(func() { l.state = stateMoved })
}

// Stall implements turns.LiveLog. Only those who follow now are let go; who follows after it waits with the log.
func (l *Log) Stall(err error) {
	l.set(func() { l.stalls, l.stall = l.stalls+1, err })
}

func (l *Log) stallCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stalls
}

func (l *Log) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	l.wake()
}

// view is what a follower finds at an offset.
type view struct {
	pieces  []turns.Piece
	next    uint32
	reply   turns.Reply
	state   logState
	changed <-chan struct{}
	stalls  int
	stall   error
}

// read finds what there is at an offset, at most about max bytes. An offset past the end of a log that is fed from
// elsewhere may be right: its follower waits.
func (l *Log) read(offset uint32, max int) (view, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := view{next: offset, reply: l.reply, state: l.state, changed: l.changed, stalls: l.stalls, stall: l.stall}
	if offset > l.log.Len() {
		if l.owned && l.state == stateOpen {
			return v, turns.ErrBadOffset
		}
		return v, nil
	}
	var err error
	v.pieces, v.next, err = l.log.From(offset, max)
	return v, err
}

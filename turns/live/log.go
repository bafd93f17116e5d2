package live

import (
	"errors"
	"sync"
	"time"

	"github.com/turnd/turnd/turns"
)

// A log that is longer than trimPast in memory keeps its last keepTail bytes and what is not stored.
const (
	trimPast = 256 << 10
	keepTail = 64 << 10
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
	// reply is replaced and never changed: who reads it holds no lock.
	reply *turns.Reply
	log   turns.Log
	// stored is how far the log is surely stored.
	stored uint32
	state  logState
	// void is the offset, of a spoilt log, past which it showed what the reply does not hold.
	void    uint32
	spoilt  bool
	changed chan struct{} // nil: nobody waits
	// stalls counts the calls of Stall, and stall is the last one's error.
	stalls int
	stall  error
	// at is when the newest text came to the worker that runs the reply, and via how it came here. late is when the oldest
	// came that is not stored yet.
	at, late time.Time
	via      string
	// sent is how far the pieces of an owned log were taken to be published, and queued that more are waiting.
	sent   uint32
	queued bool
}

type logState int

const (
	stateOpen  logState = iota
	stateEnded          // reply says how
	stateMoved          // followers resolve the reply again
)

var errClosed = errors.New("log has ended or moved")

func newLog(hub *Hub, key turns.ConversationKey, reply turns.Reply, owned bool) *Log {
	reply.Content = nil
	return &Log{since: time.Now(), key: key, id: reply.ID, hub: hub, owned: owned, reply: &reply, via: viaMemory}
}

// wake lets everybody who waits look again. The caller holds mu.
func (l *Log) wake() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// wait is closed when there is something new. The caller holds mu.
func (l *Log) wait() <-chan struct{} {
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// Append implements turns.LiveLog.
func (l *Log) Append(p turns.Piece) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.log.Append(p); err != nil {
		return err
	}
	if l.at = time.Now(); l.late.IsZero() {
		l.late = l.at
	}
	if !l.queued && l.hub.cfg.Bus.PieceBytes() > 0 {
		l.queued = true
		l.hub.out.grew(l)
	}
	l.wake()
	return nil
}

// extend grows a mirror by text that its owner got at a time, zero if that is not known, and that came here on a way.
func (l *Log) extend(pieces []turns.Piece, at time.Time, via string) error {
	if len(pieces) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != stateOpen {
		return errClosed
	}
	defer l.wake()
	l.at, l.via = at, via
	for _, p := range pieces {
		if err := l.log.Append(p); err != nil {
			return err
		}
	}
	return nil
}

// unsent takes what was not published yet, as hints of at most about max bytes.
func (l *Log) unsent(max int) (hints []Hint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued = false
	if l.sent < l.log.First() {
		l.sent = l.log.Len() // it is all stored, where others read it
	}
	for l.sent < l.log.Len() {
		pieces, next, err := l.log.From(l.sent, max)
		if err != nil {
			break
		}
		for i := range pieces {
			pieces[i].Seal = ""
		}
		h := l.hint()
		h.From, h.Pieces, h.At = l.sent, pieces, l.at
		hints = append(hints, h)
		l.sent = next
	}
	return hints
}

// hint names the log and how far it is stored. The caller holds mu.
func (l *Log) hint() Hint { return Hint{Reply: l.id, Epoch: l.reply.Epoch, Length: l.stored} }

// Renewed implements turns.LiveLog. Mirrors take pieces only under the epoch that they read.
func (l *Log) Renewed(epoch int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	renewed := *l.reply
	renewed.Epoch = epoch
	l.reply = &renewed
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
func (l *Log) First() uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.First()
}

// Stored implements turns.LiveLog.
func (l *Log) Stored(to uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if to == l.stored {
		return
	}
	l.trim(to)
	h := l.hint()
	h.At, l.late = l.late, time.Time{}
	if l.stored < l.log.Len() {
		l.late = l.at
	}
	l.hub.out.put(h, 0)
}

// announce publishes how far the log is stored.
func (l *Log) announce() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hub.out.put(l.hint(), 0)
}

// trim notes how far the log is stored and lets go of what memory need not keep. The caller holds mu.
func (l *Log) trim(stored uint32) {
	l.stored = min(stored, l.log.Len())
	if l.log.Len()-l.log.First() > trimPast {
		l.log.DropBefore(min(l.stored, l.log.Len()-keepTail))
	}
}

// trimTo is trim for the writer of a mirror.
func (l *Log) trimTo(stored uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trim(stored)
}

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

// continues is how much of the log comes from the reply whose place its own took.
func (l *Log) continues() uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reply.Continues
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
	own := l.hub.forget(l)
	l.set(func() { l.state, l.reply = stateEnded, &reply })
	if own {
		l.hub.farewell(Hint{Reply: l.id, Epoch: reply.Epoch, Length: reply.Length})
	}
}

// Move implements turns.LiveLog.
func (l *Log) Move() {
	own := l.hub.forget(l)
	var hint Hint
	l.set(func() { l.state, hint = stateMoved, l.hint() })
	if own {
		l.hub.farewell(hint)
	}
}

// spoil is Move for a mirror that showed, past an offset, what the reply does not hold.
func (l *Log) spoil(void uint32) {
	l.hub.forget(l)
	l.set(func() { l.state, l.void, l.spoilt = stateMoved, void, true })
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
	pieces []turns.Piece
	// behind says that the offset lies before what is in memory.
	behind  bool
	reply   *turns.Reply
	state   logState
	void    bool            // the log showed the follower what the reply does not hold
	changed <-chan struct{} // nil where there are pieces
	stalls  int
	stall   error
	// at and via are those of the log's newest text, if that is among the pieces.
	at  time.Time
	via string
}

// read finds what there is at an offset, at most about max bytes. An offset past the end of a log that is fed from
// elsewhere may be right, and so may that of a follower who came from such a log, and any past the end of one that was
// taken over: the last owner may have shown more than it had stored. It waits.
func (l *Log) read(offset uint32, max int, started bool) (view, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := view{reply: l.reply, state: l.state, stalls: l.stalls, stall: l.stall}
	v.void = l.spoilt && offset > l.void
	if offset > l.log.Len() {
		if l.owned && l.reply.Epoch <= 1 && l.state == stateOpen && !started {
			return v, turns.ErrBadOffset
		}
		v.changed = l.wait()
		return v, nil
	}
	var err error
	var next uint32
	if v.pieces, next, err = l.log.From(offset, max); next == l.log.Len() {
		v.at, v.via = l.at, l.via
	}
	if errors.Is(err, turns.ErrDropped) {
		v.behind, err = true, nil
	}
	if len(v.pieces) == 0 {
		v.changed = l.wait()
	}
	return v, err
}

package main

import (
	"fmt"
	"sync"
	"time"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// breach is a promise that did not hold.
type breach struct {
	promise string
	what    string
	at      time.Time
}

// kind is what a client asked for.
type kind string

const (
	askTurn       kind = "turn"
	askSubmit     kind = "submit"
	askFollow     kind = "follow"
	askAltered    kind = "altered"
	askCancel     kind = "cancel"
	askRegenerate kind = "regenerate"
)

// op is one request of a client and what came of it. Its maker writes it; others read it once the run is over.
type op struct {
	n      int
	kind   kind
	worker int
	turn   *sentTurn
	// call is when it was sent, answered when it was known what it was taken for, done when its stream or call was over.
	call, answered, done time.Time

	result     turnsv1.DeliveryResult
	reply      string // that it was answered with, empty if that never came
	attempt    int32
	generation int32
	replayed   bool // with askRegenerate
	err        string
	ended      string // terminal event, empty if the stream was lost
}

// sentTurn is a user turn of a client.
type sentTurn struct {
	tenant       string
	conversation string
	id           string
	text         string
	model        string

	mu        sync.Mutex
	accepted  *turnsv1.UserTurn // as the first delivery was told
	cancelled bool              // a client has asked for a stop
	settled   string            // how it ended for its sender
}

// told is a terminal event that a client got.
type told struct {
	at     time.Time
	event  string // completed, or abandoned and why
	length uint32
	op     int
}

// seenReply is all that clients saw of one reply.
type seenReply struct {
	turn *sentTurn
	log  []int16 // a byte for each offset, unseen as -1; blockStart and blockEnd stand for what takes 1
	by   []int32 // the op that saw it first
	ends []told
}

const (
	unseen     = -1
	blockStart = 256
	blockEnd   = 257
)

// recorder keeps what all clients did and saw. What can be judged at once, it judges at once.
type recorder struct {
	begun time.Time

	mu      sync.Mutex
	ops     []*op
	turns   []*sentTurn
	replies map[string]*seenReply
	broken  []breach
	figures map[string]int
	// running are the replies that a stream follows right now, by how many.
	running map[string]int
}

func newRecorder() *recorder {
	return &recorder{begun: time.Now(), replies: map[string]*seenReply{}, figures: map[string]int{}, running: map[string]int{}}
}

// broke notes a broken promise.
func (r *recorder) broke(promise, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = append(r.broken, breach{promise, fmt.Sprintf(format, args...), time.Now()})
}

// count adds to a figure.
func (r *recorder) count(figure string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.figures[figure]++
}

func (r *recorder) newTurn(t *sentTurn) *sentTurn {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns = append(r.turns, t)
	return t
}

// begin notes that a request is about to be sent.
func (r *recorder) begin(kind kind, t *sentTurn, worker int) *op {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := &op{n: len(r.ops), kind: kind, turn: t, worker: worker, call: time.Now()}
	r.ops = append(r.ops, o)
	return o
}

// accept checks what a delivery is told about the turn: every delivery of it is told the same.
func (r *recorder) accept(t *sentTurn, turn *turnsv1.UserTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if turn.GetTurnId() != t.id || turn.GetConversationId() != t.conversation {
		r.broke("P2", "turn %s was answered with turn %s of conversation %s", t.id, turn.GetTurnId(), turn.GetConversationId())
	}
	if t.accepted == nil {
		t.accepted = turn
		return
	}
	was := t.accepted
	if was.GetSeq() != turn.GetSeq() || !was.GetCreateTime().AsTime().Equal(turn.GetCreateTime().AsTime()) || was.GetParentId() != turn.GetParentId() {
		r.broke("P2", "turn %s is stored twice: seq %d and %d, made %s and %s", t.id, was.GetSeq(), turn.GetSeq(),
			was.GetCreateTime().AsTime(), turn.GetCreateTime().AsTime())
	}
}

// saw notes bytes of a reply's log at an offset, and compares them with what anybody has seen there.
func (r *recorder) saw(o *op, reply string, offset uint32, bytes []int16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.reply(o, reply)
	for need := int(offset) + len(bytes); len(s.log) < need; {
		s.log, s.by = append(s.log, unseen), append(s.by, 0)
	}
	for i, b := range bytes {
		at := int(offset) + i
		switch was := s.log[at]; was {
		case unseen:
			s.log[at], s.by[at] = b, int32(o.n)
		case b:
		default:
			r.broken = append(r.broken, breach{"P6", fmt.Sprintf("reply %s of turn %s has two bytes at offset %d: %q by request %d, %q by request %d to w%d",
				reply, o.turn.id, at, show(was), s.by[at], show(b), o.n, o.worker+1), time.Now()})
			return
		}
	}
}

func show(b int16) string {
	switch b {
	case blockStart:
		return "start"
	case blockEnd:
		return "end"
	}
	return string([]byte{byte(b)})
}

// reply is what is kept of a reply. The caller holds mu.
func (r *recorder) reply(o *op, id string) *seenReply {
	s := r.replies[id]
	if s == nil {
		s = &seenReply{turn: o.turn}
		r.replies[id] = s
	}
	return s
}

// ended notes a terminal event. A reply that was told complete may end otherwise only if it was replaced later.
func (r *recorder) ended(o *op, reply, event string, length uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.reply(o, reply)
	for _, t := range s.ends {
		if t.event == endCompleted && t.at.Before(o.call) && event != endCompleted && event != endAbandoned+" SUPERSEDED" {
			r.broken = append(r.broken, breach{"P7", fmt.Sprintf("reply %s was told complete to request %d and later %s to request %d", reply, t.op, event, o.n), time.Now()})
		}
		if t.event == endCompleted && event == endCompleted && t.length != length {
			r.broken = append(r.broken, breach{"P6", fmt.Sprintf("reply %s is complete with %d bytes for request %d and with %d for request %d", reply, t.length, t.op, length, o.n), time.Now()})
		}
	}
	s.ends = append(s.ends, told{time.Now(), event, length, o.n})
}

// follows counts a stream that follows a reply in, or out by -1.
func (r *recorder) follows(reply string, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[reply] += by; r.running[reply] <= 0 {
		delete(r.running, reply)
	}
}

// inFlight is how many replies are followed to an end that has not come.
func (r *recorder) inFlight() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.running)
}

// someReply picks a reply that clients of a tenant have seen.
func (r *recorder) someReply(tenant string, pick func(n int) int) (id string, turn *sentTurn, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for id, s := range r.replies {
		if s.turn.tenant == tenant {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return "", nil, false
	}
	id = ids[pick(len(ids))]
	return id, r.replies[id].turn, true
}

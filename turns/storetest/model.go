package storetest

import (
	"strings"

	"github.com/turnd/turnd/turns"
)

// model is what a store must do, in the plainest words: maps in memory, one thing at a time, no SQL and no clock. A lease
// or deadline runs out when the test says so.
type model struct {
	workers       map[turns.WorkerID]*modelWorker
	conversations map[turns.ConversationKey]*modelConversation
	replies       []*modelReply
	shares        map[turns.ReservationKey]*modelShare
}

type modelWorker struct{ expired, dead bool }

type modelConversation struct {
	version, nextSeq int64
	leaf             turns.RowID
	turns            []turns.TurnID // that were started, the last one last
	line, departed   []turns.TurnID
	byID             map[turns.TurnID]*modelTurn
}

type modelTurn struct {
	generation, cancelled int32
	slot                  int64
}

type modelReply struct {
	claim   turns.Claim
	owner   turns.WorkerID
	epoch   int64
	status  turns.Status
	reason  turns.Reason
	settled bool
	text    string // after the block's start
	started bool
	calls   int
	open    map[turns.CallID]bool
	stop    bool
	late    bool
}

func newModel() *model {
	return &model{workers: map[turns.WorkerID]*modelWorker{}, conversations: map[turns.ConversationKey]*modelConversation{},
		shares: map[turns.ReservationKey]*modelShare{}}
}

func (r *modelReply) length() uint32 {
	if !r.started {
		return 0
	}
	return uint32(len(r.text)) + 1
}

// pieces is the log as one piece, which is what its chunks fold to.
func (r *modelReply) pieces() []turns.Piece {
	if !r.started {
		return nil
	}
	return []turns.Piece{opening(r.text)}
}

// find is the reply that a fence holds for, nil if it holds for none.
func (m *model) find(f turns.Fence) *modelReply {
	for _, r := range m.replies {
		if r.claim.Key == f.Key && r.claim.Reply.ID == f.Reply && r.status == turns.StatusInFlight && r.fence() == f {
			return r
		}
	}
	return nil
}

// fence is the reply's own.
func (r *modelReply) fence() turns.Fence {
	return turns.Fence{Key: r.claim.Key, Reply: r.claim.Reply.ID, Epoch: r.epoch, Owner: r.owner}
}

// turn is what is known of a reply's turn.
func (m *model) turn(r *modelReply) *modelTurn {
	return m.conversations[r.claim.Key].byID[r.claim.Turn]
}

// wins says whether a claim must be won.
func (m *model) wins(c turns.Claim) bool {
	var version int64
	if conv := m.conversations[c.Key]; conv != nil {
		version = conv.version
		if t := conv.byID[c.Turn]; t != nil && (t.cancelled >= c.Reply.Generation || !m.starts(c)) {
			return false
		}
	}
	if c.Supersede != (turns.ReplyID{}) && !m.supersedes(c.Key, c.Turn, c.Supersede) {
		return false
	}
	if w := m.workers[c.Reply.Owner]; w == nil || w.dead || version != c.ExpectVersion {
		return false
	}
	for _, r := range m.replies {
		live := r.status.Live() && r.claim.Reply.ID != c.Supersede
		sameTurn := r.claim.Turn == c.Turn && (live || r.claim.Reply.Attempt == c.Reply.Attempt)
		if r.claim.Key == c.Key && (sameTurn || r.status == turns.StatusInFlight || r.claim.Reply.ID == c.Reply.ID) {
			return false
		}
	}
	return true
}

func (m *model) claim(c turns.Claim) {
	conv := m.conversations[c.Key]
	if conv == nil {
		conv = &modelConversation{byID: map[turns.TurnID]*modelTurn{}}
		m.conversations[c.Key] = conv
	}
	conv.version++
	conv.nextSeq = c.NextSeq + 1
	if c.NewTurn != nil {
		conv.nextSeq++
		conv.turns = append(conv.turns, c.Turn)
		conv.byID[c.Turn] = &modelTurn{generation: c.Reply.Generation}
	}
	conv.start(c)
	if t := conv.byID[c.Turn]; c.Reply.Generation > t.generation {
		t.generation = c.Reply.Generation
		t.slot++
	}
	m.supersede(c.Supersede)
	conv.leaf = c.Reply.ID.Row()
	m.replies = append(m.replies, &modelReply{claim: c, owner: c.Reply.Owner, epoch: 1, status: turns.StatusInFlight, calls: c.Reply.Calls,
		open: map[turns.CallID]bool{c.Call.ID: true}})
}

func (m *model) permit(p turns.CallPermit) turns.PermitResult {
	r := m.find(p.Fence)
	if r == nil || r.stop || r.calls >= p.MaxCalls {
		return turns.PermitResult{}
	}
	r.calls++
	r.open[p.Call.ID] = true
	return turns.PermitResult{Granted: true, Calls: r.calls}
}

// checkpoint takes text from an offset; the first also starts the block.
func (m *model) checkpoint(c turns.Checkpoint) turns.CheckpointResult {
	r := m.find(c.Fence)
	if r == nil || (r.length() != c.From && r.length() != c.To) {
		return turns.CheckpointResult{}
	}
	if r.length() == c.From {
		for _, p := range c.Pieces {
			r.started = r.started || p.Starts
			r.text += p.Text
		}
	}
	return turns.CheckpointResult{Held: true, CancelRequested: r.stop}
}

func (m *model) end(e turns.Ending) bool {
	r := m.find(e.Fence)
	if r == nil || r.length() != e.StoredLength {
		return false
	}
	r.finish(e.Status, e.Reason, e.Content)
	r.settled = true
	return true
}

func (m *model) sweep(s turns.Sweeping) bool {
	r := m.find(s.Fence)
	if r == nil || r.length() != s.Length {
		return false
	}
	stopped := r.stop && s.Verb == turns.VerbCancel
	if w := m.workers[s.Fence.Owner]; w != nil && !w.dead && !r.late && !stopped {
		return false
	}
	r.finish(s.Status, s.Reason, s.Content)
	return true
}

func (r *modelReply) finish(status turns.Status, reason turns.Reason, content []turns.Piece) {
	if r.status, r.reason = status, reason; status != turns.StatusHeld {
		r.open = nil
	}
	var text strings.Builder
	for _, p := range content {
		r.started = true
		text.WriteString(p.Text)
	}
	r.text = text.String()
}

// bury marks the dead and gives them.
func (m *model) bury() map[turns.WorkerID]bool {
	buried := map[turns.WorkerID]bool{}
	for id, w := range m.workers {
		if w.expired && !w.dead {
			w.dead, buried[id] = true, true
		}
	}
	return buried
}

// stale is how many replies of a conversation may be swept.
func (m *model) stale(key turns.ConversationKey) (n int) {
	for _, r := range m.replies {
		if r.claim.Key == key && r.status == turns.StatusInFlight && (r.late || m.workers[r.owner].dead) {
			n++
		}
	}
	return n
}

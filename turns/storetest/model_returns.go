package storetest

import (
	"slices"
	"strings"

	"github.com/turnd/turnd/turns"
)

// reply is the one of an id, nil if there is none.
func (m *model) reply(key turns.ConversationKey, id turns.ReplyID) *modelReply {
	for _, r := range m.replies {
		if r.claim.Key == key && r.claim.Reply.ID == id {
			return r
		}
	}
	return nil
}

// supersedes says whether a reply of a turn is there to be superseded.
func (m *model) supersedes(key turns.ConversationKey, turn turns.TurnID, id turns.ReplyID) bool {
	r := m.reply(key, id)
	return r != nil && r.claim.Turn == turn && r.status == turns.StatusComplete
}

func (m *model) supersede(id turns.ReplyID) {
	for _, r := range m.replies {
		if r.claim.Reply.ID == id {
			r.status, r.reason = turns.StatusAbandoned, turns.ReasonSuperseded
		}
	}
}

// live is a turn's live reply.
func (m *model) live(key turns.ConversationKey, turn turns.TurnID) *modelReply {
	for _, r := range m.replies {
		if r.claim.Key == key && r.claim.Turn == turn && r.status.Live() {
			return r
		}
	}
	return nil
}

// stop marks the turn of a reply.
func (m *model) stop(r *modelReply) {
	live, t := m.live(r.claim.Key, r.claim.Turn), m.turn(r)
	if live != nil && live.status == turns.StatusComplete {
		return
	}
	held := live != nil && live.status == turns.StatusHeld
	if t.cancelled < t.generation || held {
		t.cancelled = t.generation
		m.conversations[r.claim.Key].version++
		if live == nil {
			m.newest(r.claim.Key, r.claim.Turn).stop = true
		}
	}
	if live != nil {
		live.stop = true
	}
	if held {
		live.status, live.reason, live.open = turns.StatusAbandoned, turns.ReasonCancelled, nil
	}
}

// newest is a turn's reply with the highest attempt.
func (m *model) newest(key turns.ConversationKey, turn turns.TurnID) (last *modelReply) {
	for _, r := range m.replies {
		if r.claim.Key == key && r.claim.Turn == turn && (last == nil || r.claim.Reply.Attempt > last.claim.Reply.Attempt) {
			last = r
		}
	}
	return last
}

func (m *model) choose(s turns.Selection) bool {
	conv, r := m.conversations[s.Key], m.reply(s.Key, s.Select)
	if conv == nil || conv.version != s.ExpectVersion || r == nil || r.claim.Turn != s.Turn || r.reason != turns.ReasonSuperseded {
		return false
	}
	if s.Supersede != (turns.ReplyID{}) && !m.supersedes(s.Key, s.Turn, s.Supersede) {
		return false
	}
	if live := m.live(s.Key, s.Turn); live != nil && live.claim.Reply.ID != s.Supersede {
		return false
	}
	m.supersede(s.Supersede)
	r.status, r.reason = turns.StatusComplete, ""
	m.turn(r).slot++
	conv.leaf = s.Select.Row()
	conv.version++
	return true
}

// unsettled is the reply that a fence holds for after it was ended from outside, if the log extends it.
func (m *model) unsettled(f turns.Fence, log []turns.Piece) *modelReply {
	r := m.reply(f.Key, f.Reply)
	if r == nil || r.status != turns.StatusAbandoned || r.settled || r.fence() != f {
		return nil
	}
	if !r.extendedBy(log) {
		return nil
	}
	return r
}

// extendedBy says whether a log begins with all that is stored of the reply.
func (r *modelReply) extendedBy(log []turns.Piece) bool {
	return !r.started || (len(log) > 0 && strings.HasPrefix(log[0].Text, r.text))
}

// returning is unsettled for a reply that may become live again.
func (m *model) returning(f turns.Fence, log []turns.Piece) *modelReply {
	r := m.unsettled(f, log)
	if r == nil || !slices.Contains(turns.Revivable, r.reason) || m.live(f.Key, r.claim.Turn) != nil {
		return nil
	}
	conv, t := m.conversations[f.Key], m.turn(r)
	if conv.turns[len(conv.turns)-1] != r.claim.Turn || t.generation != r.claim.Reply.Generation || t.cancelled >= t.generation {
		return nil
	}
	return r
}

func (m *model) revive(v turns.Revival) bool {
	r, w := m.returning(v.Fence, v.Pieces), m.workers[v.Owner]
	if r == nil || w == nil || w.dead || m.running(v.Fence.Key) {
		return false
	}
	r.finish(turns.StatusInFlight, "", v.Pieces)
	r.epoch, r.owner, r.late, r.open = r.epoch+1, v.Owner, false, map[turns.CallID]bool{v.Call: true}
	m.leafBack(r)
	return true
}

func (m *model) takeOver(v turns.Takeover) turns.TakeoverResult {
	r, w := m.find(v.Fence), m.workers[v.Owner]
	if r == nil || r.length() != v.StoredLength || r.stop || r.late || w == nil || w.dead || !m.workers[r.owner].dead {
		return turns.TakeoverResult{}
	}
	t := m.turn(r)
	calls := v.Call.ID != (turns.CallID{})
	if r.epoch >= turns.MaxEpoch || (calls && r.calls >= v.MaxCalls) || t.generation != r.claim.Reply.Generation || t.cancelled >= t.generation {
		return turns.TakeoverResult{}
	}
	if r.epoch, r.owner = r.epoch+1, v.Owner; calls {
		r.calls, r.open = r.calls+1, map[turns.CallID]bool{v.Call.ID: true}
	}
	return turns.TakeoverResult{Won: true, Calls: r.calls}
}

// restore gives the reply that was restored, nil if it must not be.
func (m *model) restore(l turns.LostReply) *modelReply {
	conv := m.conversations[l.Key]
	if conv == nil || conv.version != l.ExpectVersion || conv.byID[l.Turn] == nil {
		return nil
	}
	for _, r := range m.replies {
		if r.claim.Reply.ID == l.Reply.ID || (r.claim.Turn == l.Turn && r.claim.Reply.Attempt == l.Reply.Attempt) {
			return nil
		}
	}
	conv.version++
	conv.nextSeq++
	t := conv.byID[l.Turn]
	t.generation = max(t.generation, l.Reply.Generation)
	r := &modelReply{claim: turns.Claim{Key: l.Key, Tenant: l.Tenant, Conversation: l.Conversation, Turn: l.Turn, Reply: l.Reply},
		owner: l.Reply.Owner, epoch: l.Reply.Epoch, calls: l.Reply.Calls, settled: true}
	r.finish(l.Ending.Status, l.Ending.Reason, l.Ending.Content)
	m.replies = append(m.replies, r)
	return r
}

// leafBack moves a conversation and, unless it is below another turn, its leaf to a reply that came back.
func (m *model) leafBack(r *modelReply) {
	conv := m.conversations[r.claim.Key]
	conv.version++
	if leaf := m.reply(r.claim.Key, turns.ReplyID(conv.leaf)); leaf.claim.Turn == r.claim.Turn {
		conv.leaf = r.claim.Reply.ID.Row()
	}
}

// running says whether a conversation has a reply in flight.
func (m *model) running(key turns.ConversationKey) bool {
	return slices.ContainsFunc(m.replies, func(r *modelReply) bool {
		return r.claim.Key == key && r.status == turns.StatusInFlight
	})
}

func (m *model) salvage(e turns.Ending) bool {
	r := m.returning(e.Fence, e.Content)
	if r == nil {
		return false
	}
	r.finish(turns.StatusComplete, "", e.Content)
	r.settled = true
	m.leafBack(r)
	return true
}

func (m *model) settle(e turns.Ending) bool {
	r := m.unsettled(e.Fence, e.Content)
	if r == nil {
		return false
	}
	r.finish(r.status, r.reason, e.Content)
	r.settled = true
	return true
}

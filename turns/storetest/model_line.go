package storetest

import (
	"slices"

	"github.com/turnd/turnd/turns"
)

// starts says whether a claim for a turn that is stored is of the kind that such a turn needs: in line, or never called for, it
// has to be started.
func (m *model) starts(c turns.Claim) bool {
	waits := slices.Contains(m.conversations[c.Key].line, c.Turn)
	if c.Start == nil {
		return c.NewTurn == nil && !waits
	}
	return waits || !slices.ContainsFunc(m.replies, func(r *modelReply) bool {
		return r.claim.Key == c.Key && r.claim.Turn == c.Turn && r.calls > 0
	})
}

// start takes a turn out of line, if the claim starts one.
func (c *modelConversation) start(claim turns.Claim) {
	if claim.Start == nil {
		return
	}
	c.turns = append(c.turns, claim.Turn)
	c.leave(claim.Turn)
}

func (c *modelConversation) leave(turn turns.TurnID) {
	c.line = slices.DeleteFunc(c.line, func(id turns.TurnID) bool { return id == turn })
}

func (m *model) enqueue(e turns.Enqueueing) (r turns.EnqueueResult) {
	c := m.conversations[e.Key]
	if c == nil || c.version != e.ExpectVersion {
		return r
	}
	if r.Full = len(c.line) >= e.Max; r.Full || c.byID[e.Turn] != nil || m.reply(e.Key, turns.ReplyID(e.Turn)) != nil {
		return r
	}
	if e.Reserve != nil {
		key := turns.ReservationKey{Key: e.Key, Turn: e.Turn, Generation: 1}
		if r.Met = m.meets(key, e.Reserve); r.Met != nil {
			return r
		}
		m.charge(key, e.Reserve)
	}
	r.Won, r.Seq, r.Position = true, c.nextSeq, len(c.line)
	c.version++
	c.nextSeq++
	c.line = append(c.line, e.Turn)
	c.byID[e.Turn] = &modelTurn{generation: 1}
	return r
}

// depart gives the reply that stands for a turn which left the line, nil if it must not leave.
func (m *model) depart(d turns.Departure) *modelReply {
	c := m.conversations[d.Key]
	if c == nil || c.version != d.ExpectVersion || !slices.Contains(c.line, d.Turn) {
		return nil
	}
	c.version++
	c.nextSeq++
	c.leave(d.Turn)
	c.departed = append(c.departed, d.Turn)
	r := &modelReply{claim: turns.Claim{Key: d.Key, Turn: d.Turn, Reply: turns.NewReply{ID: d.Reply, Attempt: 1, Generation: 1, Owner: d.Owner}},
		owner: d.Owner, epoch: 1, status: turns.StatusAbandoned, reason: d.Reason, settled: true, stop: d.Verb == turns.VerbCancel}
	if r.stop {
		c.byID[d.Turn].cancelled = 1
	}
	m.replies = append(m.replies, r)
	return r
}

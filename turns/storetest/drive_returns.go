package storetest

import (
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turnd/turnd/turns"
)

// regenerateOne supersedes a turn's complete reply, now and then another reply instead.
func (d *driver) regenerateOne(rt *rapid.T) {
	r := d.pickOver(rt)
	claim := d.claimOf(rt, conversationOf(r.claim.Tenant, r.claim.Conversation.UUID))
	claim.NewTurn, claim.Turn = nil, r.claim.Turn
	d.again(&claim)
	claim.Reply.Generation++
	if live := d.m.live(claim.Key, claim.Turn); live != nil {
		claim.Supersede = live.claim.Reply.ID
	}
	if rapid.IntRange(0, 4).Draw(rt, "any") == 0 {
		claim.Supersede = r.claim.Reply.ID
	}
	d.send(claim)
	d.compareTurn(r)
}

func (d *driver) selectOne(rt *rapid.T) {
	r := d.pickOver(rt)
	s := turns.Selection{Key: r.claim.Key, ExpectVersion: d.m.conversations[r.claim.Key].version, Turn: r.claim.Turn, Select: r.claim.Reply.ID}
	if live := d.m.live(s.Key, s.Turn); live != nil && rapid.IntRange(0, 4).Draw(rt, "alone") > 0 {
		s.Supersede = live.claim.Reply.ID
	}
	if rapid.IntRange(0, 5).Draw(rt, "stale") == 0 {
		s.ExpectVersion--
	}
	require.Equal(d.t, d.m.choose(s), d.choose(s))
	d.compareTurn(r)
}

func (d *driver) cancelOne(rt *rapid.T) {
	r := d.pickReply(rt)
	s := cancelling(r.claim, d.offset(rt, r), r.pieces()...)
	s.Fence = d.fence(rt, r)
	require.Equal(d.t, d.m.sweep(s), d.sweep(s))
}

func (d *driver) reviveOne(rt *rapid.T) {
	r := d.pickOver(rt)
	v := reviving(r.claim, d.pickWorker(rt))
	v.Fence, v.Pieces = d.fence(rt, r), d.grown(rt, r)
	v.Length = lengthOf(v.Pieces)
	require.Equal(d.t, d.m.revive(v), d.revive(v))
}

func (d *driver) salvageOne(rt *rapid.T) {
	r := d.pickOver(rt)
	e := salvaging(r.claim)
	e.Fence, e.Content = d.fence(rt, r), d.grown(rt, r)
	e.StoredLength, e.Length = r.length(), lengthOf(e.Content)
	require.Equal(d.t, d.m.salvage(e), d.salvage(e))
}

func (d *driver) settleOne(rt *rapid.T) {
	r := d.pickOver(rt)
	e := settling(r.claim, r.length(), d.grown(rt, r)...)
	e.Fence = d.fence(rt, r)
	require.Equal(d.t, d.m.settle(e), d.settle(e))
}

func (d *driver) takeOverOne(rt *rapid.T) {
	r := d.pickReply(rt)
	v := d.takingOver(r.claim, d.offset(rt, r))
	v.Fence, v.Owner, v.Closed, v.Call.Number = d.fence(rt, r), d.pickWorker(rt), nil, r.calls+1
	if rapid.IntRange(0, 3).Draw(rt, "no call") == 0 {
		v.Call = turns.NewCall{}
	}
	got := d.takeOver(v)
	got.Left = 0 // the model has no clock
	require.Equal(d.t, d.m.takeOver(v), got)
}

// restoreOne restores a reply beside another, now and then at a version, an attempt or under an id that is not free.
func (d *driver) restoreOne(rt *rapid.T) {
	r := d.pickReply(rt)
	l := d.restoring(turns.Claim{Key: r.claim.Key, Tenant: r.claim.Tenant, Conversation: r.claim.Conversation, Turn: r.claim.Turn})
	l.Ending.Content, l.Ending.Length = []turns.Piece{opening("lost")}, 5
	l.Reply.Owner = d.pickWorker(rt)
	l.Reply.Generation += rapid.Int32Range(0, 1).Draw(rt, "generation")
	switch rapid.IntRange(0, 6).Draw(rt, "spoil") {
	case 0:
		l.ExpectVersion--
	case 1:
		l.Reply.Attempt--
	case 2:
		l.Reply.ID = r.claim.Reply.ID
	}
	restored := d.m.restore(l)
	require.Equal(d.t, restored != nil, d.restore(l))
	if restored != nil {
		d.touched = restored
	}
	d.compareTurn(r)
}

// pickOver prefers replies that are over, and among them those that nobody has settled.
func (d *driver) pickOver(rt *rapid.T) *modelReply {
	var over, open []*modelReply
	for _, r := range d.m.replies {
		if r.status != turns.StatusInFlight {
			over = append(over, r)
			if !r.settled {
				open = append(open, r)
			}
		}
	}
	if len(open) > 0 && rapid.Bool().Draw(rt, "unsettled") {
		over = open
	}
	if len(over) == 0 {
		rt.Skip("nothing is over yet")
	}
	d.touched = rapid.SampledFrom(over).Draw(rt, "over")
	return d.touched
}

// grown is a log that extends the reply's, now and then one that does not.
func (d *driver) grown(rt *rapid.T, r *modelReply) []turns.Piece {
	if rapid.IntRange(0, 5).Draw(rt, "shrunk") == 0 {
		return nil
	}
	return []turns.Piece{opening(r.text + rapid.SampledFrom([]string{"", "a", "é"}).Draw(rt, "tail"))}
}

func (d *driver) compareTurn(r *modelReply) {
	st, want := d.lookup(conversation{key: r.claim.Key}, r.claim.Turn), d.m.turn(r)
	require.Equal(d.t, []any{want.generation, want.cancelled, want.slot},
		[]any{st.Turn.Generation, st.CancelledGeneration, d.slotVersion(r.claim.Turn)})
}

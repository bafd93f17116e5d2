package storetest

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turnd/turnd/turns"
)

// pickTurn is a conversation and a turn of its line, now and then one that was started or has left the line. It skips the
// action where there is none.
func (d *driver) pickTurn(rt *rapid.T) (conversation, turns.TurnID) {
	c := rapid.SampledFrom(d.convs).Draw(rt, "conversation")
	conv := d.m.conversations[c.key]
	if conv == nil {
		rt.Skip("no turn yet")
	}
	from := conv.line
	if others := append(slices.Clone(conv.departed), conv.turns...); len(from) == 0 || rapid.IntRange(0, 5).Draw(rt, "any") == 0 {
		from = others
	}
	return c, rapid.SampledFrom(from).Draw(rt, "turn")
}

// version is a conversation's, now and then another.
func (d *driver) version(rt *rapid.T, key turns.ConversationKey) (version int64) {
	if conv := d.m.conversations[key]; conv != nil {
		version = conv.version
	}
	if rapid.IntRange(0, 5).Draw(rt, "stale") == 0 {
		version += rapid.SampledFrom([]int64{-1, 1}).Draw(rt, "version")
	}
	return version
}

func (d *driver) enqueueOne(rt *rapid.T) {
	c := rapid.SampledFrom(d.convs).Draw(rt, "conversation")
	e := d.enqueueing(c, rapid.IntRange(1, 4).Draw(rt, "most"))
	e.ExpectVersion, e.Reserve = d.version(rt, c.key), d.reservation(rt)
	if conv := d.m.conversations[c.key]; conv != nil && rapid.IntRange(0, 7).Draw(rt, "taken") == 0 {
		e.Turn = rapid.SampledFrom(append(slices.Clone(conv.line), conv.turns...)).Draw(rt, "turn")
	}
	got, err := d.Store.Enqueue(d.ctx, e)
	require.NoError(d.t, err)
	want := d.m.enqueue(e)
	got.CreateTime = time.Time{} // the model has no clock
	if got.Met != nil {
		got.Met.Wait = 0
	}
	if !want.Won {
		got.Position = 0
	}
	require.Equal(d.t, want, got)
	if want.Won && rapid.Bool().Draw(rt, "more") {
		d.enqueueOne(rt)
	}
}

// startOne claims for a turn of a line, mostly once nothing runs before it, and now and then as for one that never was in it.
func (d *driver) startOne(rt *rapid.T) {
	c, turn := d.pickTurn(rt)
	for _, r := range d.m.replies {
		if r.claim.Key == c.key && r.status == turns.StatusInFlight && rapid.IntRange(0, 3).Draw(rt, "busy") > 0 {
			e := completing(r.claim, r.length(), opening(r.text+"end"))
			e.Fence = r.fence()
			require.Equal(d.t, d.m.end(e), d.end(e).Won)
		}
	}
	claim := d.claimOf(rt, c)
	claim.NewTurn, claim.Turn, claim.Start = nil, turn, &turns.Start{Parent: d.m.conversations[c.key].leaf}
	d.again(&claim)
	if rapid.IntRange(0, 5).Draw(rt, "as another") == 0 {
		claim.Start = nil
	}
	d.send(claim)
}

func (d *driver) leaveOne(rt *rapid.T) {
	c, turn := d.pickTurn(rt)
	leave := turns.Departure{Key: c.key, ExpectVersion: d.version(rt, c.key), Turn: turn, Parent: d.m.conversations[c.key].leaf,
		Verb: turns.VerbCancel, Reason: turns.ReasonCancelled, Reply: newReplyID(), Owner: d.pickWorker(rt), Model: "demo"}
	if rapid.Bool().Draw(rt, "refused") {
		leave.Verb, leave.Reason = turns.VerbRefuse, turns.ReasonProviderRefused
	}
	got, err := d.Store.LeaveLine(d.ctx, leave)
	require.NoError(d.t, err)
	left := d.m.depart(leave)
	require.Equal(d.t, left != nil, got.Won)
	if left != nil {
		left.claim.Tenant, left.claim.Conversation = c.tenant, c.id
		d.touched = left
		d.compareTurn(left)
	}
}

func (d *driver) compareLine(conv *modelConversation, st turns.Standing) {
	var line []turns.TurnID
	for _, q := range st.Line {
		line = append(line, q.Turn)
	}
	require.Equal(d.t, append([]turns.TurnID{}, conv.line...), append([]turns.TurnID{}, line...))
	require.Equal(d.t, conv.turns[len(conv.turns)-1], st.LastTurn)
}

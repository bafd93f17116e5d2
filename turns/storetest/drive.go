package storetest

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turnd/turnd/turns"
)

// shortHistories is how many histories are tried with SHORT=1, unless a flag says how many; otherwise it is 100.
const shortHistories = "40"

// beShort has rapid try fewer histories for as long as a test runs, where time is short.
func beShort(t *testing.T) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if was := checks.Value.String(); os.Getenv("SHORT") != "" && was == checks.DefValue {
		require.NoError(t, flag.Set(checks.Name, shortHistories))
		t.Cleanup(func() { require.NoError(t, flag.Set(checks.Name, was)) })
	}
}

// RunModel drives a store with random operations, many of them stale, repeated or by the wrong worker, and asks a model
// after each what the store must have answered and must hold now.
func RunModel(t *testing.T, open Opener) {
	beShort(t)
	w := newWorld(t, open)
	rapid.Check(t, func(rt *rapid.T) {
		run := *w
		run.t = rt
		d := &driver{world: &run, m: newModel()}
		tenant := turns.Tenant(uuid.NewString())
		for range 3 {
			d.convs = append(d.convs, conversationOf(tenant, uuid.New()))
		}
		d.register(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"":           d.compare,
			"register":   d.register,
			"claim":      d.claimNew,
			"retry":      d.claimAgain,
			"repeat":     d.claimRepeated,
			"permit":     d.permitCall,
			"close":      d.closeCall,
			"checkpoint": d.append,
			"end":        d.endReply,
			"sweep":      d.sweepReply,
			"expire":     d.expire,
			"renew":      d.renew,
			"bury":       d.buryAll,
			"stop":       d.stop,
			"late":       d.late,
			"regenerate": d.regenerateOne,
			"select":     d.selectOne,
			"cancel":     d.cancelOne,
			"revive":     d.reviveOne,
			"salvage":    d.salvageOne,
			"settle":     d.settleOne,
			"take over":  d.takeOverOne,
			"restore":    d.restoreOne,
			"resolve":    d.resolveOne,
			"replace":    d.replaceOne,
			"note":       d.noteOne,
			"enqueue":    d.enqueueOne,
			"start":      d.startOne,
			"leave":      d.leaveOne,
			"charge":     d.settleShares,
			"tidy":       d.settleEnded,
		})
		d.compareAll()
	})
}

// driver holds one run. Runs share a store, as they never meet: each has a tenant, conversations and workers of its own.
type driver struct {
	*world
	m       *model
	convs   []conversation
	workers []turns.WorkerID
	touched *modelReply
}

func (d *driver) pickWorker(rt *rapid.T) turns.WorkerID {
	return rapid.SampledFrom(d.workers).Draw(rt, "worker")
}

// pickReply prefers what is running, as most writes are of that. It skips the action where there is no reply yet.
func (d *driver) pickReply(rt *rapid.T) *modelReply {
	var running []*modelReply
	for _, r := range d.m.replies {
		if r.status == turns.StatusInFlight {
			running = append(running, r)
		}
	}
	from := d.m.replies
	if len(running) > 0 && rapid.IntRange(0, 3).Draw(rt, "any") > 0 {
		from = running
	}
	if len(from) == 0 {
		rt.Skip("no reply yet")
	}
	d.touched = rapid.SampledFrom(from).Draw(rt, "reply")
	return d.touched
}

// fence is the reply's own, now and then spoiled in one field.
func (d *driver) fence(rt *rapid.T, r *modelReply) turns.Fence {
	f := r.fence()
	switch rapid.IntRange(0, 9).Draw(rt, "spoil") {
	case 0:
		f.Epoch += rapid.SampledFrom([]int64{-1, 1}).Draw(rt, "epoch")
	case 1:
		f.Owner = d.pickWorker(rt)
	case 2:
		f.Key = d.convs[0].key
	}
	return f
}

// offset is the stored length, now and then another.
func (d *driver) offset(rt *rapid.T, r *modelReply) uint32 {
	if rapid.IntRange(0, 4).Draw(rt, "astray") == 0 {
		return rapid.Uint32Range(0, r.length()+2).Draw(rt, "offset")
	}
	return r.length()
}

func (d *driver) register(rt *rapid.T) {
	if len(d.workers) == 4 {
		rt.Skip("enough workers")
	}
	id := d.world.register()
	d.workers = append(d.workers, id)
	d.m.workers[id] = &modelWorker{}
}

// claimOf fills a claim for a conversation as the model has it, with a version that is now and then wrong.
func (d *driver) claimOf(rt *rapid.T, c conversation) turns.Claim {
	claim := d.first(c)
	claim.Reply.Owner, claim.Reserve = d.pickWorker(rt), d.reservation(rt)
	if conv := d.m.conversations[c.key]; conv != nil {
		claim.ExpectVersion, claim.NextSeq, claim.NewTurn.Parent = conv.version, conv.nextSeq, conv.leaf
	}
	if rapid.IntRange(0, 5).Draw(rt, "stale") == 0 {
		claim.ExpectVersion = rapid.Int64Range(0, claim.ExpectVersion+1).Draw(rt, "version")
	}
	return claim
}

func (d *driver) claimNew(rt *rapid.T) {
	d.send(d.claimOf(rt, rapid.SampledFrom(d.convs).Draw(rt, "conversation")))
}

func (d *driver) claimAgain(rt *rapid.T) {
	c := rapid.SampledFrom(d.convs).Draw(rt, "conversation")
	conv := d.m.conversations[c.key]
	if conv == nil {
		rt.Skip("no turn yet")
	}
	claim := d.claimOf(rt, c)
	claim.NewTurn, claim.Turn = nil, rapid.SampledFrom(conv.turns).Draw(rt, "turn")
	d.again(&claim)
	d.send(claim)
}

// again makes a claim one of a further attempt of its turn.
func (d *driver) again(c *turns.Claim) {
	c.Reply.Attempt, c.Reply.Generation = 1, d.m.conversations[c.Key].byID[c.Turn].generation
	for _, r := range d.m.replies {
		if r.claim.Turn == c.Turn {
			c.Reply.Attempt++
		}
	}
}

func (d *driver) claimRepeated(rt *rapid.T) {
	if len(d.m.replies) == 0 {
		rt.Skip("no claim yet")
	}
	d.send(rapid.SampledFrom(d.m.replies).Draw(rt, "claim").claim)
}

func (d *driver) send(c turns.Claim) {
	got, wins := d.claim(c), d.m.wins(c)
	if wins {
		wins = d.admits(reservationOf(c), c.Reserve, got.Met)
	}
	require.Equal(d.t, wins, got.Won)
	if wins {
		d.m.claim(c)
		d.touched = d.m.replies[len(d.m.replies)-1]
	}
}

func (d *driver) permitCall(rt *rapid.T) {
	r := d.pickReply(rt)
	p := permitFor(r.claim, r.calls+1)
	p.Fence = d.fence(rt, r)
	require.Equal(d.t, d.m.permit(p), d.permit(p))
}

func (d *driver) closeCall(rt *rapid.T) {
	r := d.pickReply(rt)
	id := r.claim.Call.ID
	require.NoError(d.t, d.Store.CloseCalls(d.ctx, []turns.CallOutcome{*closing(r.claim.Key, id, turns.ClassTransient)}))
	delete(r.open, id)
}

func (d *driver) append(rt *rapid.T) {
	r := d.pickReply(rt)
	cp := turns.Checkpoint{Fence: d.fence(rt, r), From: d.offset(rt, r)}
	if text := rapid.SampledFrom([]string{"", "a", "é", "words "}).Draw(rt, "text"); text != "" {
		cp.Pieces = []turns.Piece{more(text)}
		cp.Pieces[0].Starts = cp.From == 0
	}
	cp.To = cp.From + lengthOf(cp.Pieces)
	results, err := d.Store.Checkpoint(d.ctx, []turns.Checkpoint{cp})
	require.NoError(d.t, err)
	require.Equal(d.t, d.m.checkpoint(cp), results[0])
}

func (d *driver) endReply(rt *rapid.T) {
	r := d.pickReply(rt)
	e := completing(r.claim, d.offset(rt, r), opening(r.text+"end"))
	switch rapid.IntRange(0, 3).Draw(rt, "how") {
	case 0, 1:
		e = abandoning(r.claim, d.offset(rt, r), turns.ReasonProviderError, r.pieces()...)
	case 2:
		e = holding(r.claim, d.offset(rt, r), r.pieces()...)
	}
	e.Fence = d.fence(rt, r)
	require.Equal(d.t, d.m.end(e), d.end(e).Won)
}

func (d *driver) sweepReply(rt *rapid.T) {
	r := d.pickReply(rt)
	s := sweeping(r.claim, d.offset(rt, r), r.pieces()...)
	if rapid.IntRange(0, 2).Draw(rt, "aside") == 0 {
		s = sweepingAside(r.claim, s.Length, s.Content...)
	}
	s.Fence = d.fence(rt, r)
	require.Equal(d.t, d.m.sweep(s), d.sweep(s))
}

func (d *driver) expire(rt *rapid.T) {
	id := d.pickWorker(rt)
	d.expireLease(id)
	d.m.workers[id].expired = true
}

func (d *driver) renew(rt *rapid.T) {
	id := d.pickWorker(rt)
	err := d.Store.RenewLease(d.ctx, id, time.Hour)
	if d.m.workers[id].dead {
		require.ErrorIs(d.t, err, turns.ErrBuried)
		return
	}
	require.NoError(d.t, err)
	d.m.workers[id].expired = false
}

func (d *driver) buryAll(*rapid.T) {
	buried, err := d.Store.BuryWorkers(d.ctx)
	require.NoError(d.t, err)
	mine := map[turns.WorkerID]bool{}
	for _, id := range buried {
		if d.m.workers[id] != nil {
			mine[id] = true
		}
	}
	require.Equal(d.t, d.m.bury(), mine)
}

func (d *driver) stop(rt *rapid.T) {
	r := d.pickReply(rt)
	got := d.world.stop(conversation{key: r.claim.Key}, r.claim.Turn)
	d.m.stop(r)
	if live := d.m.live(r.claim.Key, r.claim.Turn); live != nil {
		require.Equal(d.t, live.claim.Reply.ID, got.ID)
	}
}

func (d *driver) late(rt *rapid.T) {
	r := d.pickReply(rt)
	d.passDeadline(r.claim.Reply.ID)
	r.late = true
}

// compare asks the model about what the last action touched.
func (d *driver) compare(*rapid.T) {
	if d.touched != nil {
		d.compareReply(d.touched)
		d.compareConversation(d.touched.claim.Key)
	}
}

// compareAll asks it about everything that the run has stored.
func (d *driver) compareAll() {
	for _, c := range d.convs {
		d.compareConversation(c.key)
	}
	for _, r := range d.m.replies {
		d.compareReply(r)
	}
	d.compareQuotas()
}

func (d *driver) compareConversation(key turns.ConversationKey) {
	conv, st := d.m.conversations[key], d.lookup(conversation{key: key}, turns.TurnID{})
	require.Equal(d.t, conv != nil, st.Exists)
	if conv == nil {
		return
	}
	require.Equal(d.t, []any{conv.version, conv.nextSeq, conv.leaf}, []any{st.Version, st.NextSeq, st.Leaf})
	require.Len(d.t, d.stale(turns.StaleQuery{Key: &key}), d.m.stale(key))
	d.compareLine(conv, st)
}

func (d *driver) compareReply(want *modelReply) {
	c := conversation{key: want.claim.Key}
	got := d.read(c, want.claim.Reply.ID)
	require.Equal(d.t, []any{want.status, want.reason, want.calls, want.epoch, want.owner, want.settled, want.stop},
		[]any{got.Status, got.Reason, got.Calls, got.Epoch, got.Owner, got.Settled, got.CancelRequested})
	require.Equal(d.t, want.length(), got.Length)
	sameLog(d.t, want.pieces(), got.Content)
	require.EqualValues(d.t, len(want.open), d.count("SELECT count(*) FROM provider_calls WHERE reply_id = %s AND end_time IS NULL",
		got.ID.UUID))
}

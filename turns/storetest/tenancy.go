package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func tenancy() []promise {
	return []promise{
		{"every read with another tenant's key misses as a missing id does", everyReadMisses},
		{"every stop, choice and return with another tenant's key changes nothing", everyReturnMisses},
		{"every write with another tenant's key changes nothing", everyWriteMisses},
		{"two tenants use one conversation id and one turn id side by side", twoTenantsShareIDs},
	}
}

// foreign is the same conversation id under another tenant.
func foreign(c conversation) conversation { return conversationOf("intruder", c.id.UUID) }

func everyReadMisses(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.append(fenceOf(claim), 0, opening("secret"))
	f := foreign(c)
	equal(t, turns.Standing{}, w.lookup(f, claim.Turn), cmpopts.EquateEmpty())
	require.Empty(t, w.path(f, claim.Reply.ID.Row(), 10))
	_, err := w.Store.ReadReply(w.ctx, f.key, claim.Reply.ID)
	notFound(t, err)
	_, missing := w.Store.ReadReply(w.ctx, c.key, newReplyID())
	require.Equal(t, missing.Error(), err.Error())
	equal(t, turns.LogView{}, w.viewFrom(f, claim.Reply.ID, 0), cmpopts.EquateEmpty())
	_, err = w.Store.FindTurn(w.ctx, f.key, claim.Turn.Row())
	notFound(t, err)
	replies, err := w.Store.RepliesTo(w.ctx, f.key, claim.Turn, 10)
	require.NoError(t, err)
	require.Empty(t, replies)
	require.Empty(t, w.entries(f, claim.Turn))
	_, err = w.Store.ReadConversation(w.ctx, f.key)
	notFound(t, err)
	require.Empty(t, w.list(turns.ConversationQuery{Tenant: f.tenant, Subject: "subject"}))
	require.Empty(t, w.stale(turns.StaleQuery{Key: &f.key, Stopped: true}))
}

func everyWriteMisses(t *testing.T, w *world) {
	c, claim := w.fresh()
	f := foreign(c)
	fence := fenceOf(claim)
	fence.Key = f.key
	w.unchanged(func() {
		require.Zero(t, w.checkpoint(fence, 0, opening("a")))
		p := permitFor(claim, 2)
		p.Fence = fence
		require.Zero(t, w.permit(p))
		e := completing(claim, 0, whole("a"))
		e.Fence = fence
		require.Zero(t, w.end(e))
		s := sweeping(claim, 0)
		s.Fence = fence
		require.False(t, w.sweep(s))
		require.NoError(t, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{*closing(f.key, claim.Call.ID, turns.ClassOK)}))
		updated, err := w.Store.UpdateConversation(w.ctx, turns.Conversation{Key: f.key, ID: c.id, Tenant: f.tenant}, 1)
		require.NoError(t, err)
		require.False(t, updated)
	})
}

func everyReturnMisses(t *testing.T, w *world) {
	c, first, second := w.twoReplies()
	lost := w.win(w.next(c))
	w.sweepAway(lost)
	f := foreign(c)
	s := w.selection(c, first.Turn, first.Reply.ID)
	regenerate, r, e := w.regenerate(c, first.Turn), reviving(lost, w.worker), salvaging(lost)
	l := w.restoring(first)
	s.Key, regenerate.Key, r.Fence.Key, e.Fence.Key, l.Key, l.Tenant = f.key, f.key, f.key, f.key, f.key, f.tenant
	require.Equal(t, second.Reply.ID, regenerate.Supersede)
	w.unchanged(func() {
		_, err := w.Store.RequestStop(w.ctx, f.key, lost.Turn, 0, turns.TurnID{})
		notFound(t, err)
		require.False(t, w.choose(s))
		require.False(t, w.claim(regenerate).Won)
		require.False(t, w.revive(r))
		require.False(t, w.salvage(e))
		require.False(t, w.settle(e))
		require.False(t, w.restore(l))
	})
	running, deserted := w.deserted()
	v := w.takingOver(deserted, 3)
	v.Fence.Key = foreign(running).key
	w.unchanged(func() { require.Zero(t, w.takeOver(v)) })
}

func twoTenantsShareIDs(t *testing.T, w *world) {
	id := uuid.New()
	ours := w.first(conversationOf("a", id))
	theirs := ours
	c := conversationOf("b", id)
	theirs.Key, theirs.Tenant = c.key, c.tenant
	theirs.NewTurn = &turns.NewTurn{InputHash: []byte("other"), Content: []turns.Block{turns.Text{Text: "theirs"}}}
	w.win(ours)
	w.win(theirs)
	w.finish(completing(ours, 0, whole("ours")))
	r := w.read(c, theirs.Reply.ID)
	require.Equal(t, turns.StatusInFlight, r.Status)
	require.Equal(t, []byte("other"), w.lookup(c, theirs.Turn).InputHash)
}

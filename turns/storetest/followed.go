package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func followed() []promise {
	return []promise{
		{"a reply keeps the grace that it was claimed with", aReplyKeepsItsGrace},
		{"a mark says that the reply is followed elsewhere, and for how long", aMarkIsSeen},
		{"a shorter mark does not take back a longer one", aMarkOnlyGrows},
		{"a reply that has ended, and one of another tenant, is not marked", onlyRepliesInFlightAreMarked},
	}
}

func (w *world) mark(key turns.ConversationKey, id turns.ReplyID, d time.Duration) {
	w.t.Helper()
	require.NoError(w.t, w.Store.MarkFollowed(w.ctx, []turns.FollowMark{{Key: key, Reply: id, For: d}}))
}

func aReplyKeepsItsGrace(t *testing.T, w *world) {
	c := newConversation()
	claim := w.first(c)
	claim.Reply.DisconnectGrace = 42 * time.Second
	w.win(claim)
	require.Equal(t, 42*time.Second, w.read(c, claim.Reply.ID).DisconnectGrace)
	require.LessOrEqual(t, w.read(c, claim.Reply.ID).FollowedLeft, time.Duration(0))
	other, plain := w.fresh()
	require.Zero(t, w.read(other, plain.Reply.ID).DisconnectGrace)
}

func aMarkIsSeen(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.mark(c.key, claim.Reply.ID, time.Hour)
	left := w.read(c, claim.Reply.ID).FollowedLeft
	require.Greater(t, left, 50*time.Minute)
	require.LessOrEqual(t, left, time.Hour)
}

func aMarkOnlyGrows(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.mark(c.key, claim.Reply.ID, time.Hour)
	w.mark(c.key, claim.Reply.ID, time.Second)
	require.Greater(t, w.read(c, claim.Reply.ID).FollowedLeft, 50*time.Minute)
}

func onlyRepliesInFlightAreMarked(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.unchanged(func() { w.mark(newConversation().key, claim.Reply.ID, time.Hour) })
	w.finish(completing(claim, 0, whole("a")))
	w.unchanged(func() { w.mark(c.key, claim.Reply.ID, time.Hour) })
}

package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// Each field of the fence, wrong by itself, must stop each write. So they are all tried.
func fences() []promise {
	return []promise{
		{"a write with another reply's id changes nothing", func(_ *testing.T, w *world) {
			w.refused(func(_ turns.Claim, f *turns.Fence) { f.Reply = newReplyID() })
		}},
		{"a write with another conversation's key changes nothing", func(_ *testing.T, w *world) {
			w.refused(func(_ turns.Claim, f *turns.Fence) { f.Key = newConversation().key })
		}},
		{"a write with an older epoch changes nothing", func(_ *testing.T, w *world) {
			w.refused(func(_ turns.Claim, f *turns.Fence) { f.Epoch = 0 })
		}},
		{"a write with a newer epoch changes nothing", func(_ *testing.T, w *world) {
			w.refused(func(_ turns.Claim, f *turns.Fence) { f.Epoch = 2 })
		}},
		{"a write by another owner changes nothing", func(_ *testing.T, w *world) {
			other := w.register()
			w.refused(func(_ turns.Claim, f *turns.Fence) { f.Owner = other })
		}},
		{"a write of a held reply changes nothing", func(_ *testing.T, w *world) {
			w.refused(func(c turns.Claim, _ *turns.Fence) { w.hold(c.Reply.ID) })
		}},
		{"a write of a complete reply changes nothing", func(_ *testing.T, w *world) {
			w.refused(func(c turns.Claim, _ *turns.Fence) { w.finish(completing(c, 2, whole(""))) })
		}},
		{"a write of an abandoned reply changes nothing", func(_ *testing.T, w *world) {
			w.refused(func(c turns.Claim, _ *turns.Fence) { w.finish(abandoning(c, 2, turns.ReasonShutdown, whole(""))) })
		}},
		{"a write of a user turn's row changes nothing", func(_ *testing.T, w *world) {
			w.refused(func(c turns.Claim, f *turns.Fence) { f.Reply = turns.ReplyID(c.Turn) })
		}},
	}
}

// refused spoils a fence, or the row it guards, and asserts that every fenced write is then refused. The stored log is
// 2 long before and after, so that nothing but the fence can be what refuses.
func (w *world) refused(spoil func(turns.Claim, *turns.Fence)) {
	w.t.Helper()
	_, claim := w.fresh()
	fence := fenceOf(claim)
	w.append(fence, 0, opening("a"))
	spoil(claim, &fence)
	p, e, s := permitFor(claim, 2), completing(claim, 2, whole("b")), sweeping(claim, 2, whole("b"))
	p.Fence, e.Fence, s.Fence = fence, fence, fence
	e.Call = closing(claim.Key, claim.Call.ID, turns.ClassOK)
	w.passDeadline(claim.Reply.ID)
	w.unchanged(func() {
		w.t.Helper()
		require.Zero(w.t, w.permit(p), "permit")
		require.Zero(w.t, w.checkpoint(fence, 2, more("b")), "checkpoint")
		require.Zero(w.t, w.checkpoint(fence, 2), "asking checkpoint")
		require.Zero(w.t, w.end(e), "end")
		require.False(w.t, w.sweep(s), "sweep")
	})
}

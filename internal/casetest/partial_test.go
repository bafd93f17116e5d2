package casetest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// cutShort are the ways in which a reply ends after forty deltas, and the reason that is left of each.
var cutShort = map[string]struct {
	end    *scripted.Step // nil: the user stops it
	reason turnsv1.AbandonReason
}{
	"a stop":           {nil, cancelled},
	"a provider error": {&scripted.Step{At: scripted.AfterDelta(40), Do: scripted.DoErrorEvent, Error: "overloaded_error"}, providerError},
	"a lost network":   {&scripted.Step{At: scripted.AfterDelta(40), Do: scripted.DoClose}, ambiguous},
}

func TestC44WhatWasShownBeforeTheEndIsInTheHistoryAndNotInTheNextPrompt(t *testing.T) {
	for name, way := range cutShort {
		t.Run(name, func(t *testing.T) {
			onEachWire(t, func(t *testing.T, w *world, model string) {
				s := w.serve()
				conversation := newID()
				var shown []string // by turn, the newest first
				for n := 1; n <= 3; n++ {
					in := ask(conversation, newID(), "turn")
					in.Options = &turnsv1.GenerationOptions{Model: model}
					var told state
					if way.end == nil {
						w.script(stoppable(strings.Repeat("i", n), 64, 40))
						running := s.turn(in, nil)
						running.at(1 + 39*16)
						s.cancelTurn(in)
						told = running.abandons(way.reason)
					} else {
						w.script(failing(1, *way.end))
						told = s.turn(in, nil).abandons(way.reason)
					}
					require.GreaterOrEqual(t, len(told.text), 39*16)
					shown = append([]string{told.text}, shown...)
					w.madeFrom(n, strings.Repeat("turn ", n))
					kept := s.read(conversation, in.GetTurnId()).GetReplies()
					require.Len(t, kept, 1)
					s.keeps(kept[0], told.text, way.reason)
					history, err := s.turns.ListTurns(w.ctx, &turnsv1.ListTurnsRequest{ConversationId: conversation})
					require.NoError(t, err)
					require.Len(t, history.GetEntries(), n)
					for i, e := range history.GetEntries() {
						s.keeps(e.GetReply(), shown[i], way.reason)
					}
				}
				w.script(plain(4))
				last := ask(conversation, newID(), "and now")
				last.Options = &turnsv1.GenerationOptions{Model: model}
				s.turn(last, nil).completes()
				w.madeFrom(4, "turn turn turn and now")
			})
		})
	}
}

// keeps demands that a reply was given up for a reason, and still says what was shown of it.
func (w *worker) keeps(r *turnsv1.Reply, text string, reason turnsv1.AbandonReason) {
	w.t.Helper()
	require.Equal(w.t, abandoned, r.GetStatus())
	require.Equal(w.t, reason, r.GetAbandonReason())
	require.Equal(w.t, text, stored(r))
	require.False(w.t, r.GetContentTruncated())
}

func TestC47ARegenerateRightAfterAStopIsTheOneLiveReply(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		one, two := w.serve(), w.serve()
		stopped := gate("", "old", 64, 20) // the provider goes on though nobody listens
		stopped.Times = 1
		w.script(stopped, gate("", "new", 16, 4))
		in := ask(newID(), newID(), "hi")
		first := one.turn(in, nil)
		first.at(1 + 19*16)
		old := two.cancelTurn(in).GetReplyId()
		made, err := two.regenerate(in.GetConversationId(), old, 0)
		require.NoError(t, err)
		again := two.follow(in.GetConversationId(), made.GetReply().GetReplyId(), 0)
		again.at(1 + 3*16)
		require.NoError(t, w.provider.OpenGate("old"))
		require.NoError(t, w.provider.WaitFinished(w.ctx, 1))
		w.stands(map[string]int{qLive: 1, qInFlight: 1})
		require.NoError(t, w.provider.OpenGate("new"))
		require.Len(t, again.completes().text, 16*16)
		told := first.abandons(cancelled)
		replies := one.read(in.GetConversationId(), in.GetTurnId()).GetReplies()
		require.Len(t, replies, 2)
		one.keeps(replies[0], told.text, cancelled)
		require.Equal(t, complete, replies[1].GetStatus())
		w.paid(2, 2)
		w.stands(map[string]int{qLive: 1, qReplies: 2, qLedger: 2, qOpen: 0})
	})
}

func TestC47WhatAStoppedReplyCommitsAfterARegenerateIsRejected(t *testing.T) {
	for name, early := range map[string]bool{"while the new one runs": true, "after the new one": false} {
		t.Run(name, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) {
				owner, down, up := w.wakes()
				other := w.serve()
				stopped := gate("", "old", 64, 20)
				stopped.Times = 1
				w.script(stopped, gate("", "new", 16, 4))
				in := ask(newID(), newID(), "hi")
				owner.turn(in, nil).at(1 + 19*16)
				down() // it hears of no stop, and its call goes on
				old := other.cancelTurn(in)
				require.Equal(t, cancelled, old.GetAbandonReason())
				made, err := other.regenerate(in.GetConversationId(), old.GetReplyId(), 0)
				require.NoError(t, err)
				again := other.follow(in.GetConversationId(), made.GetReply().GetReplyId(), 0)
				again.at(1 + 3*16)
				late := func() {
					require.NoError(t, w.provider.OpenGate("old"))
					require.NoError(t, w.provider.WaitFinished(w.ctx, 1))
					up()
					w.eventually(func() bool {
						return w.number(`SELECT count(*) FROM turns WHERE reason = 'cancelled' AND settled_at IS NOT NULL`) == 1
					})
				}
				if early {
					late()
					w.stands(map[string]int{qLive: 1, qInFlight: 1})
				}
				require.NoError(t, w.provider.OpenGate("new"))
				require.Len(t, again.completes().text, 16*16)
				if !early {
					late()
				}
				replies := other.read(in.GetConversationId(), in.GetTurnId()).GetReplies()
				require.Len(t, replies, 2)
				require.Equal(t, abandoned, replies[0].GetStatus())
				require.Equal(t, cancelled, replies[0].GetAbandonReason())
				require.GreaterOrEqual(t, len(stored(replies[0])), 19*16, "the text that was shown is kept")
				require.Equal(t, complete, replies[1].GetStatus())
				require.Len(t, stored(replies[1]), 16*16)
				require.Equal(t, replies[1].GetReplyId(), other.turn(in, nil).completes().reply)
				w.paid(2, 2)
				w.stands(map[string]int{qLive: 1, qReplies: 2, qLedger: 2, qOpen: 0})
			})
		})
	}
}

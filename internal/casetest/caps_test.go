package casetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// capped demands that a delivery was refused for a cap.
func (w *world) capped(err error, name, scope, limit string) {
	w.t.Helper()
	meta := w.fails(err, codes.FailedPrecondition, "CAP_REACHED", "DO_NOT_RETRY")
	require.Equal(w.t, []string{name, scope, limit}, []string{meta["cap"], meta["scope"], meta["limit"]})
}

func TestEachCapStopsWithItsReasonOnEveryReplicaAndReplaysStayFree(t *testing.T) {
	for name, caps := range map[string]struct {
		caps  turns.Caps
		limit string
	}{
		"turns":  {turns.Caps{Turns: 2}, "2"},
		"tokens": {turns.Caps{Tokens: 9}, "9"},       // 1 and 4 at first, then 2 and more
		"cost":   {turns.Caps{CostMicros: 41}, "41"}, // 1 and 4 at ten micros a token out
		"time":   {turns.Caps{Time: 1e6}, "1"},       // a millisecond
	} {
		for _, scope := range []string{"conversation", "tenant"} {
			t.Run(name+" of a "+scope, func(t *testing.T) {
				onEachEngine(t, func(t *testing.T, w *world) {
					if scope == "tenant" {
						w.settings.TenantCaps = caps.caps
					} else {
						w.settings.ConversationCaps = caps.caps
					}
					w.prices = turns.Prices{Output: 10}
					slow := plain(4)
					slow.Plan.Steps = []scripted.Step{{At: scripted.AtBeforeHeaders, Do: scripted.DoWait, Gate: "begin"}}
					w.script(slow)
					one, two := w.serve(), w.serve()
					in := ask(newID(), newID(), "hi")
					first := one.turn(in, nil)
					require.NoError(t, w.provider.WaitGate(w.ctx, "begin", 1))
					if name == "time" {
						began := w.number(qLedger)
						require.Equal(t, 1, began)
						w.eventually(w.aMillisecondAfter(time.Now()))
					}
					require.NoError(t, w.provider.OpenGate("begin"))
					first.completes()
					if name != "time" {
						two.turn(ask(in.GetConversationId(), newID(), "more"), nil).completes()
					}
					requests := w.provider.Counts().Requests
					for _, s := range []*worker{one, two} {
						_, err := s.submit(ask(in.GetConversationId(), newID(), "and more"))
						w.capped(err, name, scope, caps.limit)
						require.Equal(t, replayed, s.turn(in, nil).completes().result)
					}
					_, err := one.turns.RegenerateReply(w.ctx, &turnsv1.RegenerateReplyRequest{ConversationId: in.GetConversationId(), ReplyId: first.reply})
					w.capped(err, name, scope, caps.limit)
					if scope == "tenant" {
						_, err = two.submit(ask(newID(), newID(), "elsewhere"))
						w.capped(err, name, scope, caps.limit)
						other := metadata.AppendToOutgoingContext(w.ctx, "x-turnd-tenant", "another")
						_, err = two.turns.SubmitTurn(other, &turnsv1.SubmitTurnRequest{Input: ask(newID(), newID(), "elsewhere")})
					} else {
						_, err = two.submit(ask(newID(), newID(), "elsewhere"))
					}
					require.NoError(t, err)
					w.eventually(func() bool { return w.number(qInFlight) == 0 })
					require.Equal(t, requests+1, w.provider.Counts().Requests)
				})
			})
		}
	}
}

// aMillisecondAfter tells that the wall clock is well past a moment.
func (w *world) aMillisecondAfter(moment time.Time) func() bool {
	return func() bool { return time.Since(moment) > 5*time.Millisecond }
}

func TestATurnThatCountsAlreadyIsTriedAgainThoughItsCapOnTurnsIsReached(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.ConversationCaps = turns.Caps{Turns: 1}
		s := w.serve()
		w.script(failing(1, scripted.Step{At: scripted.AfterDelta(3), Do: scripted.DoClose}), plain(4))
		in := ask(newID(), newID(), "hi")
		s.turn(in, nil).abandons(ambiguous)
		s.turn(in, nil).completes()
		_, err := s.submit(ask(in.GetConversationId(), newID(), "more"))
		w.capped(err, "turns", "conversation", "1")
		w.stands(map[string]int{qUsers: 1, qReplies: 2})
	})
}

func TestACapIsAskedForBeforeARunningReplyIsInterrupted(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.ConversationCaps = turns.Caps{Turns: 1}
		s := w.serve()
		w.script(gate("", "mid", 64, 20))
		in, running := s.busyAt()
		_, err := s.submit(interrupting(in.GetConversationId()))
		w.capped(err, "turns", "conversation", "1")
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
	})
}

func TestATurnInLineIsRefusedForGoodWhenACapIsReachedBeforeItStarts(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.ConversationCaps = turns.Caps{Tokens: 4}
		s := w.serve()
		w.script(gate("", "mid", 64, 20))
		in, running := s.busyAt()
		waits := enqueuing(in.GetConversationId(), "two")
		_, err := s.submit(waits)
		require.NoError(t, err)
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		s.turn(waits, nil).abandons(turnsv1.AbandonReason_ABANDON_REASON_PROVIDER_REFUSED)
		w.paid(1, 1)
		_, err = s.submit(enqueuing(in.GetConversationId(), "three"))
		w.capped(err, "tokens", "conversation", "4")
	})
}

func TestATurnThatNeverFitsUnderACapIsNotPutInLine(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.ConversationCaps = turns.Caps{Turns: 1}
		s := w.serve()
		w.script(gate("", "mid", 64, 20))
		in, running := s.busyAt()
		_, err := s.submit(enqueuing(in.GetConversationId(), "two"))
		w.capped(err, "turns", "conversation", "1")
		w.stands(map[string]int{qUsers: 1})
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
	})
}

package casetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

const (
	isNew    = turnsv1.DeliveryResult_DELIVERY_RESULT_NEW
	attached = turnsv1.DeliveryResult_DELIVERY_RESULT_ATTACHED
	replayed = turnsv1.DeliveryResult_DELIVERY_RESULT_REPLAYED
	retried  = turnsv1.DeliveryResult_DELIVERY_RESULT_RETRIED
)

func TestC01ALostResponseSentAgainIsOneRequestAndOneReply(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		for i, conversation := range []string{newID(), ""} { // a known conversation, and one that the turn makes
			w.script(gate("", fmt.Sprint("mid", i), 64, 8))
			in := ask(conversation, newID(), "hi")
			lost := s.turn(in, nil)
			require.NoError(t, w.provider.WaitRequests(w.ctx, i+1))
			lost.cancel() // the response is lost on its way
			require.Error(t, lost.end().err)
			again, third := s.turn(in, nil), s.turn(in, nil)
			again.at(1)
			third.at(1)
			require.NoError(t, w.provider.OpenGate(fmt.Sprint("mid", i)))
			a, b := again.completes(), third.completes()
			require.Equal(t, attached, a.result)
			require.Equal(t, attached, b.result)
			require.Equal(t, a.reply, b.reply)
			require.Equal(t, a.text, b.text)
			require.Equal(t, in.GetTurnId(), a.turn.GetTurnId())
			w.paid(i+1, i+1)
			w.stands(map[string]int{qUsers: i + 1, qReplies: i + 1, qConvs: i + 1, qLedger: i + 1})
		}
	})
}

func TestC02ALateRepeatOfATurnGetsItsOwnReplyAndNeverTheNextTurns(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(gate("B", "mid", 64, 8), plain(16))
		conversation := newID()
		a, b := ask(conversation, newID(), "A"), ask(conversation, newID(), "B")
		first := s.turn(a, nil).completes()
		running := s.turn(b, nil)
		running.at(1)
		late := s.turn(a, nil).completes()
		require.Equal(t, replayed, late.result)
		require.Equal(t, first.reply, late.reply)
		require.Equal(t, first.text, late.text)
		require.NoError(t, w.provider.OpenGate("mid"))
		require.NotEqual(t, first.text, running.completes().text)
		w.paid(2, 2)
	})
}

func TestC06AndC08DeliveriesOfOneEventAreOneReplyWheneverTheyCome(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(gate("", "mid", 64, 8))
		in := ask(newID(), newID(), "an event from upstream")
		in.Source = turnsv1.DeliverySource_DELIVERY_SOURCE_REDELIVERY
		results := map[turnsv1.DeliveryResult]int{}
		var reply string
		deliver := func() {
			got, err := s.submit(in) // returns though the model has not finished
			require.NoError(t, err)
			results[got.GetResult()]++
			require.Contains(t, []string{"", reply}, reply)
			reply = got.GetReply().GetReplyId()
		}
		deliver()
		deliver()
		require.NoError(t, w.provider.WaitGate(w.ctx, "mid", 1))
		deliver()
		require.NoError(t, w.provider.OpenGate("mid"))
		s.turn(in, nil).completes()
		deliver()
		require.Equal(t, map[turnsv1.DeliveryResult]int{isNew: 1, attached: 2, replayed: 1}, results)
		w.paid(1, 1)
		history, err := s.turns.ListTurns(w.ctx, &turnsv1.ListTurnsRequest{ConversationId: in.GetConversationId()})
		require.NoError(t, err)
		require.Len(t, history.GetEntries(), 1)
		require.Equal(t, int32(1), history.GetEntries()[0].GetReplyCount())
		require.Equal(t, int32(1), history.GetEntries()[0].GetReply().GetUsage().GetProviderCalls())
	})
}

func TestC07ABudgetOfThreeCallsIsThreeRequestsHoweverOftenTheTurnIsSent(t *testing.T) {
	failures := map[string]scripted.Step{
		"500": {At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 500, Error: "api_error"},
		"429": {At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 429, Error: "rate_limit_error", Headers: map[string]string{"retry-after": "0"}},
	}
	for name, step := range failures {
		t.Run(name, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) {
				w.settings.MaxCalls = 3
				s := w.serve()
				w.script(failing(0, step))
				in := ask(newID(), newID(), "hi")
				in.Options = &turnsv1.GenerationOptions{Model: map[string]string{"500": "anthropic", "429": "openai"}[name]}
				got := s.turn(in, nil).abandons(turnsv1.AbandonReason_ABANDON_REASON_PROVIDER_ERROR)
				require.Equal(t, turnsv1.RetryAdvice_RETRY_ADVICE_REGENERATE, got.abandoned.GetAdvice())
				for range 3 {
					again := s.turn(in, nil).abandons(turnsv1.AbandonReason_ABANDON_REASON_PROVIDER_ERROR)
					require.Equal(t, replayed, again.result)
				}
				w.paid(3, 0)
				w.stands(map[string]int{qReplies: 1, qLedger: 3, qOpen: 0, qWasted: 0})
			})
		})
	}
}

func TestC07TheBudgetHoldsOverAttemptsAndWorkers(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.MaxCalls = 3
		workers := []*worker{w.serve(), w.serve()}
		w.script(failing(0, scripted.Step{At: scripted.AfterDelta(4), Do: scripted.DoReset}))
		in := ask(newID(), newID(), "hi")
		for i := range 6 { // each attempt ends with an unknown outcome, and each delivery asks for another
			got := workers[i%2].turn(in, nil).abandons(turnsv1.AbandonReason_ABANDON_REASON_AMBIGUOUS)
			if i < 3 {
				require.Equal(t, map[bool]turnsv1.DeliveryResult{true: isNew, false: retried}[i == 0], got.result)
			} else {
				require.Equal(t, replayed, got.result)
			}
		}
		w.paid(3, 3)
		w.stands(map[string]int{qReplies: 3, qLive: 0, qLedger: 3})
	})
}

func TestC09ADoubleClickIsOneTurnAndASecondTurnIsToldWhatRuns(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		one, two := w.serve(), w.serve()
		w.script(gate("", "mid", 64, 8))
		in := ask(newID(), newID(), "same words")
		a, b := one.turn(in, nil), two.turn(in, nil)
		a.at(1)
		b.at(1)
		other := ask(in.GetConversationId(), newID(), "same words") // another tab, another id
		_, err := two.submit(other)
		meta := w.fails(err, codes.FailedPrecondition, "CONVERSATION_BUSY", "SAME_ID_AFTER_WAIT")
		require.Equal(t, in.GetTurnId(), meta["turn_id"])
		require.Equal(t, a.at(1).reply, meta["reply_id"])
		require.NotEmpty(t, meta["age_ms"])
		require.NotEmpty(t, meta["lease_expires_in_ms"])
		require.NoError(t, w.provider.OpenGate("mid"))
		require.Equal(t, a.completes().text, b.completes().text)
		w.paid(1, 1)
		w.stands(map[string]int{qUsers: 1, qReplies: 1})
		one.turn(other, nil).completes()
		w.stands(map[string]int{qUsers: 2, qReplies: 2})
	})
}

func TestC11TheSameIdWithOtherContentIsAConflictAndChangesNothing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		in := ask(newID(), newID(), "hello")
		first := s.turn(in, nil).completes()
		for name, other := range map[string]func(*turnsv1.TurnInput){
			"text":    func(in *turnsv1.TurnInput) { in.Content[0].GetText().Text = "hello!" },
			"options": func(in *turnsv1.TurnInput) { in.Options = &turnsv1.GenerationOptions{System: "be brief"} },
			"parent":  func(in *turnsv1.TurnInput) { in.Parent = &turnsv1.TurnInput_Root{Root: true} },
		} {
			changed := ask(in.GetConversationId(), in.GetTurnId(), "hello")
			other(changed)
			_, err := s.submit(changed)
			require.NotNil(t, err, name)
			w.fails(err, codes.AlreadyExists, "TURN_ID_REUSED", "NEW_ID")
		}
		steered := ask(in.GetConversationId(), in.GetTurnId(), "hello") // what only steers the delivery is no other input
		steered.OnBusy = turnsv1.OnBusy_ON_BUSY_REJECT
		steered.Source = turnsv1.DeliverySource_DELIVERY_SOURCE_CLIENT_RETRY
		again := s.turn(steered, nil).completes()
		require.Equal(t, first.text, again.text)
		w.paid(1, 1)
		w.stands(map[string]int{qUsers: 1, qReplies: 1})
	})
}

func TestAThousandRepeatsAtOnceAreOneClaim(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		workers := []*worker{w.serve(), w.serve()}
		w.script(gate("", "mid", 32, 8))
		in := ask("", newID(), "hi")
		n := 40
		streams := make([]*stream, n)
		for i := range streams {
			streams[i] = workers[i%2].turn(in, nil)
		}
		for _, s := range streams {
			s.at(1)
		}
		require.NoError(t, w.provider.OpenGate("mid"))
		results := map[turnsv1.DeliveryResult]int{}
		for _, s := range streams {
			got := s.completes()
			results[got.result]++
			require.Equal(t, streams[0].end().text, got.text)
		}
		require.Equal(t, 1, results[isNew], fmt.Sprint(results))
		w.paid(1, 1)
		w.stands(map[string]int{qUsers: 1, qReplies: 1, qLedger: 1, qConvs: 1})
	})
}

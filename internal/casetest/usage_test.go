package casetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

const (
	qEstimated = `SELECT count(*) FROM provider_calls WHERE class = 'cancelled' AND token_source = 'estimated' AND input_tokens > 0 AND output_tokens > 0 AND output_low = output_tokens`
	qSaid      = `SELECT count(*) FROM provider_calls WHERE class = 'cancelled' AND token_source = 'reported'`
)

func TestC69ACancelledReplyIsOnTheLedgerByWhatIsKnownOfIt(t *testing.T) {
	for model, reported := range map[string]int{"anthropic": 0, "openai": 0, "background": 0, "interactions": 0, "generate": 1} {
		t.Run(model, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) {
				s := w.serve()
				w.script(gate("", "mid", 64, 38))
				in := askOf(model)
				s.turn(in, nil).at(1 + 37*16)
				require.NoError(t, w.provider.WaitGate(w.ctx, "mid", 1))
				require.Equal(t, cancelled, s.cancelTurn(in).GetAbandonReason())
				w.stands(map[string]int{qEstimated: 1 - reported, qSaid: reported, qOpen: 0})
				if reported == 1 { // this provider says with each chunk what it took so far
					c := w.provider.Counts()
					w.stands(map[string]int{qReported: c.InputTokens + c.OutputTokens})
				}
			})
		})
	}
}

func TestAStatus400ThatSpeaksOfWorkUnderWayIsNoRefusal(t *testing.T) {
	for model, code := range map[string]string{"openai": "conversation_locked", "anthropic": "thread_continue_in_flight"} {
		t.Run(model, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) {
				s := w.serve()
				w.script(failing(1, scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 400, Error: code}), plain(16))
				in := askOf(model)
				got := s.turn(in, nil).abandons(ambiguous)
				require.Equal(t, sameIDNow, got.abandoned.GetAdvice())
				require.Equal(t, code, got.abandoned.GetProviderCode())
				s.turn(in, nil).completes()
				w.stands(map[string]int{`SELECT count(*) FROM provider_calls WHERE class = 'in_flight_elsewhere'`: 1})
			})
		})
	}
}

package casetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

// onEachAskable plays a case on both engines with each model whose provider can be asked for an answer while it is made or
// once it is whole.
func onEachAskable(t *testing.T, play func(t *testing.T, w *world, model string), models ...string) {
	for _, model := range models {
		t.Run(model, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) { play(t, w, model) })
		})
	}
}

// once demands that one reply was made by one generation, each of whose tokens is on the ledger as the provider reported
// it, and none wasted.
func (w *world) once(epoch string) {
	w.t.Helper()
	c := w.provider.Counts()
	require.Equal(w.t, 1, c.Generations)
	w.stands(map[string]int{qReplies: 1, qLive: 1, qLedger: 1, qOpen: 0, qWasted: 0, qReported: c.InputTokens + c.OutputTokens,
		`SELECT count(*) FROM turns WHERE role = 'assistant' AND status = 'complete' AND epoch = ` + epoch: 1})
}

func TestC55AStreamThatBreaksOffIsGoneOnWithWhereTheProviderResumes(t *testing.T) {
	onEachAskable(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(failing(1, scripted.Step{At: scripted.AfterDelta(37), Do: scripted.DoReset}))
		got := s.turn(askOf(model), nil).completes()
		require.Nil(t, got.restarted, "a pause is all that is seen")
		w.paid(1, 1)
		w.once("1")
	}, "background", "interactions")
}

func TestC28ABackgroundReplyOfADeadWorkerIsGoneOnWithByAnother(t *testing.T) {
	onEachAskable(t, func(t *testing.T, w *world, model string) {
		w.short()
		w.script(gate("", "mid", 64, 37))
		dying, die := w.cutOff()
		other := w.serve()
		in := askOf(model)
		seen := dying.turn(in, nil).at(1 + 36*16)
		far := other.follow(in.GetConversationId(), seen.reply, 0)
		far.at(1 + 36*16)
		w.eventually(func() bool { return w.number(qListenable) == 1 })
		die()
		w.eventually(func() bool { return w.number(qEpochTwo) == 1 })
		require.NoError(t, w.provider.OpenGate("mid"))
		got := far.completes()
		require.Nil(t, got.restarted, "its followers see nothing of it")
		require.Equal(t, seen.text, got.text[:len(seen.text)])
		w.paid(1, 1)
		w.once("2")
	}, "background", "interactions")
}

func TestAnAnswerThatWasLostAfterItsLastByteIsFoundAndAdopted(t *testing.T) {
	onEachAskable(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(failing(1, scripted.Step{At: scripted.AtBeforeTerminal, Do: scripted.DoReset}))
		got := s.turn(askOf(model), nil).completes()
		require.Nil(t, got.restarted)
		w.paid(1, 1)
		w.stands(map[string]int{qReplies: 1, qLive: 1, qLedger: 1, qOpen: 0, qWasted: 0})
	}, "stored", "conversation", "background")
}

func TestAnAnswerOfADeadWorkerThatIsWholeIsAdoptedByAnother(t *testing.T) {
	onEachAskable(t, func(t *testing.T, w *world, model string) {
		w.short()
		dying, die := w.cutOff()
		w.script(gate("", "end", 64, 64))
		in := askOf(model)
		dying.turn(in, nil).at(1 + 60*16)
		w.eventually(func() bool {
			return w.number(`SELECT count(*) FROM turns WHERE status = 'in_flight' AND log_len > 900 AND provider_response_id <> ''`) == 1
		})
		die()
		require.NoError(t, w.provider.OpenGate("end"))
		w.eventually(func() bool { return w.provider.Counts().Running == 0 })
		other := w.serve()
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE status = 'complete'`) == 1 })
		require.Len(t, other.turn(in, nil).completes().text, 64*16)
		w.paid(1, 1)
		w.stands(map[string]int{qReplies: 1, qLive: 1, qLedger: 1, qOpen: 0, qWasted: 0, qEpochTwo: 1})
	}, "stored", "conversation")
}

func TestACancelStopsWhatItsProviderWouldGoOnWith(t *testing.T) {
	onEachAskable(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(gate("", "mid", 64, 20))
		in := askOf(model)
		s.turn(in, nil).at(1 + 19*16)
		s.cancelTurn(in)
		w.eventually(func() bool { return w.provider.Counts().Running == 0 })
		require.NoError(t, w.provider.OpenGate("mid"))
		require.Less(t, w.provider.Counts().OutputTokens, 64)
	}, "background", "interactions")
}

func TestAShutdownLeavesAReplyThatItsProviderGoesOnWithToTheNextWorker(t *testing.T) {
	onEachAskable(t, func(t *testing.T, w *world, model string) {
		w.short()
		w.script(gate("", "mid", 64, 20))
		quick := w.settings
		w.settings.Sweep = time.Hour // the one that leaves is a process of its own elsewhere, which ends
		leaving := w.serve()
		w.settings = quick
		in := askOf(model)
		seen := leaving.turn(in, nil).at(1 + 19*16)
		w.quit(leaving)
		other := w.serve()
		w.eventually(func() bool { return w.number(qEpochTwo) == 1 })
		require.NoError(t, w.provider.OpenGate("mid"))
		got := other.turn(in, nil).completes()
		require.Equal(t, seen.reply, got.reply)
		w.paid(1, 1)
		w.once("2")
	}, "background", "interactions")
}

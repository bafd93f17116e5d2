package casetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/turnd/turnd/llm/scripted"
)

func TestAShutdownHoldsAReplyWhosePolicyForbidsASecondCall(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.script(gate("", "mid", 64, 20), plain(16))
		leaving := w.serve()
		in := ask(newID(), newID(), "hi")
		in.OnAmbiguous = holdPolicy
		leaving.turn(in, nil).at(1 + 19*16)
		w.quit(leaving)
		require.NoError(t, w.provider.OpenGate("mid"))
		got := w.serve().turn(in, nil).end()
		require.Equal(t, replayed, got.result)
		require.NotNil(t, got.held)
		w.paid(1, 1)
		w.stands(map[string]int{qReplies: 1, qHeld: 1, qLedger: 1, qOpen: 1})
	})
}

func TestADeadlineHoldsAReplyWhosePolicyForbidsASecondCall(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.script(gate("", "mid", 64, 20), plain(16))
		s := w.serve()
		in := ask(newID(), newID(), "hi")
		in.OnAmbiguous, in.Deadline = holdPolicy, durationpb.New(time.Second)
		require.NotNil(t, s.turn(in, nil).end().held)
		again := s.turn(in, nil).end()
		require.Equal(t, replayed, again.result)
		require.NotNil(t, again.held)
		w.paid(1, 1)
		w.stands(map[string]int{qReplies: 1, qHeld: 1, qLedger: 1, qOpen: 1})
	})
}

func TestAShutdownWhileAProviderIsAskedLeavesTheQuestionToTheNextWorker(t *testing.T) {
	onEachAskable(t, func(t *testing.T, w *world, model string) {
		w.short()
		w.script(scripted.Rule{Name: "ask hangs", Times: 1, Match: scripted.Match{Ask: scripted.AskRetrieve}, Plan: scripted.Plan{
			Steps: []scripted.Step{{At: scripted.AtRequestRead, Do: scripted.DoWait, Gate: "ask"}}}},
			failing(1, scripted.Step{At: scripted.AtBeforeTerminal, Do: scripted.DoReset}), plain(16))
		quick := w.settings
		w.settings.Sweep = time.Hour // the one that leaves is a process of its own elsewhere, which ends
		leaving := w.serve()
		w.settings = quick
		in := askOf(model)
		leaving.turn(in, nil)
		require.NoError(t, w.provider.WaitGate(w.ctx, "ask", 1))
		w.quit(leaving)
		require.Len(t, w.serve().turn(in, nil).completes().text, 64*16)
		w.paid(1, 1)
		w.once("2")
	}, "stored")
}

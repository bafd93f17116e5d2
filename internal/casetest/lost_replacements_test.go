package casetest

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/storetest"
)

// overloaded is an error inside the stream after which a call may be made again by itself.
func overloaded(at scripted.Point) scripted.Step {
	return scripted.Step{At: at, Do: scripted.DoErrorEvent, Error: "overloaded_error"}
}

// answering is a rule whose whole answer is a text.
func answering(text string) scripted.Rule {
	return scripted.Rule{Plan: scripted.Plan{Blocks: []scripted.Block{{Text: text}}}}
}

// goingOn is a rule for a request that asks to go on from what came before a failure.
func goingOn(blocks ...scripted.Block) scripted.Rule {
	return scripted.Rule{Name: "goes on", Match: scripted.Match{Text: "cut off by a technical failure"}, Plan: scripted.Plan{Blocks: blocks}}
}

// ofOne makes a rule one for the first entry of the route "either" alone.
func ofOne(r scripted.Rule) scripted.Rule {
	r.Match.Wire = "anthropic.messages"
	return r
}

func TestTheNextEntryOfARouteIsAskedToGoOnFromThePartialReplyAsWell(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(ofOne(failing(1, overloaded(scripted.AfterDelta(20)))),
			ofOne(failing(1, scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 529, Error: "overloaded_error"})),
			goingOn(scripted.Block{Text: "THE REST"}), answering("A WHOLE NEW ANSWER"))
		in := askOf("either")
		in.OnPartial = continuePolicy
		got := s.turn(in, nil).completes()
		require.True(t, got.restarted.GetContinues())
		require.Equal(t, "THE REST", got.text[20*16:])
		require.Equal(t, got.text, stored(s.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[1]))
		w.paid(3, 2)
		w.stands(map[string]int{qReplies: 2, qLive: 1, qLedger: 3, qOpen: 0,
			`SELECT count(*) FROM provider_calls WHERE endpoint = 'two' AND class = 'ok'`: 1})
	})
}

// TestAReplyThatWasToGoOnIsNeverItsRestAlone lets a worker die after it put a reply in the place of a partial one, before it
// stored anything of it and before it asked for the rest.
func TestAReplyThatWasToGoOnIsNeverItsRestAlone(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.settings.Checkpoint = 2 * time.Second
		dying, faults := w.losing()
		w.script(failing(1, scripted.Step{At: scripted.AfterDelta(20), Do: scripted.DoWait, Gate: "mid"}, overloaded(scripted.AfterDelta(20))),
			goingOn(scripted.Block{Text: "THE REST"}), answering("A WHOLE NEW ANSWER"))
		in := ask(newID(), newID(), "hi")
		in.OnAmbiguous, in.OnPartial = holdPolicy, continuePolicy
		dying.turn(in, nil).at(1 + 19*16)
		arrived, open := faults.Gate("NoteCalls")
		t.Cleanup(open)
		require.NoError(t, w.provider.OpenGate("mid"))
		<-arrived
		faults.Down(turns.Unavailable(errors.New("cut off")))
		other := w.serve()
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		require.Equal(t, "A WHOLE NEW ANSWER", other.turn(in, nil).completes().text)
		w.paid(2, 2)
		w.stands(map[string]int{qLive: 1, qOpen: 0, qHeld: 0})
	})
}

func TestAReplacementWithoutAnAnswerIsReadAgainUntilItIsKnownAndThenRuns(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		w.script(cutAt(20), plain(16))
		in := ask(newID(), newID(), "hi")
		in.OnAmbiguous = retryPolicy
		faults.LoseAnswer("Replace")
		faults.FailNext("ReadReply", turns.Unavailable(errors.New("away")))
		got := s.turn(in, nil).completes()
		require.NotNil(t, got.restarted)
		require.Len(t, got.text, 16*16)
		require.GreaterOrEqual(t, faults.Calls("ReadReply"), 2)
		w.paid(2, 2)
		w.stands(map[string]int{qInFlight: 0, qReplies: 2, qLive: 1, qLedger: 2, qOpen: 0})
	})
}

func TestACancelThatComesBeforeAReplacementIsStoredLeavesNothingThatStartsAgain(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		w.script(cutAt(20), plain(16))
		in := ask(newID(), newID(), "hi")
		in.OnAmbiguous = retryPolicy
		arrived, open := faults.Gate("Replace")
		t.Cleanup(open)
		running := s.turn(in, nil)
		<-arrived
		told := make(chan *turnsv1.Reply, 1)
		go func() {
			got, _ := s.turns.CancelReply(w.ctx, &turnsv1.CancelReplyRequest{ConversationId: in.GetConversationId(),
				Target: &turnsv1.CancelReplyRequest_TurnId{TurnId: in.GetTurnId()}})
			told <- got.GetReply()
		}()
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE cancelled_generation = 1`) == 1 })
		open()
		reply := <-told
		require.Equal(t, abandoned, reply.GetStatus())
		running.abandons(reply.GetAbandonReason())
		require.Equal(t, replayed, s.turn(in, nil).abandons(reply.GetAbandonReason()).result)
		w.paid(1, 1)
		w.stands(map[string]int{qReplies: 1, qLive: 0, qLedger: 1, qOpen: 0})
	})
}

func TestAReplyThatMayHaveBegunAToolCallIsNotGoneOnWith(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(scripted.Rule{Name: "calls a tool", Times: 1, Plan: scripted.Plan{
			Blocks: []scripted.Block{{Text: "so I say "}, {ToolUse: &scripted.ToolUse{ID: "t1", Name: "do", Input: `{"a":1}`}}},
			Steps:  []scripted.Step{overloaded(scripted.AtBeforeTerminal)}}}, plain(4))
		in := ask(newID(), newID(), "hi")
		in.OnPartial = continuePolicy
		got := s.turn(in, nil).abandons(providerError)
		require.Nil(t, got.restarted)
		w.paid(1, 1)
		w.stands(map[string]int{qReplies: 1, qLive: 0, qLedger: 1, qOpen: 0})
	})
}

func TestAReplyThatIsGoneOnWithKeepsWhatWasThought(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(scripted.Rule{Name: "cut off", Times: 1, Plan: scripted.Plan{
			Blocks: []scripted.Block{{Thinking: "I think", Signature: "sig"}, {Text: "so I say "}},
			Steps:  []scripted.Step{overloaded(scripted.AtBeforeTerminal)}}},
			goingOn(scripted.Block{Thinking: "more", Signature: "sig2"}, scripted.Block{Text: "the rest"}), plain(4))
		in := ask(newID(), newID(), "hi")
		in.OnPartial = continuePolicy
		require.Equal(t, "I think"+"so I say "+"more"+"the rest", s.turn(in, nil).completes().text)
		whole := s.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[1]
		require.Len(t, whole.GetContent(), 4)
		require.Equal(t, "I think", whole.GetContent()[0].GetThinking().GetText())
		require.Equal(t, "more", whole.GetContent()[2].GetThinking().GetText())
		require.Equal(t, "so I say the rest", stored(whole))
		s.turn(ask(in.GetConversationId(), newID(), "and then?"), nil).completes() // it can be a part of what is asked next
		w.paid(3, 3)
		w.stands(map[string]int{qReplies: 3, qLive: 2, qLedger: 3, qOpen: 0})
	})
}

func TestTheWaitBeforeAReplacementCountsTowardsTheWaitsOfItsTurn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Backoff, w.settings.MaxCalls = 20*time.Millisecond, 3
		s := w.serve()
		w.script(failing(0, scripted.Step{At: scripted.AfterDelta(20), Do: scripted.DoReset}))
		in := ask(newID(), newID(), "hi")
		in.OnAmbiguous = retryPolicy
		s.turn(in, nil).abandons(ambiguous)
		w.paid(3, 3)
		w.stands(map[string]int{qReplies: 3,
			`SELECT count(*) FROM turns WHERE role = 'assistant' AND attempt = 1 AND waited_us = 0`: 1,
			`SELECT count(*) FROM turns a JOIN turns b ON b.attempt = a.attempt + 1 AND b.role = a.role
				WHERE a.role = 'assistant' AND b.waited_us > a.waited_us`: 2})
	})
}

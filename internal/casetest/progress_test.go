package casetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// calls is a rule whose one reply is one call.
func calls(id, input string, stop ...string) scripted.Rule {
	r := scripted.Rule{Times: 1, Plan: scripted.Plan{Blocks: []scripted.Block{{ToolUse: &scripted.ToolUse{ID: id, Name: "look_up", Input: input}}}}}
	if len(stop) > 0 {
		r.Plan.StopReason = stop[0]
	}
	return r
}

func TestThreeRepliesWithTheSameCallStopTheConversationUntilSomebodyOverridesIt(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(calls("t1", `{"a":1,"b":2}`), calls("t2", `{"b":2, "a":1}`), calls("t3", `{ "a":1,"b":2 }`), calls("t4", `{"a":1,"b":2}`), plain(4))
		first := offering(model, newID())
		s.turn(first, nil).completes()
		var answered []*turnsv1.TurnInput
		for i := range 2 {
			in := offering(model, first.GetConversationId(), resultOf(fmt.Sprint("t", i+1), fmt.Sprint("result ", i)))
			s.turn(in, nil).completes()
			answered = append(answered, in)
		}
		again := offering(model, first.GetConversationId(), resultOf("t3", "result 3"))
		_, err := s.submit(again)
		require.Equal(t, "look_up", w.fails(err, codes.FailedPrecondition, "NO_PROGRESS", "NEW_ID")["tool"])
		w.paid(3, 3)
		w.stands(map[string]int{qUsers: 3, qLedger: 3, qInFlight: 0})
		require.Equal(t, replayed, s.turn(answered[1], nil).completes().result, "a replay is refused by nothing")

		again.TurnId, again.OverrideNoProgress = newID(), true
		s.turn(again, nil).completes()
		again.OverrideNoProgress = false
		require.Equal(t, replayed, s.turn(again, nil).completes().result, "the override is no part of the turn")
		_, err = s.submit(offering(model, first.GetConversationId(), resultOf("t4", "result 4")))
		w.fails(err, codes.FailedPrecondition, "NO_PROGRESS", "NEW_ID")
		s.turn(offering(model, first.GetConversationId()), nil).completes() // a plain message needs no override, nor what follows it
		w.script(calls("t5", `{"a":1,"b":2}`), plain(4))
		s.turn(offering(model, first.GetConversationId()), nil).completes()
		s.turn(offering(model, first.GetConversationId(), resultOf("t5", "result 5")), nil).completes()
		w.paid(7, 7)
	})
}

func TestAPersonWhoAnswersEachCallWithAMessageIsNeverRefused(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(calls("t1", `{}`), calls("t2", `{}`), calls("t3", `{}`), calls("t4", `{}`), plain(4))
		in := offering("anthropic", newID())
		for range 5 {
			s.turn(in, nil).completes()
			in = offering("anthropic", in.GetConversationId())
		}
	})
}

func TestTheSameErrorThreeTimesStopsTheConversationAndARegenerateGoesOn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(calls("t1", `{"n":1}`), calls("t2", `{"n":2}`), calls("t3", `{"n":3}`), calls("t4", `{"n":4}`), plain(4))
		in := offering("anthropic", newID())
		s.turn(in, nil).completes()
		fails := func(id string) *turnsv1.TurnInput {
			in := offering("anthropic", in.GetConversationId(), resultOf(id, "no such file"))
			in.GetContent()[0].GetToolResult().IsError = true
			return in
		}
		s.turn(fails("t1"), nil).completes()
		third := s.turn(fails("t2"), nil).completes()
		stopped := fails("t3")
		_, err := s.submit(stopped)
		w.fails(err, codes.FailedPrecondition, "NO_PROGRESS", "NEW_ID")
		_, err = s.turns.RegenerateReply(w.ctx, &turnsv1.RegenerateReplyRequest{ConversationId: in.GetConversationId(), ReplyId: third.reply})
		require.NoError(t, err)
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		s.turn(offering("anthropic", in.GetConversationId(), resultOf("t4", "found")), nil).completes()
	})
}

func TestC20ACancelWithCallsOpenLeavesAConversationThatGoesOn(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(callsTools(), gate("look it up", "mid", 64, 20), plain(4))
		in := offering(model, newID())
		s.turn(in, nil).completes()
		s.cancelTurn(in) // too late for the reply, which is over: its calls stay open
		running := s.turn(offering(model, in.GetConversationId()), nil)
		running.at(1 + 19*16)
		_, err := s.submit(offering(model, in.GetConversationId(), resultOf("t1", "x")))
		w.fails(err, codes.FailedPrecondition, "CONVERSATION_BUSY", "SAME_ID_AFTER_WAIT")
		s.cancelTurn(&turnsv1.TurnInput{ConversationId: in.GetConversationId(), TurnId: running.until(func(s state) bool { return s.turn != nil }).turn.GetTurnId()})
		running.abandons(cancelled)
		_, err = s.submit(offering(model, in.GetConversationId(), resultOf("t1", "x")))
		require.Equal(t, "t2", w.fails(err, codes.FailedPrecondition, "WAITING_FOR_TOOLS", "DO_NOT_RETRY")["tool_use_ids"])
		w.script(plain(4))
		s.turn(offering(model, in.GetConversationId(), resultOf("t1", "x"), resultOf("t2", "y")), nil).completes()
		s.turn(offering(model, in.GetConversationId()), nil).completes()
	})
}

func TestC61CallsOfAReplyThatWasCancelledCanNotBeAnsweredAndLockNothing(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		const deltas = 2 + 2 + 2 // thinking, text, and some of the input
		w.script(callsTools(scripted.Step{At: scripted.AfterDelta(deltas), Do: scripted.DoWait, Gate: "never"}), plain(4))
		in := offering(model, newID())
		running := s.turn(in, nil)
		require.NoError(t, w.provider.WaitGate(w.ctx, "never", 1))
		s.cancelTurn(in)
		running.abandons(cancelled)
		_, err := s.submit(offering(model, in.GetConversationId(), resultOf("t1", "x")))
		w.fails(err, codes.InvalidArgument, "INVALID_TOOL_RESULT", "DO_NOT_RETRY")
		s.turn(offering(model, in.GetConversationId()), nil).completes()
	})
}

func TestC59ACallThatWasCutAtTheLengthIsNotWaitedForAndCanNotBeAnswered(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(calls("t1", `{"text": "it goes on and`, "max_tokens"), plain(4))
		in := offering(model, newID())
		got := s.turn(in, nil).completes()
		require.Equal(t, turnsv1.StopReason_STOP_REASON_LENGTH, got.completed.GetStopReason())
		_, err := s.submit(offering(model, in.GetConversationId(), resultOf("t1", "x")))
		w.fails(err, codes.InvalidArgument, "INVALID_TOOL_RESULT", "DO_NOT_RETRY")
		s.turn(offering(model, in.GetConversationId()), nil).completes()
	})
}

func TestTwoMegabytesOfArgumentsAndOfResultsGoThrough(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		long := strings.Repeat("é", 1<<20)
		input := `{"text":"` + long + `"}`
		w.script(calls("t1", input), plain(4))
		in := offering(model, newID())
		blocks, last := s.hear(in)
		require.NotNil(t, last.GetCompleted(), "%v", last.GetAbandoned())
		require.True(t, input == blocks[0].GetToolUse().GetInputJson(), "the arguments came whole")
		_, err := s.submit(offering(model, in.GetConversationId(), resultOf("t1", strings.Repeat("x", 5<<20))))
		w.fails(err, codes.InvalidArgument, "CONTENT_TOO_LARGE", "DO_NOT_RETRY")
		s.turn(offering(model, in.GetConversationId(), resultOf("t1", long)), nil).completes()
	})
}

package casetest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// interrupting is a turn that stops whatever runs in its conversation.
func interrupting(conversation string) *turnsv1.TurnInput {
	in := ask(conversation, newID(), "two")
	in.OnBusy = turnsv1.OnBusy_ON_BUSY_INTERRUPT
	return in
}

func TestAnInterruptThatIsRefusedStopsNothing(t *testing.T) {
	unknown := newID()
	for name, c := range map[string]struct {
		spoil          func(*turnsv1.TurnInput)
		code           codes.Code
		reason, advice string
	}{
		"an unknown model": {func(in *turnsv1.TurnInput) { in.Options = &turnsv1.GenerationOptions{Model: "nope"} },
			codes.InvalidArgument, "UNKNOWN_MODEL", "DO_NOT_RETRY"},
		"an unknown parent": {func(in *turnsv1.TurnInput) { in.Parent = &turnsv1.TurnInput_ParentId{ParentId: unknown} },
			codes.NotFound, "NOT_FOUND", "DO_NOT_RETRY"},
		"a prompt that is too long": {func(in *turnsv1.TurnInput) { in.GetContent()[0].GetText().Text = strings.Repeat("long ", 1<<19) },
			codes.InvalidArgument, "PROMPT_TOO_LARGE", "DO_NOT_RETRY"},
		"a result of no call": {func(in *turnsv1.TurnInput) {
			in.Content = []*turnsv1.Block{{Kind: &turnsv1.Block_ToolResult{ToolResult: &turnsv1.ToolResultBlock{ToolUseId: "none"}}}}
		}, codes.InvalidArgument, "INVALID_TOOL_RESULT", "DO_NOT_RETRY"},
	} {
		t.Run(name, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) {
				w.limits.WindowTokens = 10_000
				s := w.serve()
				w.script(gate("", "mid", 64, 20))
				first := ask(newID(), newID(), "one")
				running := s.turn(first, nil)
				running.at(1 + 19*16)
				second := interrupting(first.GetConversationId())
				c.spoil(second)
				_, err := s.submit(second)
				w.fails(err, c.code, c.reason, c.advice)
				w.stands(map[string]int{qInFlight: 1, qUsers: 1})
				require.NoError(t, w.provider.OpenGate("mid"))
				running.completes()
			})
		})
	}
}

func TestAnInterruptForWhichThereIsNoPlaceStopsNothing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		elsewhere := w.serve()
		w.settings.MaxInFlight, w.settings.MaxQueue = 1, 0
		full := w.serve()
		w.script(gate("", "mid", 64, 20))
		first := ask(newID(), newID(), "one")
		running := elsewhere.turn(first, nil)
		running.at(1 + 19*16)
		other := full.turn(ask(newID(), newID(), "other"), nil)
		other.at(1 + 19*16)
		_, err := full.submit(interrupting(first.GetConversationId()))
		w.fails(err, codes.ResourceExhausted, "OVERLOADED", "SAME_ID_AFTER_WAIT")
		w.stands(map[string]int{qInFlight: 2})
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		other.completes()
	})
}

func TestAnInterruptTakesThePlaceOfTheReplyThatItStops(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.MaxInFlight, w.settings.MaxQueue = 1, 1
		s := w.serve()
		w.script(scripted.Rule{Match: scripted.Match{Nth: 1}, Plan: stoppable("mid", 64, 20).Plan}, plain(4))
		first := ask(newID(), newID(), "one")
		running := s.turn(first, nil)
		running.at(1 + 19*16)
		waiting := s.queues("three")
		s.turn(interrupting(first.GetConversationId()), nil).completes()
		running.abandons(cancelled)
		waiting.completes()
		w.paid(3, 3)
	})
}

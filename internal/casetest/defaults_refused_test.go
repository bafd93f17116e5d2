package casetest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// fieldOf is the field that a refusal names.
func fieldOf(t *testing.T, err error) string {
	t.Helper()
	for _, d := range status.Convert(err).Details() {
		if bad, ok := d.(*errdetails.BadRequest); ok {
			require.Len(t, bad.GetFieldViolations(), 1)
			return bad.GetFieldViolations()[0].GetField()
		}
	}
	t.Fatalf("names no field: %v", err)
	return ""
}

func TestDefaultsThatTheirOwnModelCanNotBeAskedWithAreRefusedWhenTheyAreSet(t *testing.T) {
	w := sqliteWorld(t)
	s := w.serve()
	before := s.make(&turnsv1.Conversation{})
	for name, tt := range map[string]struct {
		defaults      *turnsv1.GenerationOptions
		reason, field string
	}{
		"a model that is not there": {&turnsv1.GenerationOptions{Model: "nobody"}, "UNKNOWN_MODEL", "conversation.defaults.model"},
		"no temperature there": {&turnsv1.GenerationOptions{Model: "anthropic", Temperature: proto.Float64(0.5)},
			"INVALID_FIELD", "conversation.defaults.temperature"},
		"no budget there": {&turnsv1.GenerationOptions{Model: "openai", ThinkingBudgetTokens: 2000},
			"INVALID_FIELD", "conversation.defaults.thinking_budget_tokens"},
		"too many stops there": {&turnsv1.GenerationOptions{Model: "openai", StopSequences: []string{"1", "2", "3", "4", "5"}},
			"INVALID_FIELD", "conversation.defaults.stop_sequences"},
	} {
		_, err := s.convs.CreateConversation(w.ctx, &turnsv1.CreateConversationRequest{Conversation: &turnsv1.Conversation{Defaults: tt.defaults}})
		w.fails(err, codes.InvalidArgument, tt.reason, "DO_NOT_RETRY")
		require.Equal(t, tt.field, fieldOf(t, err), name)
		_, err = s.convs.UpdateConversation(w.ctx, &turnsv1.UpdateConversationRequest{
			Conversation: &turnsv1.Conversation{ConversationId: before.GetConversationId(), Defaults: tt.defaults},
			UpdateMask:   &fieldmaskpb.FieldMask{Paths: []string{"defaults"}}})
		w.fails(err, codes.InvalidArgument, tt.reason, "DO_NOT_RETRY")
		require.Equal(t, tt.field, fieldOf(t, err), name)
	}
	w.stands(map[string]int{qConvs: 1})
	s.make(&turnsv1.Conversation{Defaults: &turnsv1.GenerationOptions{Model: "openai", Temperature: proto.Float64(0.5)}})
	s.make(&turnsv1.Conversation{Defaults: &turnsv1.GenerationOptions{Temperature: proto.Float64(0.5)}}) // for models that turns name
}

func TestATurnThatFailsByWhatItDidNotSetNamesTheDefaults(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		warm := &turnsv1.GenerationOptions{Temperature: proto.Float64(0.5)}
		c := s.make(&turnsv1.Conversation{Defaults: warm}).GetConversationId()
		_, err := s.submit(ask(c, newID(), "hi"))
		w.fails(err, codes.InvalidArgument, "INVALID_FIELD", "DO_NOT_RETRY")
		require.Equal(t, "conversation.defaults.temperature", fieldOf(t, err))
		require.ErrorContains(t, err, "the conversation's defaults set it")

		own := ask(c, newID(), "hi")
		own.Options = warm
		_, err = s.submit(own)
		require.Equal(t, "input.options.temperature", fieldOf(t, err), "what the turn sets is the turn's")

		in := ask(c, newID(), "hi")
		in.Options = &turnsv1.GenerationOptions{Model: "openai"}
		reply := s.turn(in, nil).completes().reply // the way out that the answer names
		again := func(o *turnsv1.GenerationOptions) string {
			_, err := s.turns.RegenerateReply(w.ctx, &turnsv1.RegenerateReplyRequest{ConversationId: c, ReplyId: reply, Options: o})
			w.fails(err, codes.InvalidArgument, "INVALID_FIELD", "DO_NOT_RETRY")
			return fieldOf(t, err)
		}
		require.Equal(t, "conversation.defaults.temperature", again(&turnsv1.GenerationOptions{Model: "anthropic"}))
		require.Equal(t, "options.thinking_budget_tokens", again(&turnsv1.GenerationOptions{ThinkingBudgetTokens: 2000}))
		w.paid(1, 1)
	})
}

func TestDefaultsWhoseModelIsGoneAreNamedByTheTurnThatFailsAndStillTheirOwnRepeat(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		made := &turnsv1.Conversation{ConversationId: newID(), Defaults: &turnsv1.GenerationOptions{Model: "openai"}}
		c := s.make(proto.Clone(made).(*turnsv1.Conversation)).GetConversationId()
		left := w.models()
		left.Models = nil
		for _, m := range w.models().Models {
			if m.Name != "openai" {
				left.Models = append(left.Models, m)
			}
		}
		require.NoError(t, s.router.Replace(left))
		_, err := s.submit(ask(c, newID(), "hi"))
		w.fails(err, codes.InvalidArgument, "UNKNOWN_MODEL", "DO_NOT_RETRY")
		require.Equal(t, "conversation.defaults.model", fieldOf(t, err))
		s.make(made)
		made.ConversationId = newID()
		_, err = s.convs.CreateConversation(w.ctx, &turnsv1.CreateConversationRequest{Conversation: made})
		w.fails(err, codes.InvalidArgument, "UNKNOWN_MODEL", "DO_NOT_RETRY")
		in := ask(c, newID(), "hi")
		in.Options = &turnsv1.GenerationOptions{Model: "anthropic"}
		s.turn(in, nil).completes()
	})
}

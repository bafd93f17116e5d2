package casetest

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// ids are what one tenant has, or what nobody has.
type ids struct{ conversation, turn, reply string }

// as is a context of another tenant.
func (w *world) as(tenant string) context.Context {
	return metadata.AppendToOutgoingContext(w.ctx, "x-turnd-tenant", tenant)
}

// probes call every method of the wire with ids. A method that is not here fails the test: it has not been thought of.
var probes = map[string]func(context.Context, *worker, ids) (proto.Message, error){
	"TurnService.Turn": func(ctx context.Context, w *worker, id ids) (proto.Message, error) {
		in := ask(id.conversation, newID(), "hi")
		in.Parent = &turnsv1.TurnInput_ParentId{ParentId: id.reply}
		rpc, err := w.turns.Turn(ctx, &turnsv1.TurnRequest{Input: in})
		require.NoError(w.t, err)
		return rpc.Recv()
	},
	"TurnService.SubmitTurn": func(ctx context.Context, w *worker, id ids) (proto.Message, error) {
		in := ask(id.conversation, newID(), "hi")
		in.Parent = &turnsv1.TurnInput_ParentId{ParentId: id.turn}
		return w.turns.SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: in})
	},
	"TurnService.FollowReply": func(ctx context.Context, w *worker, id ids) (proto.Message, error) {
		rpc, err := w.turns.FollowReply(ctx, &turnsv1.FollowReplyRequest{ConversationId: id.conversation, Target: &turnsv1.FollowReplyRequest_ReplyId{ReplyId: id.reply}})
		require.NoError(w.t, err)
		return rpc.Recv()
	},
	"TurnService.GetTurn": func(ctx context.Context, w *worker, id ids) (proto.Message, error) {
		return w.turns.GetTurn(ctx, &turnsv1.GetTurnRequest{ConversationId: id.conversation, Target: &turnsv1.GetTurnRequest_TurnId{TurnId: id.turn}})
	},
	"TurnService.ListTurns": func(ctx context.Context, w *worker, id ids) (proto.Message, error) {
		return w.turns.ListTurns(ctx, &turnsv1.ListTurnsRequest{ConversationId: id.conversation, LeafId: id.reply})
	},
	"TurnService.CancelReply": func(ctx context.Context, w *worker, id ids) (proto.Message, error) {
		return w.turns.CancelReply(ctx, &turnsv1.CancelReplyRequest{ConversationId: id.conversation, Target: &turnsv1.CancelReplyRequest_ReplyId{ReplyId: id.reply}})
	},
	"TurnService.RegenerateReply": func(ctx context.Context, w *worker, id ids) (proto.Message, error) {
		return w.turns.RegenerateReply(ctx, &turnsv1.RegenerateReplyRequest{ConversationId: id.conversation, ReplyId: id.reply})
	},
	"TurnService.SelectReply": func(ctx context.Context, w *worker, id ids) (proto.Message, error) {
		return w.turns.SelectReply(ctx, &turnsv1.SelectReplyRequest{ConversationId: id.conversation, ReplyId: id.reply})
	},
	"TurnService.DeleteTurn": func(ctx context.Context, w *worker, id ids) (proto.Message, error) {
		return w.turns.DeleteTurn(ctx, &turnsv1.DeleteTurnRequest{ConversationId: id.conversation, TurnId: id.turn})
	},
	"ConversationService.CreateConversation": func(context.Context, *worker, ids) (proto.Message, error) {
		return nil, nil // another tenant's id is free for this one: see the test below
	},
	"ConversationService.GetConversation": func(ctx context.Context, w *worker, id ids) (proto.Message, error) {
		return w.convs.GetConversation(ctx, &turnsv1.GetConversationRequest{ConversationId: id.conversation})
	},
	"ConversationService.ListConversations": func(ctx context.Context, w *worker, _ ids) (proto.Message, error) {
		return w.convs.ListConversations(ctx, &turnsv1.ListConversationsRequest{})
	},
	"ConversationService.UpdateConversation": func(ctx context.Context, w *worker, id ids) (proto.Message, error) {
		return w.convs.UpdateConversation(ctx, &turnsv1.UpdateConversationRequest{Conversation: &turnsv1.Conversation{ConversationId: id.conversation, Title: "mine"}})
	},
	"ConversationService.DeleteConversation": func(ctx context.Context, w *worker, id ids) (proto.Message, error) {
		return w.convs.DeleteConversation(ctx, &turnsv1.DeleteConversationRequest{ConversationId: id.conversation})
	},
}

// methods are the names of all methods of the wire, but for the operators', whose service has no tenant.
func methods() []string {
	var names []string
	files := []protoreflect.FileDescriptor{turnsv1.File_turns_v1_turn_service_proto, turnsv1.File_turns_v1_conversation_service_proto}
	for _, file := range files {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				names = append(names, string(service.Name())+"."+string(service.Methods().Get(j).Name()))
			}
		}
	}
	return names
}

// answer is all that a caller is told, with the ids it sent itself taken out.
func answer(m proto.Message, err error, sent ids) string {
	text := status.Convert(err).Proto().String()
	if err == nil {
		text = prototext(m)
	}
	return strings.NewReplacer(sent.conversation, "C", sent.turn, "T", sent.reply, "R").Replace(text)
}

func prototext(m proto.Message) string {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func TestAnotherTenantsIdsAnswerAsMissingOnesOnEveryMethod(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		in := ask(newID(), newID(), "a secret")
		reply := s.turn(in, nil).completes().reply
		theirs := ids{in.GetConversationId(), in.GetTurnId(), reply}
		missing := ids{newID(), newID(), newID()}
		before := w.number(qUsers)
		for _, method := range methods() {
			probe := probes[method]
			require.NotNil(t, probe, "%s has no probe", method)
			ctx := w.as("stranger")
			foreign, foreignErr := probe(ctx, s, theirs)
			none, noneErr := probe(ctx, s, missing)
			require.Equal(t, answer(none, noneErr, missing), answer(foreign, foreignErr, theirs), method)
			require.NotContains(t, answer(foreign, foreignErr, theirs), "secret", method)
		}
		require.Equal(t, before, w.number(qUsers))
		w.paid(1, 1)
	})
}

func TestTwoTenantsMayUseTheSameIds(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		in := ask(newID(), newID(), "hi")
		mine := s.turn(in, nil).completes()
		other := ask(in.GetConversationId(), in.GetTurnId(), "something else")
		got, err := s.turns.SubmitTurn(w.as("stranger"), &turnsv1.SubmitTurnRequest{Input: other})
		require.NoError(t, err)
		require.Equal(t, isNew, got.GetResult())
		require.NotEqual(t, mine.reply, got.GetReply().GetReplyId())
		_, err = s.convs.CreateConversation(w.as("third"), &turnsv1.CreateConversationRequest{Conversation: &turnsv1.Conversation{ConversationId: in.GetConversationId(), Title: "mine"}})
		require.NoError(t, err)
		w.stands(map[string]int{qUsers: 2, qConvs: 3})
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		w.paid(2, 2)
	})
}

func TestAnEndpointThatEnforcesKeysAnswersEachTenantByItself(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.enforcing(plain(8))
		s := w.serve()
		in := ask("", newID(), "the same words under the same id")
		for _, tenant := range []string{"alice", "bob"} {
			_, err := s.turns.SubmitTurn(w.as(tenant), &turnsv1.SubmitTurnRequest{Input: in})
			require.NoError(t, err)
		}
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE status = 'complete'`) == 2 })
		w.paid(2, 2)
		w.stands(map[string]int{`SELECT count(DISTINCT idempotency_key) FROM provider_calls`: 2})
	})
}

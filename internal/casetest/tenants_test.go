package casetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// as is a context of another tenant.
func (w *world) as(tenant string) context.Context {
	return metadata.AppendToOutgoingContext(w.ctx, "x-turnd-tenant", tenant)
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
		eachTenantIsAnsweredByItself(w)
	})
}

// A gateway may keep to keys though nobody said so of it.
func TestAnEndpointThatEnforcesKeysUnaskedAnswersEachTenantByItself(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.enforcing(plain(8))
		w.caps = turns.Capabilities{}
		eachTenantIsAnsweredByItself(w)
	})
}

func eachTenantIsAnsweredByItself(w *world) {
	s := w.serve()
	in := ask("", newID(), "the same words under the same id")
	tenants := []string{"default", "alice", "bob"}
	for _, tenant := range tenants {
		_, err := s.turns.SubmitTurn(w.as(tenant), &turnsv1.SubmitTurnRequest{Input: in})
		require.NoError(w.t, err)
	}
	w.eventually(func() bool { return w.number(`SELECT count(*) FROM turns WHERE status = 'complete'`) == len(tenants) })
	w.paid(len(tenants), len(tenants))
	w.stands(map[string]int{`SELECT count(DISTINCT idempotency_key) FROM provider_calls`: len(tenants)})
}

package server_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// served are the methods that a client can count on.
var served = []string{
	turnsv1.TurnService_Turn_FullMethodName, turnsv1.TurnService_SubmitTurn_FullMethodName, turnsv1.TurnService_FollowReply_FullMethodName,
	turnsv1.TurnService_GetTurn_FullMethodName, turnsv1.TurnService_ListTurns_FullMethodName,
	turnsv1.TurnService_CancelReply_FullMethodName, turnsv1.TurnService_RegenerateReply_FullMethodName, turnsv1.TurnService_SelectReply_FullMethodName,
	turnsv1.ConversationService_CreateConversation_FullMethodName, turnsv1.ConversationService_GetConversation_FullMethodName,
	turnsv1.ConversationService_ListConversations_FullMethodName, turnsv1.ConversationService_UpdateConversation_FullMethodName,
	turnsv1.OperatorService_ListHeldReplies_FullMethodName, turnsv1.OperatorService_ReleaseHeldReply_FullMethodName,
	turnsv1.OperatorService_CompleteHeldReply_FullMethodName, turnsv1.OperatorService_ListProviderCalls_FullMethodName,
	turnsv1.OperatorService_SumProviderCalls_FullMethodName, turnsv1.OperatorService_ListWorkers_FullMethodName,
}

func TestEveryOtherMethodOfTheWireSaysPlainlyThatItIsNotServed(t *testing.T) {
	h := start(t, newFake())
	refused := 0
	for _, service := range []grpc.ServiceDesc{turnsv1.TurnService_ServiceDesc, turnsv1.ConversationService_ServiceDesc, turnsv1.OperatorService_ServiceDesc} {
		require.NotEmpty(t, service.Methods)
		for _, m := range service.Methods {
			method := "/" + service.ServiceName + "/" + m.MethodName
			err := invoke(t, h, method, &emptypb.Empty{}, &emptypb.Empty{})
			if status.Code(err) != codes.Unimplemented {
				require.Contains(t, served, method)
				continue
			}
			refused++
			require.NotContains(t, served, method)
			require.Equal(t, "UNIMPLEMENTED", info(t, err, codes.Unimplemented).GetReason())
			require.Contains(t, status.Convert(err).Message(), "yet", "%s", method)
		}
	}
	require.Equal(t, 2, refused)
}

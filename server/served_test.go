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

func TestEveryMethodOfTheWireIsServed(t *testing.T) {
	h := start(t, newFake())
	for _, service := range []grpc.ServiceDesc{turnsv1.TurnService_ServiceDesc, turnsv1.ConversationService_ServiceDesc, turnsv1.OperatorService_ServiceDesc} {
		require.NotEmpty(t, service.Methods)
		for _, m := range service.Methods {
			method := "/" + service.ServiceName + "/" + m.MethodName
			err := invoke(t, h, method, &emptypb.Empty{}, &emptypb.Empty{})
			require.NotEqual(t, codes.Unimplemented, status.Code(err), method)
		}
	}
}

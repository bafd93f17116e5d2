package server_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/turnd/turnd/turns/access"
)

// methodsOfTheWire are all methods of package turns.v1 by what the wire declares.
func methodsOfTheWire(t *testing.T) (methods []protoreflect.MethodDescriptor) {
	protoregistry.GlobalFiles.RangeFilesByPackage("turns.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				methods = append(methods, service.Methods().Get(j))
			}
		}
		return true
	})
	require.Greater(t, len(methods), 15)
	return methods
}

// wanted is the scope that a method is meant to take, by what it does: the operators' service is theirs, what only looks is for
// readers, and the rest for those who send turns.
func wanted(m protoreflect.MethodDescriptor) access.Scope {
	switch {
	case m.Parent().Name() == "OperatorService":
		return access.ScopeOperator
	case strings.HasPrefix(string(m.Name()), "Get"), strings.HasPrefix(string(m.Name()), "List"), m.Name() == "FollowReply":
		return access.ScopeRead
	}
	return access.ScopeTurns
}

func TestEachMethodTakesItsScopeAndNoOther(t *testing.T) {
	d := &doorman{}
	for _, scope := range access.Scopes() {
		d.let("only-"+string(scope), scope)
		var others []access.Scope
		for _, s := range access.Scopes() {
			if s != scope {
				others = append(others, s)
			}
		}
		d.let("all-but-"+string(scope), others...)
	}
	h := start(t, newFake(), d.guard)
	call := func(m protoreflect.MethodDescriptor, token string) error {
		method := "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
		stream, err := h.Conn.NewStream(with(t, "authorization", "Bearer "+token), &grpc.StreamDesc{ServerStreams: true}, method)
		require.NoError(t, err)
		_ = stream.SendMsg(&emptypb.Empty{})
		_ = stream.CloseSend()
		return stream.RecvMsg(&emptypb.Empty{})
	}
	for _, m := range methodsOfTheWire(t) {
		scope := string(wanted(m))
		require.NotEqual(t, codes.PermissionDenied, status.Code(call(m, "only-"+scope)), m.FullName())
		i := info(t, call(m, "all-but-"+scope), codes.PermissionDenied)
		require.Equal(t, "SCOPE_MISSING", i.GetReason(), m.FullName())
		require.Equal(t, scope, i.GetMetadata()["scope"], m.FullName())
	}
}

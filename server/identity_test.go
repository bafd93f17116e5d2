package server_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/turns"
)

func TestWithoutAuthOnlyLoopbackIsListenedOn(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:8080", "localhost:0", "[::1]:80", "127.8.9.1:1"} {
		require.NoError(t, server.CheckAuth("none", listen), listen)
	}
	for _, listen := range []string{":8080", "0.0.0.0:8080", "[::]:80", "192.168.1.1:80", "example.com:80", "127.0.0.1"} {
		require.Error(t, server.CheckAuth("none", listen), listen)
	}
}

func TestAuthByKeysMayListenAnywhere(t *testing.T) {
	for _, mode := range []string{"keys", "oidc", "keys,oidc"} {
		require.NoError(t, server.CheckAuth(mode, "0.0.0.0:443"))
		f := newFake()
		_, err := server.New(server.Config{Service: f, Follower: f, Auth: mode})
		require.ErrorContains(t, err, "Authenticator", "nobody is there to ask")
	}
	require.ErrorContains(t, server.CheckAuth("nothing", "127.0.0.1:1"), "one of")
	require.ErrorContains(t, server.CheckAuth("keys,none", "127.0.0.1:1"), "believes everybody")
}

func TestACallerIsWhoItSaysAndOtherwiseTheDefault(t *testing.T) {
	f := newFake(whole())
	client := turnsv1.NewTurnServiceClient(start(t, f).Conn)
	for want, pairs := range map[turns.Caller][]string{
		{Tenant: "default", Subject: "default"}:        nil,
		{Tenant: "acme", Subject: "default"}:           {"x-turnd-tenant", "acme"},
		{Tenant: "acme", Subject: "a person, by name"}: {"x-turnd-tenant", "acme", "x-turnd-subject", "a person, by name"},
	} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), pairs...)
		_, err := client.SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: input()})
		require.NoError(t, err)
		require.Equal(t, want, f.callers[len(f.callers)-1])
	}
}

func TestABadNameOfACallerIsRefusedByItsHeader(t *testing.T) {
	f := newFake()
	client := turnsv1.NewTurnServiceClient(start(t, f).Conn)
	for _, header := range []string{"x-turnd-tenant", "x-turnd-subject"} {
		for _, values := range [][]string{{""}, {strings.Repeat("a", 129)}, {"a", "b"}} {
			ctx := t.Context()
			for _, v := range values {
				ctx = metadata.AppendToOutgoingContext(ctx, header, v)
			}
			_, err := client.SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: input()})
			require.Equal(t, "INVALID_FIELD", info(t, err, codes.InvalidArgument).GetReason())
			require.Equal(t, header, fieldAt(err))
		}
	}
	require.Zero(t, f.submissions())
}

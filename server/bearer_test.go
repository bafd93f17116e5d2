package server_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/server/auth"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/access"
)

// doorman knows callers by words, and counts how often it is asked.
type doorman struct {
	mu    sync.Mutex
	known map[string]auth.Identity
	fails error
	asked []string
}

func (d *doorman) Authenticate(_ context.Context, token string) (auth.Identity, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, token)
	if d.fails != nil {
		return auth.Identity{}, d.fails
	}
	id, ok := d.known[token]
	if !ok {
		return auth.Identity{}, auth.Refuse("nobody knows you")
	}
	return id, nil
}

func (d *doorman) times() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.asked)
}

func (d *doorman) let(token string, scopes ...access.Scope) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = map[string]auth.Identity{}
	}
	d.known[token] = auth.Identity{Caller: turns.Caller{Tenant: "acme", Subject: "ann"}, Scopes: scopes}
}

func (d *doorman) forget(token string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, token)
}

func (d *doorman) guard(c *server.Config) { c.Auth, c.Authenticator = "keys", d }

func with(t *testing.T, pairs ...string) context.Context {
	return metadata.AppendToOutgoingContext(t.Context(), pairs...)
}

func TestOnlyOneWholeBearerHeaderIsLookedAt(t *testing.T) {
	f, d := newFake(), &doorman{}
	d.let("good", access.ScopeTurns)
	client := turnsv1.NewTurnServiceClient(start(t, f, d.guard).Conn)
	for name, pairs := range map[string][]string{
		"none":           nil,
		"empty":          {"authorization", ""},
		"scheme alone":   {"authorization", "Bearer"},
		"blank":          {"authorization", "Bearer    "},
		"twice":          {"authorization", "Bearer good", "authorization", "Bearer good"},
		"other scheme":   {"authorization", "Basic good"},
		"no scheme":      {"authorization", "good"},
		"two words":      {"authorization", "Bearer good bad"},
		"list":           {"authorization", "Bearer good, Bearer bad"},
		"too long":       {"authorization", "Bearer " + strings.Repeat("a", auth.MaxToken+1)},
		"another header": {"x-api-key", "good"},
		"names alone":    {"x-turnd-tenant", "acme", "x-turnd-subject", "ann"},
	} {
		_, err := client.SubmitTurn(with(t, pairs...), &turnsv1.SubmitTurnRequest{Input: input()})
		require.Equal(t, "UNAUTHENTICATED", info(t, err, codes.Unauthenticated).GetReason(), name)
		require.Contains(t, status.Convert(err).Message(), `send one header "authorization: Bearer <key or token>"`, name)
	}
	require.Zero(t, d.times())
	for _, value := range []string{"Bearer good", "bearer good", "BEARER   good", "Bearer good "} {
		_, err := client.SubmitTurn(with(t, "authorization", value), &turnsv1.SubmitTurnRequest{Input: input()})
		require.NoError(t, err, value)
	}
	longest := strings.Repeat("a", auth.MaxToken)
	d.let(longest, access.ScopeTurns)
	_, err := client.SubmitTurn(with(t, "authorization", "Bearer "+longest), &turnsv1.SubmitTurnRequest{Input: input()})
	require.NoError(t, err)
	for _, c := range f.callers {
		require.Equal(t, turns.Caller{Tenant: "acme", Subject: "ann"}, c)
	}
}

func TestAStrangerLearnsNothingOfARequestsRules(t *testing.T) {
	f, d := newFake(), &doorman{}
	h := start(t, f, d.guard)
	client := turnsv1.NewTurnServiceClient(h.Conn)
	_, err := client.SubmitTurn(with(t, "authorization", "Bearer bad"), &turnsv1.SubmitTurnRequest{})
	require.Equal(t, "UNAUTHENTICATED", info(t, err, codes.Unauthenticated).GetReason())
	require.NotContains(t, err.Error(), "bad;")
	err = invoke(t, h, "/turns.v1.TurnService/Nothing", &turnsv1.SubmitTurnRequest{}, &turnsv1.SubmitTurnResponse{})
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	require.Zero(t, f.submissions())
}

func TestHeadersThatNameSomebodyElseThanTheKeyAreRefused(t *testing.T) {
	f, d := newFake(), &doorman{}
	d.let("good", access.ScopeTurns)
	client := turnsv1.NewTurnServiceClient(start(t, f, d.guard).Conn)
	for _, header := range []string{"x-turnd-tenant", "x-turnd-subject"} {
		for _, values := range [][]string{{"other"}, {"acme", "other"}, {""}, {"ann", "other"}} {
			pairs := []string{"authorization", "Bearer good"}
			for _, v := range values {
				pairs = append(pairs, header, v)
			}
			_, err := client.SubmitTurn(with(t, pairs...), &turnsv1.SubmitTurnRequest{Input: input()})
			require.Equal(t, "INVALID_FIELD", info(t, err, codes.InvalidArgument).GetReason())
			require.Equal(t, header, fieldAt(err))
		}
	}
	require.Zero(t, f.submissions())
	_, err := client.SubmitTurn(with(t, "authorization", "Bearer good", "x-turnd-tenant", "acme", "x-turnd-subject", "ann"),
		&turnsv1.SubmitTurnRequest{Input: input()})
	require.NoError(t, err)
}

func TestWhoCantBeFoundOutNowIsToldToComeBack(t *testing.T) {
	f, d := newFake(), &doorman{fails: turns.Unavailable(context.DeadlineExceeded)}
	client := turnsv1.NewTurnServiceClient(start(t, f, d.guard).Conn)
	_, err := client.SubmitTurn(with(t, "authorization", "Bearer good"), &turnsv1.SubmitTurnRequest{Input: input()})
	require.Equal(t, "STORE_UNAVAILABLE", info(t, err, codes.Unavailable).GetReason())
	require.NotNil(t, detail[*errdetails.RetryInfo](err))
}

func TestHealthIsOpenToAllAndReflectionToWhoeverIsKnown(t *testing.T) {
	d := &doorman{}
	d.let("good")
	h := start(t, newFake(), d.guard)
	_, err := grpc_health_v1.NewHealthClient(h.Conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	require.Zero(t, d.times())
	for _, ctx := range []context.Context{t.Context(), with(t, "authorization", "Bearer bad")} {
		stream, err := grpc_reflection_v1.NewServerReflectionClient(h.Conn).ServerReflectionInfo(ctx)
		require.NoError(t, err)
		_, err = stream.Recv()
		require.Equal(t, "UNAUTHENTICATED", info(t, err, codes.Unauthenticated).GetReason())
	}
	stream, err := grpc_reflection_v1.NewServerReflectionClient(h.Conn).ServerReflectionInfo(with(t, "authorization", "Bearer good"))
	require.NoError(t, err)
	require.NoError(t, stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}}))
	_, err = stream.Recv()
	require.NoError(t, err)
}

package server_test

import (
	"bufio"
	"io"
	"net/http"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/access"
)

// bearing is a request with headers.
func bearing[M any](m *M, header ...string) *connect.Request[M] {
	req := connect.NewRequest(m)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header().Add(header[i], header[i+1])
	}
	return req
}

func TestWhoHasNoGoodKeyIsRefusedInEachWay(t *testing.T) {
	f, d := newFake(story()...), &doorman{}
	d.let("reads", access.ScopeRead)
	h := start(t, f, d.guard)
	for name, c := range map[string]struct {
		header []string
		code   codes.Code
		http   int
		reason string
	}{
		"none":              {nil, codes.Unauthenticated, 401, "UNAUTHENTICATED"},
		"an unknown one":    {[]string{"Authorization", "Bearer x"}, codes.Unauthenticated, 401, "UNAUTHENTICATED"},
		"two":               {[]string{"Authorization", "Bearer reads", "Authorization", "Bearer reads"}, codes.Unauthenticated, 401, "UNAUTHENTICATED"},
		"one in the URL":    {nil, codes.Unauthenticated, 401, "UNAUTHENTICATED"},
		"one for reading":   {[]string{"Authorization", "Bearer reads"}, codes.PermissionDenied, 403, "SCOPE_MISSING"},
		"of another tenant": {[]string{"Authorization", "Bearer reads", "X-Turnd-Tenant", "other"}, codes.InvalidArgument, 400, "INVALID_FIELD"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, opts := range dialects {
				_, err := webClient[turnsv1.SubmitTurnRequest, turnsv1.SubmitTurnResponse](t, h, turnsv1.TurnService_SubmitTurn_FullMethodName, opts...).
					CallUnary(t.Context(), bearing(&turnsv1.SubmitTurnRequest{Input: input()}, c.header...))
				require.Equal(t, c.reason, info(t, asStatus(t, err), c.code).GetReason())
				stream, err := webClient[turnsv1.TurnRequest, turnsv1.TurnResponse](t, h, turnsv1.TurnService_Turn_FullMethodName, opts...).
					CallServerStream(t.Context(), bearing(&turnsv1.TurnRequest{Input: input()}, c.header...))
				require.NoError(t, err)
				require.False(t, stream.Receive())
				require.Equal(t, c.reason, info(t, asStatus(t, stream.Err()), c.code).GetReason())
				_ = stream.Close()
			}
			resp, body := exchange(t, h, http.MethodPost, "/v1/turns?access_token=reads", turnBody, c.header...)
			require.Contains(t, []int{c.http, 400}, resp.StatusCode, body)
			resp, body = exchange(t, h, http.MethodPost, "/v1/turns", turnBody, c.header...)
			require.Equal(t, c.http, resp.StatusCode, body)
			require.Equal(t, c.reason, info(t, restError(t, body), c.code).GetReason())
			if c.reason == "SCOPE_MISSING" {
				return
			}
			resp, body = exchange(t, h, http.MethodGet, replyEvents+"?access_token=reads", "", c.header...)
			require.Equal(t, c.http, resp.StatusCode, body)
			require.Equal(t, c.reason, info(t, restError(t, body), c.code).GetReason())
		})
	}
	require.Zero(t, f.submissions())
}

func TestAStrangerLearnsNothingOfCursorsAndIDs(t *testing.T) {
	d := &doorman{}
	h := start(t, newFake(story()...), d.guard)
	_, plain := exchange(t, h, http.MethodGet, replyEvents, "")
	for _, path := range []string{replyEvents + "?cursor=x", replyEvents + "?cursor=" + replyID.String() + ":7:end", "/v1/conversations/x/replies/y/events"} {
		_, body := exchange(t, h, http.MethodGet, path, "")
		require.Equal(t, string(normal(body)), string(normal(plain)), path)
	}
}

// normal is JSON without the white space that protojson puts in at random.
func normal(body string) (out []byte) {
	for _, c := range []byte(body) {
		if c != ' ' {
			out = append(out, c)
		}
	}
	return out
}

func TestAStreamOfTheWebEndsOnceItsKeyIsNoGood(t *testing.T) {
	d := &doorman{}
	d.let("first", access.ScopeRead)
	h := start(t, endless(), d.guard, often)
	events := bufio.NewReader(source(t, h, replyEvents, "Authorization", "Bearer first").Body)
	_, err := next(events)
	require.NoError(t, err)
	var streams []*connect.ServerStreamForClient[turnsv1.FollowReplyResponse]
	for _, opts := range dialects {
		stream, err := webClient[turnsv1.FollowReplyRequest, turnsv1.FollowReplyResponse](t, h, turnsv1.TurnService_FollowReply_FullMethodName, opts...).
			CallServerStream(t.Context(), bearing(&turnsv1.FollowReplyRequest{ConversationId: conversationID.String(),
				Target: &turnsv1.FollowReplyRequest_ReplyId{ReplyId: replyID.String()}}, "Authorization", "Bearer first"))
		require.NoError(t, err)
		require.True(t, stream.Receive())
		streams = append(streams, stream)
	}
	d.forget("first")
	for _, stream := range streams {
		require.False(t, stream.Receive())
		require.Equal(t, "UNAUTHENTICATED", info(t, asStatus(t, stream.Err()), codes.Unauthenticated).GetReason())
		require.NoError(t, stream.Close())
	}
	rest, err := io.ReadAll(events)
	require.NoError(t, err)
	require.Equal(t, ": lost: UNAUTHENTICATED\n\n", string(rest))
}

func TestAnEventStreamIsItsCallersAlone(t *testing.T) {
	f := newFake(story()...)
	var asked []turns.Caller
	f.onTarget = func(c turns.Caller, _ turns.ConversationID, _ turns.RowID) (turns.ConversationKey, turns.Reply, error) {
		asked = append(asked, c)
		return turns.ConversationKey{}, replyOf(turns.StatusComplete), nil
	}
	h := start(t, f)
	all(t, source(t, h, replyEvents, "X-Turnd-Tenant", "acme", "X-Turnd-Subject", "ann").Body)
	resp := source(t, h, replyEvents, "X-Turnd-Tenant", "other", "Last-Event-ID", replyID.String()+":7:end")
	require.Equal(t, http.StatusNoContent, resp.StatusCode, "the fake knows every tenant")
	require.Equal(t, []turns.Caller{{Tenant: "acme", Subject: "ann"}, {Tenant: "other", Subject: "default"}}, asked)
}

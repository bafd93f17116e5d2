package server_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/server/servertest"
	"github.com/turnd/turnd/turns"
)

// dialects are the ways to call a method by its path over HTTP/1.1.
var dialects = map[string][]connect.ClientOption{
	"Connect with protobuf":  nil,
	"Connect with JSON":      {connect.WithProtoJSON()},
	"gRPC-Web with protobuf": {connect.WithGRPCWeb()},
	"gRPC-Web with JSON":     {connect.WithGRPCWeb(), connect.WithProtoJSON()},
}

func eachDialect(t *testing.T, run func(*testing.T, ...connect.ClientOption)) {
	for name, opts := range dialects {
		t.Run(name, func(t *testing.T) { run(t, opts...) })
	}
}

// webClient makes a client of one method.
func webClient[Req, Resp any](t testing.TB, h *servertest.Harness, method string, opts ...connect.ClientOption) *connect.Client[Req, Resp] {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return connect.NewClient[Req, Resp](&http.Client{Transport: transport}, "http://"+h.Addr+method, opts...)
}

// asStatus is an error of Connect's client as one of gRPC's.
func asStatus(t testing.TB, err error) error {
	var e *connect.Error
	require.ErrorAs(t, err, &e)
	st := &spb.Status{Code: int32(e.Code()), Message: e.Message()}
	for _, d := range e.Details() {
		v, err := d.Value()
		require.NoError(t, err)
		packed, err := anypb.New(v)
		require.NoError(t, err)
		st.Details = append(st.Details, packed)
	}
	return status.ErrorProto(st)
}

// exchange makes a request of REST and reads all of the answer.
func exchange(t testing.TB, h *servertest.Harness, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+h.Addr+path, strings.NewReader(body))
	require.NoError(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		switch header[i] {
		case "Host":
			req.Host = header[i+1]
			continue
		case "Content-Type":
			req.Header.Del("Content-Type")
		}
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(text)
}

// restError is the status in an answer of REST.
func restError(t testing.TB, body string) error {
	st := &spb.Status{}
	require.NoError(t, protojson.Unmarshal([]byte(body), st), body)
	return status.ErrorProto(st)
}

func TestATurnIsStreamedInEachDialect(t *testing.T) {
	eachDialect(t, func(t *testing.T, opts ...connect.ClientOption) {
		f := newFake(turns.Started{Reply: replyOf(turns.StatusInFlight)}, turns.Heartbeat{}, whole())
		h := start(t, f)
		stream, err := webClient[turnsv1.TurnRequest, turnsv1.TurnResponse](t, h, turnsv1.TurnService_Turn_FullMethodName, opts...).
			CallServerStream(t.Context(), connect.NewRequest(&turnsv1.TurnRequest{Input: input()}))
		require.NoError(t, err)
		var kinds []string
		for stream.Receive() {
			kinds = append(kinds, kindOf(stream.Msg().GetEvent()))
		}
		require.NoError(t, stream.Err())
		require.NoError(t, stream.Close())
		require.Equal(t, []string{"accepted", "started", "heartbeat", "completed"}, kinds)
		require.Equal(t, turns.Caller{Tenant: "default", Subject: "default"}, f.callers[0])
	})
}

func kindOf(e *turnsv1.Event) string {
	m := e.ProtoReflect()
	return string(m.WhichOneof(m.Descriptor().Oneofs().ByName("kind")).Name())
}

func TestEachDialectHasUnaryCallsAndNamesItsCaller(t *testing.T) {
	eachDialect(t, func(t *testing.T, opts ...connect.ClientOption) {
		f := newFake()
		h := start(t, f)
		req := connect.NewRequest(&turnsv1.SubmitTurnRequest{Input: input()})
		req.Header().Set("X-Turnd-Tenant", "acme")
		req.Header().Set("X-Turnd-Subject", "ann")
		resp, err := webClient[turnsv1.SubmitTurnRequest, turnsv1.SubmitTurnResponse](t, h, turnsv1.TurnService_SubmitTurn_FullMethodName, opts...).
			CallUnary(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, replyID.String(), resp.Msg.GetReply().GetReplyId())
		require.Equal(t, turns.Caller{Tenant: "acme", Subject: "ann"}, f.callers[0])
	})
}

func TestErrorsHaveTheirDetailsInEachDialect(t *testing.T) {
	eachDialect(t, func(t *testing.T, opts ...connect.ClientOption) {
		f := newFake()
		f.onSubmit = func(turns.Caller, turns.Delivery) (turns.Submission, error) {
			return turns.Submission{}, &turns.Error{Code: turns.CodeOverloaded, Problem: "the queue is full"}
		}
		h := start(t, f)
		resp, body := exchange(t, h, http.MethodPost, "/v1/turns", turnBody)
		require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
		require.Equal(t, "1", resp.Header.Get("Retry-After"))
		require.Equal(t, "OVERLOADED", info(t, restError(t, body), codes.ResourceExhausted).GetReason())
		_, err := webClient[turnsv1.SubmitTurnRequest, turnsv1.SubmitTurnResponse](t, h, turnsv1.TurnService_SubmitTurn_FullMethodName, opts...).
			CallUnary(t.Context(), connect.NewRequest(&turnsv1.SubmitTurnRequest{Input: input()}))
		err = asStatus(t, err)
		require.Equal(t, "OVERLOADED", info(t, err, codes.ResourceExhausted).GetReason())
		require.NotNil(t, detail[*errdetails.RetryInfo](err))

		stream, err := webClient[turnsv1.TurnRequest, turnsv1.TurnResponse](t, h, turnsv1.TurnService_Turn_FullMethodName, opts...).
			CallServerStream(t.Context(), connect.NewRequest(&turnsv1.TurnRequest{Input: input()}))
		require.NoError(t, err)
		require.False(t, stream.Receive())
		require.Equal(t, "OVERLOADED", info(t, asStatus(t, stream.Err()), codes.ResourceExhausted).GetReason())

		_, err = webClient[turnsv1.SubmitTurnRequest, turnsv1.SubmitTurnResponse](t, h, turnsv1.TurnService_SubmitTurn_FullMethodName, opts...).
			CallUnary(t.Context(), connect.NewRequest(&turnsv1.SubmitTurnRequest{Input: &turnsv1.TurnInput{TurnId: "x"}}))
		err = asStatus(t, err)
		require.Equal(t, "INVALID_FIELD", info(t, err, codes.InvalidArgument).GetReason())
		require.Equal(t, "input.turn_id", fieldAt(err))
	})
}

func TestRESTSubmitsATurnByEitherPath(t *testing.T) {
	f := newFake()
	h := start(t, f)
	for _, path := range []string{"/v1/turns", "/v1/conversations/" + conversationID.String() + "/turns"} {
		resp, body := exchange(t, h, http.MethodPost, path, `{"turnId":"`+turnID.String()+`","content":[{"text":{"text":"hello"}}]}`)
		require.Equal(t, http.StatusOK, resp.StatusCode, body)
		var out turnsv1.SubmitTurnResponse
		require.NoError(t, protojson.Unmarshal([]byte(body), &out))
		require.Equal(t, replyID.String(), out.GetReply().GetReplyId())
		require.Equal(t, turnID, f.delivered[len(f.delivered)-1].Input.Turn)
	}
	require.Equal(t, conversationID, f.delivered[1].Input.Conversation)
}

func TestWhatRESTRefusesIsTypedAndQuotesNothing(t *testing.T) {
	f := newFake()
	h := start(t, f)
	for name, c := range map[string]struct {
		method, path, body string
		http               int
		code               codes.Code
		reason, field      string
	}{
		"a value of another type": {"POST", "/v1/turns", `{"turnId": 12, "content": "my secret"}`, 400, codes.InvalidArgument, "INVALID_FIELD", "body"},
		"an unknown field":        {"POST", "/v1/turns", `{"turnID2": "my secret"}`, 400, codes.InvalidArgument, "INVALID_FIELD", "body"},
		"no JSON":                 {"POST", "/v1/turns", `my secret`, 400, codes.InvalidArgument, "INVALID_FIELD", "body"},
		"too many values":         {"POST", "/v1/turns", `{"content":[` + strings.Repeat("{},", 1<<17) + `{}]}`, 400, codes.InvalidArgument, "INVALID_FIELD", ""},
		"a parameter of another type": {"GET", "/v1/conversations?page_size=my+secret", "", 400, codes.InvalidArgument, "INVALID_FIELD",
			"request"},
		"an unknown parameter": {"GET", "/v1/conversations?secret=my+secret", "", 400, codes.InvalidArgument, "INVALID_FIELD", "request"},
		"a bad id":             {"GET", "/v1/conversations/nope", "", 400, codes.InvalidArgument, "INVALID_FIELD", "conversation_id"},
		"text that is no UTF-8": {"GET", "/v1/conversations?page_token=%ff%fe", "", 400, codes.InvalidArgument, "INVALID_FIELD",
			""},
		"an unknown path":   {"GET", "/v1/nothing", "", 404, codes.Unimplemented, "UNIMPLEMENTED", ""},
		"an unknown method": {"PUT", "/v1/turns", "{}", 405, codes.Unimplemented, "UNIMPLEMENTED", ""},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := exchange(t, h, c.method, c.path, c.body)
			require.Equal(t, c.http, resp.StatusCode, body)
			err := restError(t, body)
			require.Equal(t, c.reason, info(t, err, c.code).GetReason())
			require.Equal(t, c.field, fieldAt(err))
			require.NotContains(t, body, "my secret")
			require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
		})
	}
	require.Zero(t, f.submissions())
}

func TestARequestBeyondTheLimitIsToldSoInEachWay(t *testing.T) {
	f := newFake()
	h := start(t, f, func(c *server.Config) { c.MaxRecvBytes = 1 << 10; c.MaxContentBytes = 1 << 9 })
	large := strings.Repeat("x", 2<<10)
	resp, body := exchange(t, h, http.MethodPost, "/v1/turns", `{"turnId":"`+large+`"}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	require.Equal(t, "CONTENT_TOO_LARGE", info(t, restError(t, body), codes.InvalidArgument).GetReason())
	eachDialect(t, func(t *testing.T, opts ...connect.ClientOption) {
		in := input()
		in.Content = []*turnsv1.Block{textBlock(large)}
		for _, more := range [][]connect.ClientOption{nil, {connect.WithSendGzip()}} {
			_, err := webClient[turnsv1.SubmitTurnRequest, turnsv1.SubmitTurnResponse](t, h, turnsv1.TurnService_SubmitTurn_FullMethodName,
				append(more, opts...)...).CallUnary(t.Context(), connect.NewRequest(&turnsv1.SubmitTurnRequest{Input: in}))
			var e *connect.Error
			require.True(t, errors.As(err, &e), "%v", err)
			t.Log(e.Code(), e.Message())
		}
	})
	require.Zero(t, f.submissions())
}

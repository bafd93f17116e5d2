package server_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/health/grpc_health_v1"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/server/servertest"
)

// patience bounds what a test waits for that should come at once.
const patience = 20 * time.Second

func dial(t *testing.T, h *servertest.Harness) net.Conn {
	conn, err := net.Dial("tcp", h.Addr)
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func get(t *testing.T, conn net.Conn, path string) (int, string) {
	_, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestHTTPOnThePortOfGRPCIsToldWhatIsServedThere(t *testing.T) {
	h := start(t, newFake())
	code, body := get(t, dial(t, h), "/")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "gRPC")
	code, _ = get(t, dial(t, h), "/v1/nothing")
	require.Equal(t, http.StatusNotFound, code)
}

func TestAnotherHandlerCanTakeTheHTTPHalf(t *testing.T) {
	teapot := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	code, _ := get(t, dial(t, start(t, newFake(), func(c *server.Config) { c.Console = teapot })), "/")
	require.Equal(t, http.StatusTeapot, code)
}

func TestGarbageIsAnsweredAsABadRequestAndClosed(t *testing.T) {
	conn := dial(t, start(t, newFake()))
	_, err := io.WriteString(conn, "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(answer), "400 Bad Request")
}

func TestAConnectionThatDoesNotShowItsProtocolIsClosed(t *testing.T) {
	h := start(t, newFake(), func(c *server.Config) { c.SniffTimeout = 20 * time.Millisecond })
	for _, said := range []string{"", "PR", "GET / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n"} {
		conn := dial(t, h)
		_, err := io.WriteString(conn, said)
		require.NoError(t, err)
		_, err = io.ReadAll(conn)
		var late net.Error
		require.False(t, err != nil && isTimeout(err, &late), "after %q the connection stayed open", said)
	}
}

func isTimeout(err error, as *net.Error) bool {
	e, ok := err.(net.Error)
	*as = e
	return ok && e.Timeout()
}

func TestConnectionsBeyondTheBoundWaitForAPlaceAndGetIt(t *testing.T) {
	h := start(t, newFake(), func(c *server.Config) { c.MaxConnections = 1; c.SniffTimeout = time.Minute })
	first := dial(t, h)
	second := dial(t, h)
	answered := make(chan int, 1)
	go func() {
		code, _ := get(t, second, "/")
		answered <- code
	}()
	code, _ := get(t, first, "/")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, http.StatusOK, <-answered)
	code, _ = get(t, dial(t, h), "/")
	require.Equal(t, http.StatusOK, code)
}

func TestADrainClosesConnectionsThatHaveSaidNothing(t *testing.T) {
	h := start(t, newFake(), func(c *server.Config) { c.SniffTimeout = time.Minute })
	silent := dial(t, h)
	code, _ := get(t, dial(t, h), "/") // accepted after the silent one
	require.Equal(t, http.StatusOK, code)
	require.NoError(t, h.Stop())
	_, err := io.ReadAll(silent)
	require.False(t, err != nil && err.(net.Error).Timeout())
}

func TestServeIsRefusedOffLoopback(t *testing.T) {
	f := newFake()
	srv, err := server.New(server.Config{Service: f, Follower: f})
	require.NoError(t, err)
	lis, err := net.Listen("tcp", "0.0.0.0:0")
	require.NoError(t, err)
	require.ErrorContains(t, srv.Serve(t.Context(), lis), "loopback")
	_, err = lis.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestAFailedListenerEndsServeWithItsError(t *testing.T) {
	f := newFake()
	srv, err := server.New(server.Config{Service: f, Follower: f})
	require.NoError(t, err)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, lis.Close())
	require.ErrorIs(t, srv.Serve(context.Background(), lis), net.ErrClosed)
}

func TestHealthIsServedForTheServerAndForEachServiceAndReflectionIsOn(t *testing.T) {
	h := start(t, newFake())
	health := grpc_health_v1.NewHealthClient(h.Conn)
	for _, name := range []string{"", turnsv1.TurnService_ServiceDesc.ServiceName, turnsv1.ConversationService_ServiceDesc.ServiceName,
		turnsv1.OperatorService_ServiceDesc.ServiceName} {
		resp, err := health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
		require.NoError(t, err)
		require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, resp.GetStatus())
	}
	require.Contains(t, reflected(t, h), "turns.v1.TurnService")
}

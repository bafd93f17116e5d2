package server_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/server/servertest"
)

// say11 sends bytes on a connection of its own and reads the answer.
func say11(t *testing.T, conn io.ReadWriter, said string) (*http.Response, string) {
	t.Helper()
	_, err := io.WriteString(conn, said)
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(body)
}

func TestAWebRequestThatDoesNotArriveIsEnded(t *testing.T) {
	f := newFake()
	h := start(t, f, func(c *server.Config) { c.ArrivalTime = 50 * time.Millisecond })
	const head = " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
	resp, body := say11(t, dial(t, h), "POST /v1/turns"+head)
	require.Equal(t, http.StatusRequestTimeout, resp.StatusCode)
	require.Contains(t, body, "did not arrive")
	resp, _ = say11(t, dial(t, h), "POST /turns.v1.TurnService/SubmitTurn"+head)
	require.Equal(t, http.StatusRequestTimeout, resp.StatusCode)
	require.Zero(t, f.submissions())
}

func TestAStreamOfTheWebOutlivesTheTimeOfItsRequest(t *testing.T) {
	gate := make(chan struct{})
	f := newFake()
	f.onFollow = gated(gate)
	h := start(t, f, func(c *server.Config) { c.ArrivalTime = 50 * time.Millisecond })
	events := bufio.NewReader(source(t, h, replyEvents).Body)
	_, err := next(events)
	require.NoError(t, err)
	stream := webStream(t, h)
	// A request that began later and is ended for its time shows that the time of the others has passed.
	resp, _ := say11(t, dial(t, h), "POST /v1/turns HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
	require.Equal(t, http.StatusRequestTimeout, resp.StatusCode)
	close(gate)
	last, err := next(events)
	require.NoError(t, err)
	require.Equal(t, "completed", last.kind)
	require.True(t, stream.Receive(), "%v", stream.Err())
}

func TestAConnectionIsServedAgainAfterAStream(t *testing.T) {
	h := start(t, newFake(story()...), func(c *server.Config) { c.WriteTime = 30 * time.Millisecond; c.ArrivalTime = 200 * time.Millisecond })
	conn := dial(t, h)
	r := bufio.NewReader(conn)
	for range 3 {
		_, err := io.WriteString(conn, "GET "+replyEvents+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		resp, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
	}
}

func TestWhatUnpacksToMoreThanARequestMayHaveIsRefused(t *testing.T) {
	f := newFake()
	h := start(t, f, func(c *server.Config) { c.MaxRecvBytes = 1 << 20 })
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := io.Copy(z, io.LimitReader(zeros{}, 64<<20))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.Less(t, packed.Len(), 1<<20)
	resp, body := exchange(t, h, http.MethodPost, "/v1/turns", packed.String(), "Content-Encoding", "gzip")
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode, body)
	require.Empty(t, resp.Header.Values("Grpc-Status"))
	require.Equal(t, "CONTENT_TOO_LARGE", info(t, restError(t, body), codes.ResourceExhausted).GetReason())
	require.Zero(t, f.submissions())
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestAMessageHasTheLengthThatItSays(t *testing.T) {
	f := newFake()
	h := start(t, f)
	for _, kind := range []string{"application/connect+proto", "application/grpc-web+proto", "application/connect+json"} {
		for _, body := range []string{"", "\x00\x00", "\x00\x0f\xff\xff\xff{}", "\x00\x00\x00\x00\x01{}", "\x00\xff\xff\xff\xff"} {
			resp, text := exchange(t, h, http.MethodPost, "/turns.v1.TurnService/Turn", body, "Content-Type", kind)
			require.Equal(t, http.StatusOK, resp.StatusCode, "%q", body)
			require.Equal(t, kind, resp.Header.Get("Content-Type"))
			if strings.Contains(kind, "grpc-web") {
				require.Equal(t, "3", resp.Header.Get("Grpc-Status"), "%q", body)
				require.Empty(t, text)
				continue
			}
			require.Equal(t, byte(2), text[0])
			require.Contains(t, text, `{"error":{"code":"invalid_argument"`)
		}
	}
	require.Zero(t, f.submissions())
}

func TestWhatComesToNoCallIsRefusedWithDetailsInEachDialect(t *testing.T) {
	eachDialect(t, func(t *testing.T, opts ...connect.ClientOption) {
		f := newFake()
		h := start(t, f, func(c *server.Config) { c.MaxRecvBytes = 1 << 10 })
		large := input()
		large.Content = []*turnsv1.Block{textBlock(strings.Repeat("x", 2<<10))}
		err := streamError(t, h, turnsv1.TurnService_Turn_FullMethodName, large, nil, opts...)
		require.Equal(t, "CONTENT_TOO_LARGE", info(t, err, codes.InvalidArgument).GetReason())
		foreign := http.Header{"Origin": {hostile}, "Sec-Fetch-Site": {"cross-site"}}
		err = streamError(t, h, turnsv1.TurnService_Turn_FullMethodName, input(), foreign, opts...)
		require.Equal(t, "INVALID_FIELD", info(t, err, codes.PermissionDenied).GetReason())
		require.Equal(t, "Origin", fieldAt(err))
		err = streamError(t, h, "/turns.v1.TurnService/Nothing", input(), nil, opts...)
		require.Equal(t, "DO_NOT_RETRY", info(t, err, codes.Unimplemented).GetMetadata()["retry"])
		require.Zero(t, f.submissions())
	})
}

// streamError is what a stream ends with that never begins.
func streamError(t *testing.T, h *servertest.Harness, method string, in *turnsv1.TurnInput, header http.Header, opts ...connect.ClientOption) error {
	t.Helper()
	req := connect.NewRequest(&turnsv1.TurnRequest{Input: in})
	for name, values := range header {
		req.Header()[name] = values
	}
	stream, err := webClient[turnsv1.TurnRequest, turnsv1.TurnResponse](t, h, method, opts...).CallServerStream(t.Context(), req)
	if err == nil {
		require.False(t, stream.Receive())
		err = stream.Err()
	}
	return asStatus(t, err)
}

func TestALargeHeaderIsRefused(t *testing.T) {
	f := newFake()
	h := start(t, f)
	conn := dial(t, h)
	_, err := io.WriteString(conn, "POST /v1/turns HTTP/1.1\r\nHost: localhost\r\nX-More: "+strings.Repeat("x", 20<<10))
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err, "it is refused before its end")
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, resp.StatusCode)
	require.Zero(t, f.submissions())
}

func TestGRPCByTheWebIsToldWhereItIsServed(t *testing.T) {
	h := start(t, newFake())
	resp, _ := exchange(t, h, http.MethodPost, "/turns.v1.TurnService/SubmitTurn", "", "Content-Type", "application/grpc")
	require.Equal(t, "12", resp.Header.Get("Grpc-Status"))
	require.Contains(t, resp.Header.Get("Grpc-Message"), "--listen")
}

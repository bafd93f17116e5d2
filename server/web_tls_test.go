package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"iter"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/turnd/turnd/internal/certs/certstest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/turns"
)

// browser is a client of HTTP inside TLS, in the newest version that it takes.
func browser(t *testing.T, c *tls.Config, h2 bool) *http.Client {
	transport := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: h2}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestStreamsInsideTLSOutliveTheTimesOfRequestsAndWrites(t *testing.T) {
	for name, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			gate := make(chan struct{})
			f := newFake()
			f.onFollow = gated(gate)
			s := startTLS(t, f, func(c *server.Config) { c.ArrivalTime, c.WriteTime = 50*time.Millisecond, 50*time.Millisecond })
			client := browser(t, s.client(t), h2)
			resp, err := client.Get("https://" + s.WebAddr + replyEvents)
			require.NoError(t, err)
			defer resp.Body.Close()
			require.Equal(t, map[bool]int{false: 1, true: 2}[h2], resp.ProtoMajor)
			events := bufio.NewReader(resp.Body)
			_, err = next(events)
			require.NoError(t, err)
			stream, err := connect.NewClient[turnsv1.TurnRequest, turnsv1.TurnResponse](client, "https://"+s.WebAddr+turnsv1.TurnService_Turn_FullMethodName).
				CallServerStream(t.Context(), connect.NewRequest(&turnsv1.TurnRequest{Input: input()}))
			require.NoError(t, err)
			defer stream.Close()
			require.True(t, stream.Receive())
			require.True(t, stream.Receive())
			// A request that began later and is ended for its time shows that the time of the others has passed.
			late := tls.Client(dial(t, s.Harness), s.client(t))
			answer, _ := say11(t, late, "POST /v1/turns HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
			require.Equal(t, http.StatusRequestTimeout, answer.StatusCode)
			close(gate)
			last, err := next(events)
			require.NoError(t, err)
			require.Equal(t, "completed", last.kind)
			require.True(t, stream.Receive(), "%v", stream.Err())
			require.NotNil(t, stream.Msg().GetEvent().GetCompleted())
		})
	}
}

func TestCallsOfTheWebHaveTheCertificateThatTheirClientShowed(t *testing.T) {
	clients := certstest.NewAuthority(t)
	shown := make(chan string, 1)
	f := newFake()
	f.onFollow = func(ctx context.Context, _ turns.ReplyID, _ uint32) iter.Seq2[turns.Event, error] {
		who, _ := peer.FromContext(ctx)
		require.NotEmpty(t, who.Addr.String())
		shown <- who.AuthInfo.(credentials.TLSInfo).State.VerifiedChains[0][0].SerialNumber.String()
		return say(nil, whole())
	}
	s := startTLS(t, f, func(c *server.Config) {
		c.TLS.ClientAuth, c.TLS.ClientCAs = tls.RequireAndVerifyClientCert, clients.Pool()
	})
	own := clients.Issue(t)
	s.Conn = s.Dial(t, over(s.client(t, own)))
	for _, h2 := range []bool{false, true} {
		client := browser(t, s.client(t, own), h2)
		resp, err := client.Get("https://" + s.WebAddr + replyEvents)
		require.NoError(t, err)
		require.Equal(t, own.Serial(t), <-shown)
		require.NoError(t, resp.Body.Close())
		stream, err := connect.NewClient[turnsv1.TurnRequest, turnsv1.TurnResponse](client, "https://"+s.WebAddr+turnsv1.TurnService_Turn_FullMethodName).
			CallServerStream(t.Context(), connect.NewRequest(&turnsv1.TurnRequest{Input: input()}))
		require.NoError(t, err)
		require.Equal(t, own.Serial(t), <-shown)
		require.NoError(t, stream.Close())
	}
}

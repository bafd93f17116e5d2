package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"iter"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/turnd/turnd/internal/certs/certstest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/server/servertest"
	"github.com/turnd/turnd/turns"
)

// secure is a server with TLS and what its clients need.
type secure struct {
	*servertest.Harness
	ca *certstest.Authority
}

// client is a client's configuration, which shows the certificates of some pairs.
func (s *secure) client(t *testing.T, pairs ...certstest.Pair) *tls.Config {
	c := &tls.Config{RootCAs: s.ca.Pool(), ServerName: "localhost"}
	for _, p := range pairs {
		c.Certificates = append(c.Certificates, p.TLS(t))
	}
	return c
}

// over says in which way a client of gRPC connects.
func over(c *tls.Config) grpc.DialOption {
	return grpc.WithTransportCredentials(credentials.NewTLS(c))
}

// startTLS runs a server with a certificate of a new authority.
func startTLS(t *testing.T, f *fake, change ...func(*server.Config)) *secure {
	t.Helper()
	s := &secure{ca: certstest.NewAuthority(t)}
	cfg := server.Config{Service: f, Follower: f, TLS: &tls.Config{Certificates: []tls.Certificate{s.ca.Issue(t).TLS(t)}}}
	for _, c := range change {
		c(&cfg)
	}
	s.Harness = servertest.Start(t, cfg, over(s.client(t)))
	return s
}

// checkHealth asks whether the server serves, by a connection of its own.
func checkHealth(t *testing.T, h *servertest.Harness, opts ...grpc.DialOption) error {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn := h.Dial(t, opts...)
	defer conn.Close()
	_, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	return err
}

// browse asks for a page by HTTP, in the newest version that the client takes.
func browse(t *testing.T, address string, c *tls.Config, h2 bool) (*http.Response, string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: h2}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: patience}).Get("https://" + address + "/")
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(body)
}

func TestInsideTLSGRPCAndHTTPShareThePort(t *testing.T) {
	s := startTLS(t, newFake(whole()))
	got, err := turn(t, s.Harness, &turnsv1.TurnRequest{Input: input()})
	require.NoError(t, err)
	require.NotEmpty(t, got)
	resp, body := browse(t, s.Addr, s.client(t), false)
	require.Equal(t, 1, resp.ProtoMajor)
	require.Contains(t, body, "gRPC")
}

func TestAClientThatAgreesOnNothingIsServedByWhatItSays(t *testing.T) {
	s := startTLS(t, newFake())
	begin := func(said string) *tls.Conn {
		conn := tls.Client(dial(t, s.Harness), s.client(t))
		_, err := io.WriteString(conn, said)
		require.NoError(t, err)
		require.Empty(t, conn.ConnectionState().NegotiatedProtocol)
		return conn
	}
	resp, err := http.ReadResponse(bufio.NewReader(begin("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.NoError(t, resp.Body.Close())

	frame := make([]byte, 9)
	_, err = io.ReadFull(begin("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"), frame)
	require.NoError(t, err)
	require.Equal(t, byte(4), frame[3], "the answer begins with SETTINGS")
}

func TestAClientThatOffersNothingThatIsSpokenIsTurnedAwayInTheHandshake(t *testing.T) {
	s := startTLS(t, newFake())
	c := s.client(t)
	c.NextProtos = []string{"smtp"}
	require.ErrorContains(t, tls.Client(dial(t, s.Harness), c).Handshake(), "no application protocol")
}

func TestTheWebHasAListenerOfItsOwnWithHTTP2AndNoGRPC(t *testing.T) {
	s := startTLS(t, newFake())
	for _, h2 := range []bool{false, true} {
		resp, body := browse(t, s.WebAddr, s.client(t), h2)
		require.Equal(t, map[bool]int{false: 1, true: 2}[h2], resp.ProtoMajor)
		require.Contains(t, body, "gRPC")
		require.NotNil(t, resp.TLS)
	}
	err := checkHealth(t, &servertest.Harness{Addr: s.WebAddr}, over(s.client(t)))
	require.Equal(t, codes.Unimplemented, status.Code(err), "%v", err)
}

func TestAListenerForTheWebAloneNeedsTLS(t *testing.T) {
	f := newFake()
	srv, err := server.New(server.Config{Service: f, Follower: f})
	require.NoError(t, err)
	var both [2]net.Listener
	for i := range both {
		both[i], err = net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
	}
	require.ErrorContains(t, srv.Serve(t.Context(), both[0], both[1]), "needs TLS")
	for _, l := range both {
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
	}
}

func TestHandlersSeeTheCertificateThatAClientShowed(t *testing.T) {
	clients := certstest.NewAuthority(t)
	shown := make(chan string, 1)
	f := newFake()
	f.onFollow = func(ctx context.Context, _ turns.ReplyID, _ uint32) iter.Seq2[turns.Event, error] {
		who, _ := peer.FromContext(ctx)
		shown <- who.AuthInfo.(credentials.TLSInfo).State.VerifiedChains[0][0].SerialNumber.String()
		return say(nil, whole())
	}
	s := startTLS(t, f, func(c *server.Config) {
		c.TLS.ClientAuth, c.TLS.ClientCAs = tls.RequireAndVerifyClientCert, clients.Pool()
		c.Console = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			shown <- r.TLS.VerifiedChains[0][0].SerialNumber.String()
		})
	})
	own := clients.Issue(t)
	s.Conn = s.Dial(t, over(s.client(t, own)))
	_, err := turn(t, s.Harness, &turnsv1.TurnRequest{Input: input()})
	require.NoError(t, err)
	require.Equal(t, own.Serial(t), <-shown)
	browse(t, s.Addr, s.client(t, own), false)
	require.Equal(t, own.Serial(t), <-shown)
	browse(t, s.WebAddr, s.client(t, own), true)
	require.Equal(t, own.Serial(t), <-shown)
}

func TestAHandshakeThatFailsTellsItsClientWhy(t *testing.T) {
	clients, strangers := certstest.NewAuthority(t), certstest.NewAuthority(t)
	past := certstest.Valid(time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
	s := startTLS(t, newFake(), func(c *server.Config) {
		c.TLS.ClientAuth, c.TLS.ClientCAs = tls.RequireAndVerifyClientCert, clients.Pool()
	})
	good := clients.Issue(t)
	with := func(change func(*tls.Config)) *tls.Config {
		c := s.client(t, good)
		change(c)
		return c
	}
	require.NoError(t, checkHealth(t, s.Harness, over(s.client(t, good))))
	for why, c := range map[string]*tls.Config{
		"certificate required":                    s.client(t),
		"unknown certificate authority":           s.client(t, strangers.Issue(t)),
		"expired certificate":                     s.client(t, clients.Issue(t, past)),
		"certificate signed by unknown authority": with(func(c *tls.Config) { c.RootCAs = strangers.Pool() }),
		"not turnd.example":                       with(func(c *tls.Config) { c.ServerName = "turnd.example" }),
		"protocol version not supported":          with(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }),
	} {
		if why == "unknown certificate authority" { // a client leaves out what the server has not asked for
			pair := c.Certificates[0]
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		require.ErrorContains(t, checkHealth(t, s.Harness, over(c)), why)
	}
}

func TestAServersExpiredCertificateIsRefusedByClients(t *testing.T) {
	ca := certstest.NewAuthority(t)
	past := ca.Issue(t, certstest.Valid(time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)))
	s := startTLS(t, newFake(), func(c *server.Config) { c.TLS.Certificates = []tls.Certificate{past.TLS(t)} })
	s.ca = ca
	require.ErrorContains(t, checkHealth(t, s.Harness, over(s.client(t))), "certificate has expired")
}

func TestAClientThatSpeaksWithoutTLSToAPortWithItIsToldSo(t *testing.T) {
	s := startTLS(t, newFake())
	code, body := get(t, dial(t, s.Harness), "/")
	require.Equal(t, http.StatusBadRequest, code)
	require.Equal(t, "this port of turnd speaks TLS only\n", body)
	require.ErrorContains(t, checkHealth(t, s.Harness, grpc.WithTransportCredentials(insecure.NewCredentials())), "looked like an HTTP/1.1 header")
}

func TestAClientThatSpeaksTLSToAPortWithoutItIsToldSo(t *testing.T) {
	h := start(t, newFake())
	require.ErrorContains(t, checkHealth(t, h, over(&tls.Config{})), "first record does not look like a TLS handshake")
}

func TestANewCertificateIsForNewConnectionsAndOldOnesGoOn(t *testing.T) {
	ca := certstest.NewAuthority(t)
	first, second := ca.Issue(t), ca.Issue(t)
	var inForce atomic.Pointer[tls.Config]
	put := func(p certstest.Pair) { inForce.Store(&tls.Config{Certificates: []tls.Certificate{p.TLS(t)}}) }
	put(first)
	gate := make(chan struct{})
	f := newFake()
	f.onFollow = gated(gate)
	s := &secure{ca: ca}
	s.Harness = servertest.Start(t, server.Config{Service: f, Follower: f, TLS: &tls.Config{
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return inForce.Load(), nil },
	}}, over(s.client(t)))
	shown := func() string {
		conn := tls.Client(dial(t, s.Harness), s.client(t))
		require.NoError(t, conn.Handshake())
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	stream := running(t, s.Harness)
	require.Equal(t, first.Serial(t), shown())
	put(second)
	require.Equal(t, second.Serial(t), shown())
	require.NoError(t, checkHealth(t, s.Harness, over(s.client(t))))
	close(gate)
	_, err := events(stream)
	require.NoError(t, err)
}

// hello is how a handshake begins, as much as fits before it waits for an answer.
func hello(t *testing.T) []byte {
	near, far := net.Pipe()
	go func() {
		_ = tls.Client(near, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}).Handshake()
	}()
	buf := make([]byte, 16<<10)
	n, err := far.Read(buf)
	require.NoError(t, err)
	require.NoError(t, far.Close())
	return buf[:n]
}

func TestAHandshakeHasNoMoreTimeThanAClientThatShowsItsProtocol(t *testing.T) {
	s := startTLS(t, newFake(), func(c *server.Config) { c.SniffTimeout = 50 * time.Millisecond })
	whole := hello(t)
	for _, said := range [][]byte{nil, whole[:1], whole[:len(whole)/2], whole} {
		conn := dial(t, s.Harness)
		_, err := conn.Write(said)
		require.NoError(t, err)
		_, err = io.ReadAll(conn)
		var late net.Error
		require.False(t, err != nil && isTimeout(err, &late), "after %d bytes the connection stayed open", len(said))
	}
	// One that is through, and says nothing inside.
	conn := tls.Client(dial(t, s.Harness), s.client(t))
	require.NoError(t, conn.Handshake())
	_, err := io.ReadAll(conn)
	var late net.Error
	require.False(t, err != nil && isTimeout(err, &late), "after the handshake the connection stayed open")
}

func TestHalfOpenConnectionsKeepNobodyOut(t *testing.T) {
	const halfOpen = 200
	bound := func(c *server.Config) { c.MaxConnections, c.SniffTimeout = 8, time.Hour }
	secured := startTLS(t, newFake(), bound)
	for name, row := range map[string]struct {
		h    *servertest.Harness
		said []byte
		opts []grpc.DialOption
	}{
		"in the clear": {start(t, newFake(), bound), []byte("PR"), nil},
		"with TLS":     {secured.Harness, hello(t), []grpc.DialOption{over(secured.client(t))}},
	} {
		t.Run(name, func(t *testing.T) {
			for range halfOpen {
				_, err := dial(t, row.h).Write(row.said)
				require.NoError(t, err)
			}
			for range 3 {
				require.NoError(t, checkHealth(t, row.h, row.opts...))
			}
		})
	}
}

func TestADrainInsideTLSLetsStreamsEndAndClosesWhoHasSaidNothing(t *testing.T) {
	gate := make(chan struct{})
	f := newFake()
	f.onFollow = gated(gate)
	s := startTLS(t, f, func(c *server.Config) { c.SniffTimeout = time.Hour })
	stream := running(t, s.Harness)
	raw := dial(t, s.Harness)
	_, err := raw.Write(hello(t)[:5])
	require.NoError(t, err)
	silent := tls.Client(dial(t, s.Harness), s.client(t))
	require.NoError(t, silent.Handshake())
	health := watch(t, s.Harness)
	s.Drain()
	next, err := health.Recv()
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING, next.GetStatus())
	for _, conn := range []net.Conn{raw, silent} {
		_, err = io.ReadAll(conn)
		var late net.Error
		require.False(t, err != nil && isTimeout(err, &late))
	}
	close(gate)
	_, err = events(stream)
	require.NoError(t, err)
	require.NoError(t, s.Stop())
}

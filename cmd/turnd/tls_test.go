package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/turnd/turnd/internal/certs/certstest"
)

// secured is a running turnd with TLS that asks clients for a certificate, and the files of both sides.
type secured struct {
	*process
	ca, clients          *certstest.Authority
	dir                  string
	caFile, cert, key    string // of a client
	clientCAFile, server string // of the server, and where it listens
}

func serveSecured(t *testing.T) *secured {
	t.Helper()
	s := &secured{ca: certstest.NewAuthority(t), clients: certstest.NewAuthority(t), dir: t.TempDir()}
	s.caFile, s.clientCAFile = filepath.Join(t.TempDir(), "ca.pem"), filepath.Join(s.dir, "clients.pem")
	certstest.Replace(t, s.caFile, s.ca.Certificate)
	certstest.Replace(t, s.clientCAFile, s.clients.Certificate)
	s.cert, s.key = s.clients.Issue(t).Write(t, t.TempDir())
	cert, key := s.ca.Issue(t).Write(t, s.dir)
	s.process = serve(t, emptyDatabases[engineSQLite](t), "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", s.clientCAFile,
		"--tls-min-version", "1.3", "--web-listen", ":0")
	s.server = s.ready.Listen
	return s
}

// chat sends a turn by the command, with flags about the connection.
func (s *secured) chat(code int, flags ...string) string {
	s.t.Helper()
	p := launch(s.t, []string{"HOME=" + s.t.TempDir()}, append([]string{"chat", "--server", s.server, "--new", "-m", "hello"}, flags...)...)
	require.Equal(s.t, code, p.code(), p.err.String())
	return p.out.String() + p.err.String()
}

// shown is the serial number of the certificate that a new connection is shown.
func (s *secured) shown(address string) string {
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	require.NoError(s.t, err)
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", address, &tls.Config{RootCAs: s.ca.Pool(), Certificates: []tls.Certificate{pair}})
	require.NoError(s.t, err)
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

func TestTurndServesByTLSAndPutsRenewedFilesInForce(t *testing.T) {
	s := serveSecured(t)
	require.NotContains(t, s.err.String(), "no TLS")
	mutual := []string{"--ca", s.caFile, "--cert", s.cert, "--client-key", s.key}
	require.Contains(t, s.chat(0, mutual...), "scripted provider")
	require.Contains(t, prints(t, append([]string{"held", "--server", s.server}, mutual...)...), "CONVERSATION")

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.ca.Certificate)
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	require.NoError(t, err)
	conn, err := grpc.NewClient("passthrough:///"+s.server, grpc.WithDisableRetry(),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}})))
	require.NoError(t, err)
	defer conn.Close()
	_, last := take(t, conn, uuid.NewString(), ignore)
	require.NotNil(t, last.GetCompleted())

	// A pair of which one half is new stays out of force, when asked too; whole, it is in force on both listeners.
	second := s.ca.Issue(t)
	certstest.Replace(t, filepath.Join(s.dir, "tls.crt"), second.Certificate)
	s.hangup("TLS files are refused, those before stay in force")
	require.NotEqual(t, second.Serial(t), s.shown(s.server))
	certstest.Replace(t, filepath.Join(s.dir, "tls.key"), second.Key)
	s.hangup("TLS certificate is in force")
	require.Equal(t, second.Serial(t), s.shown(s.server))
	require.Equal(t, second.Serial(t), s.shown(s.ready.Web))

	// Nobody has to ask.
	third := s.ca.Issue(t)
	third.Write(t, s.dir)
	s.until(func() bool { return s.shown(s.server) == third.Serial(t) })
	_, last = take(t, conn, uuid.NewString(), ignore) // on the connection from before
	require.NotNil(t, last.GetCompleted())

	require.NotContains(t, s.err.String(), "PRIVATE KEY")
	s.signal(syscall.SIGTERM)
	require.Equal(t, 0, s.code())
}

func TestACommandThatDoesNotFitTheServersTLSSaysWhatWould(t *testing.T) {
	s := serveSecured(t)
	held := func(server string, flags ...string) string {
		return fails(t, 1, nil, append([]string{"held", "--server", server}, flags...)...)
	}
	require.Contains(t, held(s.server), "it may speak TLS only, see --tls and --ca")
	require.Contains(t, held(s.server, "--tls"), "name who signed its certificate by --ca")
	require.Contains(t, held(s.server, "--ca", s.caFile), "it asks for a certificate, see --cert and --client-key")
	plain := serve(t, emptyDatabases[engineSQLite](t))
	require.Contains(t, held(plain.ready.Listen, "--ca", s.caFile), "it speaks without TLS")
	require.Contains(t, fails(t, 2, nil, "held", "--server", s.server, "--ca", "/no/such/file"), "--ca: /no/such/file can't be read")
	require.Contains(t, fails(t, 2, nil, "held", "--server", s.server, "--cert", s.caFile, "--client-key", s.key), "--client-key: "+s.key+" is not the key")
}

func TestFilesThatTLSCanNotBeServedByAreRefusedAtTheStartByFlag(t *testing.T) {
	ca := certstest.NewAuthority(t)
	cert, key := ca.Issue(t).Write(t, t.TempDir())
	_, other := ca.Issue(t).Write(t, t.TempDir())
	for want, args := range map[string][]string{
		"turnd: --tls-cert: /no/such/file can't be read: no such file or directory":            {"--tls-cert", "/no/such/file", "--tls-key", key},
		"turnd: --tls-cert: " + key + " holds no certificate":                                  {"--tls-cert", key, "--tls-key", key},
		"turnd: --tls-key: " + other + " is not the key of the certificate in " + cert:         {"--tls-cert", cert, "--tls-key", other},
		"turnd: --tls-client-ca: " + filepath.Dir(cert) + " is not a regular file":             {"--tls-cert", cert, "--tls-key", key, "--tls-client-ca", filepath.Dir(cert)},
		"turnd: --tls-min-version: \"1.1\" is not one of 1.2, 1.3":                             {"--tls-cert", cert, "--tls-key", key, "--tls-min-version", "1.1"},
		"turnd: --web-listen: goes with --tls-cert; without TLS the web is served on --listen": {"--web-listen", ":0"},
	} {
		p := launch(t, []string{"HOME=" + t.TempDir()}, append([]string{"serve", "--demo", "--listen", ":0"}, args...)...)
		require.NotZero(t, p.code(), want)
		require.Contains(t, p.err.String(), want)
		require.Empty(t, p.out.String())
	}
}

func TestAnExpiredCertificateIsServedWithAWarning(t *testing.T) {
	pair := certstest.NewAuthority(t).Issue(t, func(c *x509.Certificate) { c.NotAfter = c.NotBefore.Add(1) })
	cert, key := pair.Write(t, t.TempDir())
	p := serve(t, emptyDatabases[engineSQLite](t), "--tls-cert", cert, "--tls-key", key)
	require.Contains(t, p.err.String(), "a certificate is not valid now, and handshakes by it fail")
	require.Contains(t, p.err.String(), "expired at")
	var now ready
	raw, err := os.ReadFile(p.file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &now))
	require.Empty(t, now.Web)
}

func TestFlagsOfAConnectionThatContradictEachOtherAreRefused(t *testing.T) {
	for want, flags := range map[string][]string{
		"--cert, --client-key: one goes with the other":    {"--cert", "a"},
		"--insecure: can't go with --tls, --ca and --cert": {"--insecure", "--ca", "a"},
		`--server: "here" is not host:port`:                {"--server", "here"},
	} {
		for _, command := range []string{"chat", "held"} {
			_, err := parse(append([]string{command}, flags...), nil)
			require.ErrorAs(t, err, new(usageError))
			require.ErrorContains(t, err, want)
		}
	}
}

func TestWhoSpeaksInTheClearToAnotherMachineIsToldSo(t *testing.T) {
	var notes strings.Builder
	for _, f := range []dialFlags{{Server: "192.0.2.1:8080"}, {Server: "127.0.0.1:1", Insecure: true}, {Server: "192.0.2.1:1", TLS: true}} {
		_, err := f.security(&notes)
		require.NoError(t, err)
		require.Empty(t, notes.String())
	}
	opts, err := dialFlags{Server: "192.0.2.1:8080", Insecure: true}.security(&notes)
	require.NoError(t, err)
	require.Len(t, opts, 1)
	require.Equal(t, "turnd: --insecure: whoever is on the way to 192.0.2.1:8080 can read and change what is said\n", notes.String())
}

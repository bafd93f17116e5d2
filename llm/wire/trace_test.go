package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// deadConn takes nothing and says nothing.
type deadConn struct{ net.Conn }

func (c deadConn) Write([]byte) (int, error) { return 0, errors.New("broken") }

// streamError makes a call and returns how it failed.
func streamError(t *testing.T, c *Client, url string) *turns.CallError {
	t.Helper()
	var failed *turns.CallError
	for _, err := range c.Stream(t.Context(), Post{URL: url, Body: []byte("{}"), Key: "turnd-1"}, Vendor{}) {
		require.ErrorAs(t, err, &failed)
	}
	require.NotNil(t, failed)
	return failed
}

func TestAConnectionThatTakesNotOneByteIsNotSent(t *testing.T) {
	c := NewClient(Options{Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = theirs.Close() })
		return deadConn{ours}, nil
	}})
	defer c.Close()
	failed := streamError(t, c, "http://127.0.0.1:1")
	require.Equal(t, turns.ClassNotSent, failed.Class)
	require.Equal(t, turns.PhaseConnected, failed.Phase, "headers that lie in a buffer are not written")
}

func TestARequestIsSentAsSoonAsOneByteIs(t *testing.T) {
	c := NewClient(Options{Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = theirs.Read(make([]byte, 1))
			_ = theirs.Close()
		}()
		return ours, nil
	}})
	defer c.Close()
	failed := streamError(t, c, "http://127.0.0.1:1")
	require.Equal(t, turns.ClassAmbiguous, failed.Class)
	require.Equal(t, turns.PhaseWritten, failed.Phase)
}

func TestBytesAreCountedBelowTLSButNotOnASharedConnection(t *testing.T) {
	for name, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				panic(http.ErrAbortHandler)
			}))
			s.EnableHTTP2 = h2
			s.StartTLS()
			defer s.Close()
			transport := newTransport(nil)
			transport.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
			transport.TLSClientConfig.RootCAs.AddCert(s.Certificate())
			var counted bool
			c := NewClient(Options{Transport: seen{transport, &counted}})
			defer transport.CloseIdleConnections()
			failed := streamError(t, c, s.URL)
			require.Equal(t, turns.ClassAmbiguous, failed.Class)
			require.Equal(t, turns.PhaseWritten, failed.Phase)
			require.Equal(t, !h2, counted)
		})
	}
}

func TestACertificateThatIsNotTrustedIsNotSent(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	transport := newTransport(nil)
	transport.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
	c := NewClient(Options{Transport: transport})
	defer c.Close()
	failed := streamError(t, c, s.URL)
	require.Equal(t, turns.ClassNotSent, failed.Class)
	require.Equal(t, turns.PhaseNone, failed.Phase)
	var untrusted *tls.CertificateVerificationError
	require.ErrorAs(t, failed, &untrusted)
}

// seen notes whether the request's connection counts its bytes for this request alone.
type seen struct {
	http.RoundTripper
	counted *bool
}

func (s seen) RoundTrip(r *http.Request) (*http.Response, error) {
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { *s.counted = exclusive(info.Conn) != nil }}
	return s.RoundTripper.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
}

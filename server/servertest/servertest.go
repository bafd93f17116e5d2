// Package servertest runs the real server on a loopback port inside a test, with a real client connected to it.
package servertest

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/turnd/turnd/server"
)

// Harness is a server under test. It is stopped at the test's end.
type Harness struct {
	// Addr is where it listens.
	Addr string
	// WebAddr is where it listens for the web alone, with TLS; empty without.
	WebAddr string
	// Conn is a client's connection to it.
	Conn *grpc.ClientConn

	cancel context.CancelFunc
	served chan struct{}
	err    error
}

// Start runs a server and returns once it takes connections. With TLS, opts say how its client is to be sure of it.
func Start(t testing.TB, cfg server.Config, opts ...grpc.DialOption) *Harness {
	t.Helper()
	srv, err := server.New(cfg)
	require.NoError(t, err)
	lis := listen(t)
	var web []net.Listener
	if cfg.TLS != nil {
		web = append(web, listen(t))
	}
	ctx, cancel := context.WithCancel(context.Background())
	h := &Harness{Addr: lis.Addr().String(), cancel: cancel, served: make(chan struct{})}
	for _, l := range web {
		h.WebAddr = l.Addr().String()
	}
	go func() {
		defer close(h.served)
		h.err = srv.Serve(ctx, lis, web...)
	}()
	h.Conn = h.Dial(t, opts...)
	t.Cleanup(func() {
		_ = h.Conn.Close()
		require.NoError(t, h.Stop())
	})
	return h
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return lis
}

// Dial makes one more client's connection, closed at the test's end. Messages of any size are taken.
func (h *Harness) Dial(t testing.TB, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	opts = append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64 << 20)),
	}, opts...)
	conn, err := grpc.NewClient("passthrough:///"+h.Addr, opts...)
	require.NoError(t, err)
	t.Cleanup(sync.OnceFunc(func() { _ = conn.Close() }))
	return conn
}

// Drain begins the server's shutdown and does not wait for it.
func (h *Harness) Drain() { h.cancel() }

// Stop shuts the server down, waits for it, and gives what Serve returned.
func (h *Harness) Stop() error {
	h.cancel()
	<-h.served
	return h.err
}

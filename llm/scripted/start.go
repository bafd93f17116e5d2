package scripted

import (
	"context"
	"net"
	"time"
)

// closeTimeout bounds the end of a test.
const closeTimeout = 10 * time.Second

// TB is what Start needs of a *testing.T.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Start serves a script on a free loopback port until the test ends.
func Start(t TB, script Script) *Server {
	t.Helper()
	if err := script.Validate(); err != nil {
		t.Fatalf("scripted.Start: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("scripted.Start: %v", err)
	}
	s := New(script, Options{})
	s.setURL(l)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Fatalf("scripted.Start: %v", err)
		}
		if err := <-served; err != nil {
			t.Fatalf("scripted.Start: %v", err)
		}
	})
	return s
}

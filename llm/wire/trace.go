package wire

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/turnd/turnd/turns"
)

// countingConn counts the bytes that were given to the network. A write that fails takes back what it did not send.
type countingConn struct {
	net.Conn
	written atomic.Int64
}

// Write counts before it writes: who looks in between must see "maybe sent", never "not sent".
func (c *countingConn) Write(b []byte) (int, error) {
	c.written.Add(int64(len(b)))
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n - len(b)))
	return n, err
}

// trace follows one request over the wire.
type trace struct {
	conn    atomic.Bool
	headers atomic.Bool
	wrote   atomic.Int32 // how often the request was written, or its writing failed
	counted atomic.Pointer[countedFrom]
}

// countedFrom is a connection that serves this request alone, and its count when it was handed over.
type countedFrom struct {
	conn *countingConn
	from int64
}

func (t *trace) attach(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if c := exclusive(info.Conn); c != nil {
				t.counted.Store(&countedFrom{c, c.written.Load()})
			}
			t.conn.Store(true)
		},
		WroteHeaders: func() { t.headers.Store(true) },
		WroteRequest: func(httptrace.WroteRequestInfo) { t.wrote.Add(1) },
	})
}

// exclusive finds the counter below a connection, or nil if other requests share it (HTTP/2).
func exclusive(c net.Conn) *countingConn {
	if t, ok := c.(*tls.Conn); ok {
		if t.ConnectionState().NegotiatedProtocol == "h2" {
			return nil
		}
		c = t.NetConn()
	}
	counted, _ := c.(*countingConn)
	return counted
}

// phase is how far the request got, before any status.
func (t *trace) phase() turns.CallPhase {
	switch {
	case !t.conn.Load():
		return turns.PhaseNone
	case !t.written():
		return turns.PhaseConnected
	}
	return turns.PhaseWritten
}

// written reports whether some of the request may have left the process. Headers that only lie in a buffer have not.
func (t *trace) written() bool {
	if c := t.counted.Load(); c != nil {
		return c.conn.written.Load() > c.from
	}
	return t.headers.Load()
}

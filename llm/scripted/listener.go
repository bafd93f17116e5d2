package scripted

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// drainBytes bounds what is read from a connection that was closed at accept, so that FIN is not turned into a reset by
// bytes left unread.
const drainBytes = 64 << 20

type connKey struct{}

// listener counts what it accepts.
type listener struct {
	net.Listener
	server *Server
}

func (l listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	b := l.server.current().book
	b.connection(1)
	return &conn{Conn: accepted, server: l.server, book: b}, nil
}

// conn is a connection that knows whether it is counted, and plays accept steps before its first byte is handed on.
type conn struct {
	net.Conn
	server *Server
	book   *book // of the time of accept

	greeted bool
	head    []byte // read while finding out what the connection is for

	mu         sync.Mutex
	generating bool // carried a request that is not a control request
	uncounted  bool
}

// SetLinger reaches through to TCP.
func (c *conn) SetLinger(seconds int) error {
	if tcp, ok := c.Conn.(lingerer); ok {
		return tcp.SetLinger(seconds)
	}
	return errors.ErrUnsupported
}

// Read greets the connection once and then reads. net/http never reads one connection from two goroutines at a time.
func (c *conn) Read(p []byte) (int, error) {
	if !c.greeted {
		c.greeted = true
		if err := c.greet(); err != nil {
			return 0, err
		}
	}
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// greet reads until it is clear whether a control request comes, which no accept step may touch.
func (c *conn) greet() error {
	buffer := make([]byte, 64)
	for {
		n, err := c.Conn.Read(buffer)
		c.head = append(c.head, buffer[:n]...)
		if err != nil && n == 0 {
			return err
		}
		e := c.server.current()
		if !e.program().hasAccept {
			return nil
		}
		if control, known := isControl(c.head); known {
			if control {
				return nil
			}
			return c.accept(e)
		}
	}
}

// isControl looks at the beginning of a request. Known is false while it is too short to tell.
func isControl(head []byte) (control, known bool) {
	_, path, found := bytes.Cut(head, []byte(" "))
	if !found {
		return false, len(head) > 16
	}
	if len(path) >= len(controlPrefix) {
		return bytes.HasPrefix(path, []byte(controlPrefix)), true
	}
	return false, !bytes.HasPrefix([]byte(controlPrefix), path)
}

// accept plays the steps of the rule that takes this connection, if one does. What it takes ends in io.EOF, which net/http
// answers with no word of its own.
func (c *conn) accept(e *era) error {
	rule, taken := e.program().pickAccept()
	if !taken {
		return nil
	}
	// The faults last as long as the client likes, whatever deadline the server has for headers.
	_ = c.Conn.SetReadDeadline(time.Time{})
	for _, step := range rule.Plan.Steps {
		switch step.Do {
		case DoWait:
			if !await(e.ctx, e.book.arrive(step.Gate)) {
				return io.EOF
			}
		case DoReset:
			reset(c.Conn)
			return io.EOF
		case DoClose:
			c.closeWrite()
			c.drain(e.ctx, drainBytes)
			return io.EOF
		default:
			c.drain(e.ctx, 1<<62)
			return io.EOF
		}
	}
	return nil
}

func (c *conn) closeWrite() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// drain reads until the client leaves or the era is cut.
func (c *conn) drain(ctx context.Context, limit int64) {
	stop := context.AfterFunc(ctx, func() { _ = c.Conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	_, _ = io.CopyN(io.Discard, c.Conn, limit)
}

// use takes note of what a request on this connection was for. Connections that carry control requests alone are not
// counted.
func (c *conn) use(control bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case control && !c.generating && !c.uncounted:
		c.uncounted = true
		c.book.connection(-1)
	case !control && c.uncounted:
		c.uncounted = false
		c.book.connection(1)
	}
	c.generating = c.generating || !control
}

// connOf returns the connection under a request, or nil when another server's listener accepted it.
func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}

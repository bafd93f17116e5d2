package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// preface is how every HTTP/2 connection with prior knowledge begins, which is how gRPC speaks without TLS. No request
// of HTTP/1.1 begins so.
const preface = "PRI "

// splitter serves two protocols on one listener: it reads the first bytes of each connection and hands it on. Each side
// then has its own server, which is several times cheaper for gRPC than to run it inside net/http.
//
// With TLS it makes the handshake first, and reads the first bytes inside. They decide, and not what the handshake agreed
// on: that is h2 for a browser too, and nothing for a simple client.
type splitter struct {
	lis     net.Listener
	timeout time.Duration
	tls     *tls.Config // nil serves in the clear
	log     *slog.Logger
	slots   chan struct{} // one for each open connection
	silent  waiting       // what has not been handed on
	grpc    *connListener // nil leaves everything to the web
	web     *connListener
	sniffs  sync.WaitGroup

	open  context.Context // until close
	ended context.CancelFunc
}

func newSplitter(lis net.Listener, maxConnections int, timeout time.Duration) *splitter {
	open, ended := context.WithCancel(context.Background())
	return &splitter{
		lis:     lis,
		timeout: timeout,
		log:     slog.New(slog.DiscardHandler),
		slots:   make(chan struct{}, maxConnections),
		silent:  waiting{most: max(1, maxConnections/silentShare)},
		grpc:    newConnListener(lis.Addr()),
		web:     newConnListener(lis.Addr()),
		open:    open,
		ended:   ended,
	}
}

// silentShare is the part of all connections, one in so many, that may be waited for to show what they speak.
const silentShare = 4

// run accepts until close or until the listener fails. Every connection is sniffed in a goroutine of its own, so that one
// which stays silent holds up no other; there are never more of them than slots.
func (s *splitter) run() error {
	defer s.sniffs.Wait()
	defer s.close()
	for {
		select {
		case s.slots <- struct{}{}:
		case <-s.open.Done():
			return nil
		}
		conn, err := s.accept()
		if err != nil {
			if s.open.Err() != nil {
				return nil
			}
			return err
		}
		held := &slotConn{Conn: conn, release: func() { <-s.slots }}
		leave := s.silent.join(held)
		s.sniffs.Go(func() { s.sniff(held, leave) })
	}
}

// Pauses after an accept that failed for the moment, most often for want of file descriptors.
const (
	firstPause = 5 * time.Millisecond
	longPause  = time.Second
)

// accept takes the next connection, and waits out failures that pass.
func (s *splitter) accept() (net.Conn, error) {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		conn, err := s.lis.Accept()
		var passing interface{ Temporary() bool }
		if err == nil || !errors.As(err, &passing) || !passing.Temporary() {
			return conn, err
		}
		select {
		case <-time.After(pause):
		case <-s.open.Done():
			return nil, err
		}
	}
}

// sniff hands a connection to whom its first bytes name. One that stays silent, or takes its time with the handshake of
// TLS, is closed.
func (s *splitter) sniff(conn net.Conn, leave func() bool) {
	_ = conn.SetDeadline(time.Now().Add(s.timeout))
	unhook := context.AfterFunc(s.open, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // wakes what waits below
	to, shown, err := s.recognize(conn)
	if err != nil {
		farewell(conn)
	}
	kept, open := leave(), unhook()
	if err != nil || !kept || !open || conn.SetDeadline(time.Time{}) != nil {
		_ = conn.Close()
		return
	}
	to.hand(shown)
}

// recognize finds out what a connection speaks, and gives it as its server is to have it.
func (s *splitter) recognize(conn net.Conn) (to *connListener, shown net.Conn, err error) {
	if conn, err = s.startTLS(conn); err != nil {
		return nil, nil, err
	}
	if s.grpc == nil {
		return s.web, conn, nil
	}
	head := make([]byte, len(preface))
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil, nil, err
	}
	to = s.web
	if string(head) == preface {
		to = s.grpc
	}
	began := headConn{Conn: conn, head: head}
	if inside, ok := conn.(*tls.Conn); ok {
		return to, &tlsHeadConn{headConn: began, inside: inside}, nil
	}
	return to, &began, nil
}

// close stops accepting and closes connections that have not shown their protocol. Those handed on stay open.
func (s *splitter) close() {
	s.ended()
	_ = s.lis.Close()
}

// slotConn gives its slot back when it is closed, once: both servers close a connection more than once.
type slotConn struct {
	net.Conn
	once    sync.Once
	release func()
}

// Close implements net.Conn.
func (c *slotConn) Close() error {
	defer c.once.Do(c.release)
	return c.Conn.Close()
}

// CloseWrite says that nothing more will be sent, where the connection can say so.
func (c *slotConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// headConn is a connection whose first bytes were read already.
type headConn struct {
	net.Conn
	head []byte
}

// Read implements net.Conn.
func (c *headConn) Read(p []byte) (int, error) {
	if len(c.head) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.head)
	c.head = c.head[n:]
	return n, nil
}

// connListener is a listener that is handed its connections. It keeps no queue: a connection waits with the goroutine that
// sniffed it.
type connListener struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newConnListener(addr net.Addr) *connListener {
	return &connListener{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

// hand gives a connection to whoever accepts, and closes it if nobody does any more.
func (l *connListener) hand(conn net.Conn) {
	select {
	case l.conns <- conn:
	case <-l.done:
		_ = conn.Close()
	}
}

// Accept implements net.Listener.
func (l *connListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *connListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *connListener) Addr() net.Addr { return l.addr }

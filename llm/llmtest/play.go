package llmtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Provider is a provider played by hand. It counts what reaches it below HTTP: connections in its accept loop, requests
// as they are read from one.
type Provider struct {
	url         string
	answer      func(*Exchange)
	connections atomic.Int64
	requests    atomic.Int64
	running     sync.WaitGroup
	mu          sync.Mutex
	open        map[net.Conn]bool
	closed      bool
}

// Exchange is one request, read whole, and the connection to answer on. When the answer returns, the next request of the
// connection is read, unless it was closed.
type Exchange struct {
	net.Conn
	// N numbers the requests of the provider, OnConn those of the connection, from 1.
	N, OnConn int
	Header    http.Header
	Method    string
	Path      string
	Query     url.Values
	Body      string
}

// Play serves a hand-played provider on loopback until the test ends.
func Play(t testing.TB, answer func(*Exchange)) *Provider {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Provider{url: "http://" + l.Addr().String(), answer: answer, open: make(map[net.Conn]bool)}
	p.running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.accept(conn)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.close()
	})
	return p
}

// Pipe is a hand-played provider behind a dial function instead of a port. Its connections are in memory, so that a test
// in a bubble of testing/synctest can let hours pass. Close it before the bubble ends.
func Pipe(answer func(*Exchange)) (*Provider, func(context.Context, string, string) (net.Conn, error)) {
	p := &Provider{url: "http://127.0.0.1:1", answer: answer, open: make(map[net.Conn]bool)}
	return p, func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		p.accept(theirs)
		return ours, nil
	}
}

// URL is the base URL.
func (p *Provider) URL() string { return p.url }

// Connections counts what was accepted.
func (p *Provider) Connections() int { return int(p.connections.Load()) }

// Requests counts requests that were read whole.
func (p *Provider) Requests() int { return int(p.requests.Load()) }

// Close cuts all connections and waits for the answers to end.
func (p *Provider) Close() { p.close() }

func (p *Provider) close() {
	p.mu.Lock()
	p.closed = true
	for conn := range p.open {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

func (p *Provider) accept(conn net.Conn) {
	p.connections.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = conn.Close()
		return
	}
	p.open[conn] = true
	p.running.Go(func() {
		p.serve(conn)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, conn)
	})
}

func (p *Provider) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for onConn := 1; ; onConn++ {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		n := int(p.requests.Add(1))
		p.answer(&Exchange{Conn: conn, N: n, OnConn: onConn, Header: req.Header, Method: req.Method, Path: req.URL.Path,
			Query: req.URL.Query(), Body: string(body)})
	}
}

// Say writes bytes as they are.
func (x *Exchange) Say(s string) { _, _ = io.WriteString(x.Conn, s) }

// Begin writes the head of a good answer, with header lines of the test's own.
func (x *Exchange) Begin(headers ...string) { x.Say(head(headers)) }

// Events writes one part of the stream.
func (x *Exchange) Events(s string) { x.Say(chunk(s)) }

// End ends the stream cleanly.
func (x *Exchange) End() { x.Say("0\r\n\r\n") }

// Stream is a whole good answer in one write: a client that has read the terminal event can have read the end too.
func (x *Exchange) Stream(s string) {
	if s == "" {
		x.Say(head(nil) + "0\r\n\r\n")
		return
	}
	x.Say(head(nil) + chunk(s) + "0\r\n\r\n")
}

func head(headers []string) string {
	return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n" + lines(headers) + "\r\n"
}

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// Status is a whole answer of another kind.
func (x *Exchange) Status(status int, body string, headers ...string) {
	x.Say(fmt.Sprintf("HTTP/1.1 %d Status\r\nContent-Length: %d\r\n%s\r\n%s", status, len(body), lines(headers), body))
}

// Gone waits until the client has closed the connection.
func (x *Exchange) Gone() { _, _ = io.Copy(io.Discard, x.Conn) }

// Reset cuts the connection the hard way.
func (x *Exchange) Reset() {
	if tcp, ok := x.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = x.Conn.Close()
}

func lines(headers []string) string {
	if len(headers) == 0 {
		return ""
	}
	return strings.Join(headers, "\r\n") + "\r\n"
}

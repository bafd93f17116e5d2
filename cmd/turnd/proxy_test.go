package main

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy stands between a process and its Postgres, which it can take away and bring back. It keeps
// its address all the time: one let go could be another test's by the time it is wanted again.
type proxy struct {
	t      *testing.T
	target string
	url    string

	mu    sync.Mutex
	shut  bool
	lis   net.Listener
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

// proxied is a proxy before the database of a URL.
func proxied(t *testing.T, database string) *proxy {
	t.Helper()
	u, err := url.Parse(database)
	require.NoError(t, err)
	p := &proxy{t: t, target: u.Host, conns: map[net.Conn]bool{}}
	u.Host = p.listen()
	p.url = u.String()
	t.Cleanup(func() {
		_ = p.lis.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

// listen takes connections, and hangs up on those that come while the proxy is cut.
func (p *proxy) listen() (address string) {
	p.t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(p.t, err)
	p.lis = lis
	p.wg.Go(func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.relay(conn) })
		}
	})
	return lis.Addr().String()
}

// open lets connections through again.
func (p *proxy) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = false
}

// cut hangs up on new connections and breaks those that are open.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = true
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) relay(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	if !p.note(client, server) {
		_ = client.Close()
		_ = server.Close()
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
	both.Wait()
	p.forget(client, server)
}

// note keeps connections to be broken by a cut; ok is false if they come during one.
func (p *proxy) note(conns ...net.Conn) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return false
	}
	for _, c := range conns {
		p.conns[c] = true
	}
	return true
}

func (p *proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}

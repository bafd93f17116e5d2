package main

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy stands between a process and its Postgres, which it can take away.
type proxy struct {
	t      *testing.T
	target string
	url    string

	mu    sync.Mutex
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
	u.Host = p.open()
	p.url = u.String()
	t.Cleanup(func() {
		p.cut()
		p.wg.Wait()
	})
	return p
}

// open lets connections through, at the address it returns.
func (p *proxy) open() string {
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

// cut refuses new connections and breaks those that are open.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.lis.Close()
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
	p.note(client, server)
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

func (p *proxy) note(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
}

func (p *proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}

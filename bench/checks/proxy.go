package main

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
)

// proxy stands between a server and its Postgres. It can lose one answer: when what the server sends holds a mark, the
// statement goes through, its answer is swallowed, and the connection is cut.
type proxy struct {
	listener net.Listener
	target   string

	mu   sync.Mutex
	mark []byte
	lost int
	wg   sync.WaitGroup
}

// startProxy listens for connections to the database of a URL and gives the URL that goes through it.
func startProxy(dsn string) (*proxy, string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	p := &proxy{listener: listener, target: u.Host}
	u.Host = listener.Addr().String()
	p.wg.Go(p.serve)
	return p, u.String(), nil
}

func (p *proxy) close() {
	_ = p.listener.Close()
}

// loseAnswerTo makes the proxy lose the answer to the next statement that holds a mark.
func (p *proxy) loseAnswerTo(mark string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mark = []byte(mark)
}

// losses counts the answers that were lost.
func (p *proxy) losses() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		go p.relay(client, server)
	}
}

// relay passes bytes both ways until a side closes or the answer is to be lost.
func (p *proxy) relay(client, server net.Conn) {
	defer client.Close()
	defer server.Close()
	losing := make(chan struct{})
	go func() {
		defer client.Close()
		defer server.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			select {
			case <-losing: // the answer has come, so the statement is through, and nobody hears of it
				return
			default:
			}
			if n > 0 {
				if _, err := client.Write(buf[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if n > 0 {
			if p.marked(buf[:n]) {
				close(losing)
				if _, err := server.Write(buf[:n]); err == nil {
					_, _ = io.Copy(io.Discard, client)
				}
				return
			}
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// marked reports whether what is sent holds the mark, once.
func (p *proxy) marked(b []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mark) == 0 || !bytes.Contains(b, p.mark) {
		return false
	}
	p.mark = nil
	p.lost++
	return true
}

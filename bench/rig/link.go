package rig

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Direction is a way through a link.
type Direction int

// Up leads from who dials to who is dialled, Down leads back.
const (
	Up Direction = iota
	Down
)

// Link is a TCP proxy that stands between two programs and fails on request. The zero fault is none: bytes pass as they
// come. Faults hold for connections that are there and for those to come, until Heal.
type Link struct {
	listener net.Listener
	wg       sync.WaitGroup
	life     context.Context // until Close
	end      context.CancelFunc

	mu      sync.Mutex
	target  string
	refuse  bool
	stalled [2]bool
	delay   time.Duration
	lose    func([]byte) bool // picks what goes up whose answer is to be lost
	lost    int
	pairs   map[*pair]struct{}
	changed chan struct{} // closed and replaced at each change
}

// pair is one connection through a link: two sockets.
type pair struct {
	client, server net.Conn
	once           sync.Once
	gone           chan struct{}
	losing         chan struct{} // closed once its next answer is to be lost
}

// NewLink listens on loopback and dials target for each connection.
func NewLink(target string) (*Link, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	l := &Link{life: life, end: end, listener: listener, target: target, pairs: map[*pair]struct{}{}, changed: make(chan struct{})}
	l.wg.Go(l.serve)
	return l, nil
}

// Addr is where the link listens.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Close ends the link and all that goes through it.
func (l *Link) Close() {
	l.end()
	_ = l.listener.Close()
	l.Cut()
	l.wg.Wait()
}

// SetTarget sends connections to come elsewhere.
func (l *Link) SetTarget(target string) { l.change(func() { l.target = target }) }

// Refuse resets connections to come, as a port does on which nobody listens, and cuts those that are there.
func (l *Link) Refuse() {
	l.change(func() { l.refuse = true })
	l.Cut()
}

// Stall holds bytes that go a way; they are not lost.
func (l *Link) Stall(ways ...Direction) {
	l.change(func() {
		for _, d := range ways {
			l.stalled[d] = true
		}
	})
}

// Slow makes each piece of data wait before it passes.
func (l *Link) Slow(delay time.Duration) { l.change(func() { l.delay = delay }) }

// LoseAnswer makes the link lose one answer: the next data going up that pick chooses gets through, what comes back is
// swallowed, and the connection is cut.
func (l *Link) LoseAnswer(pick func([]byte) bool) { l.change(func() { l.lose = pick }) }

// LoseAnswerTo is LoseAnswer for data that holds a mark.
func (l *Link) LoseAnswerTo(mark string) {
	l.LoseAnswer(func(b []byte) bool { return bytes.Contains(b, []byte(mark)) })
}

// Losses counts the answers that were lost.
func (l *Link) Losses() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// Heal ends every fault.
func (l *Link) Heal() {
	l.change(func() { l.refuse, l.stalled, l.delay, l.lose = false, [2]bool{}, 0, nil })
}

// Cut resets all connections that are there.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.pairs {
		p.reset()
	}
}

func (l *Link) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *Link) serve() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.wg.Go(func() { l.connect(client) })
	}
}

func (l *Link) connect(client net.Conn) {
	l.mu.Lock()
	refuse, target := l.refuse, l.target
	l.mu.Unlock()
	var server net.Conn
	if !refuse {
		dialer := net.Dialer{Timeout: 5 * time.Second}
		server, _ = dialer.DialContext(l.life, "tcp", target)
	}
	if server == nil {
		abort(client)
		return
	}
	p := &pair{client: client, server: server, gone: make(chan struct{}), losing: make(chan struct{})}
	l.mu.Lock()
	refused := l.refuse
	l.pairs[p] = struct{}{}
	l.mu.Unlock()
	if refused { // since the first look
		p.reset()
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { l.pump(p, Up, client, server) })
	pumps.Go(func() { l.pump(p, Down, server, client) })
	pumps.Wait()
	_ = client.Close()
	_ = server.Close()
	l.mu.Lock()
	delete(l.pairs, p)
	l.mu.Unlock()
}

// reset ends both sides without a farewell.
func (p *pair) reset() {
	p.once.Do(func() {
		close(p.gone)
		abort(p.client)
		abort(p.server)
	})
}

func abort(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// pump passes bytes one way. An orderly end is passed on as one, anything else resets the pair.
func (l *Link) pump(p *pair, way Direction, from, to net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !l.pass(p, way, buf[:n]) {
				p.reset()
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				p.reset()
				return
			}
		}
		if errors.Is(err, io.EOF) && l.pass(p, way, nil) {
			if tcp, ok := to.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
				return
			}
		}
		if err != nil {
			p.reset()
			return
		}
	}
}

// pass waits until data may go its way; false says that it is lost and the connection ends.
func (l *Link) pass(p *pair, way Direction, data []byte) bool {
	for {
		l.mu.Lock()
		stalled, delay, changed := l.stalled[way], l.delay, l.changed
		if way == Up && !stalled && l.lose != nil && len(data) > 0 && !p.isLosing() && l.lose(data) {
			l.lose = nil
			l.lost++
			close(p.losing)
		}
		l.mu.Unlock()
		if !stalled {
			return p.rest(delay) && (way == Up || !p.isLosing())
		}
		select {
		case <-changed:
		case <-p.gone:
			return false
		}
	}
}

func (p *pair) isLosing() bool {
	select {
	case <-p.losing:
		return true
	default:
		return false
	}
}

// rest waits; false says that the pair ended meanwhile.
func (p *pair) rest(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.gone:
		return false
	}
}

package postgres

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// wire is a way to a server that can fall silent or be cut, as networks do.
type wire struct {
	t      *testing.T
	listen net.Listener
	server string
	// deaf swallows what the server is sent, dumb what it answers.
	deaf, dumb atomic.Bool

	mu     sync.Mutex
	conns  map[net.Conn]bool
	onNext func() // called once, with the next client
	all    sync.WaitGroup
}

// wireTo starts a wire to the server of a DSN, and gives the DSN through it.
func wireTo(t *testing.T, dsn string) (*wire, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &wire{t: t, listen: listen, server: u.Host, conns: map[net.Conn]bool{}}
	w.all.Go(w.accept)
	t.Cleanup(func() {
		_ = listen.Close()
		w.cut()
		w.all.Wait()
	})
	u.Host = listen.Addr().String()
	return w, u.String()
}

func (w *wire) accept() {
	for {
		client, err := w.listen.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		w.mu.Lock()
		w.conns[client], w.conns[server] = true, true
		if w.onNext != nil {
			w.onNext()
			w.onNext = nil
		}
		w.mu.Unlock()
		w.all.Go(func() { w.carry(server, client, &w.deaf) })
		w.all.Go(func() { w.carry(client, server, &w.dumb) })
	}
}

// carry copies until one side ends. What comes while lost is set is lost for ever.
func (w *wire) carry(to, from net.Conn, lost *atomic.Bool) {
	silent := false
	defer func() {
		_ = from.Close()
		if silent {
			return // an end is not told through a silent wire
		}
		_ = to.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.conns, to)
		delete(w.conns, from)
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !lost.Load() {
			_, _ = to.Write(buf[:n])
		}
		if err != nil {
			silent = lost.Load()
			return
		}
	}
}

// silence makes the wire swallow everything, also on connections that are made now.
func (w *wire) silence(silent bool) { w.deaf.Store(silent); w.dumb.Store(silent) }

// mute makes the wire swallow what the server answers.
func (w *wire) mute(muted bool) { w.dumb.Store(muted) }

// cut ends all connections.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.conns {
		_ = conn.Close()
	}
}

// onClient calls f when the next client comes, before anything of it is carried.
func (w *wire) onClient(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onNext = f
}

package wire

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnd/turnd/llm/sse"
)

// Bounds on what one process keeps open and reads.
const (
	maxIdleConns        = 1024
	maxIdleConnsPerHost = 256
	// idleConnTimeout is well below what load balancers use, so that it is this side that closes: a connection that dies
	// while a request is on its way makes an ambiguous call.
	idleConnTimeout  = 20 * time.Second
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	pingAfter        = 15 * time.Second
	maxHeaderBytes   = 256 << 10
	// A connection keeps its buffers for as long as its answer takes. writeBuffer is room for most requests' headers, and a body
	// that is larger is written past it. What a fast provider has sent is read by at most readBuffer at a time.
	writeBuffer  = 1 << 10
	readBuffer   = 2 << 10
	maxErrorBody = 64 << 10
	// errorBodyWait bounds the wait for the body of a bad status: the status alone says enough.
	errorBodyWait = 5 * time.Second
	// After the terminal event the end of the body is read for this long, at most so many bytes, so that the connection
	// can serve again. A server that keeps the socket open loses it.
	drainWait  = 25 * time.Millisecond
	drainBytes = 4 << 10
)

// Options of a Client. The zero value is what production uses.
type Options struct {
	// Dial opens connections; nil dials TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Transport takes the place of the whole HTTP transport; for tests of what a broken one would do.
	Transport http.RoundTripper
	// MaxEvent bounds one event of a stream; 0 means sse.DefaultMaxEvent.
	MaxEvent int
	// Logger gets what no call's own error can say; nil drops it.
	Logger *slog.Logger
}

// Client sends requests, one each. All adapters of a process share one.
type Client struct {
	transport http.RoundTripper
	maxEvent  int
	logger    *slog.Logger
	resends   atomic.Int64
	decoders  sync.Pool // of *sse.Decoder
}

// NewClient makes a client. Its transport reads HTTPS_PROXY, HTTP_PROXY and NO_PROXY, and no other setting from the
// environment.
func NewClient(o Options) *Client {
	c := &Client{transport: o.Transport, maxEvent: o.MaxEvent, logger: o.Logger}
	c.decoders.New = func() any { return sse.NewDecoder(nil, c.maxEvent) }
	if c.transport == nil {
		c.transport = newTransport(o.Dial)
	}
	if c.maxEvent == 0 {
		c.maxEvent = sse.DefaultMaxEvent
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// newTransport sets every bound itself. Connections in use are as many as calls, which admission bounds; here only idle
// ones are limited.
func newTransport(dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: pingAfter}).DialContext
	}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &countingConn{Conn: conn}, nil
		},
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter},
		TLSHandshakeTimeout:    handshakeTimeout,
		MaxIdleConns:           maxIdleConns,
		MaxIdleConnsPerHost:    maxIdleConnsPerHost,
		IdleConnTimeout:        idleConnTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		WriteBufferSize:        writeBuffer,
		ReadBufferSize:         readBuffer,
		DisableCompression:     true, // a compressed stream waits for a full block before it shows a word
	}
}

// decoder gives one for a body, to be released.
func (c *Client) decoder(body io.Reader) *sse.Decoder {
	d := c.decoders.Get().(*sse.Decoder)
	d.Reset(body, c.maxEvent)
	return d
}

// release takes a decoder back, which lets go of its body.
func (c *Client) release(d *sse.Decoder) {
	d.Reset(nil, c.maxEvent)
	c.decoders.Put(d)
}

// Resends counts requests that were written to the wire more than once. It stays 0 unless the HTTP stack is broken.
func (c *Client) Resends() int64 { return c.resends.Load() }

// Close lets go of idle connections. Calls that run go on.
func (c *Client) Close() {
	if t, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

package scripted

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxBody bounds a request; more is answered with 413 and not counted as a request.
	maxBody = 32 << 20
	// headerTimeout and idleTimeout free what a client forgot. The idle one is longer than usual clients keep
	// connections, so that a client never meets a connection that is just being closed.
	headerTimeout = time.Minute
	idleTimeout   = 10 * time.Minute
)

// Control says whether the control API is served.
type Control string

// ControlOn is the default. With ControlOff every path below /_scripted/ is unknown, as at a vendor.
const (
	ControlOn  Control = "on"
	ControlOff Control = "off"
)

// Options are what is not part of a script. The zero value serves the control API and logs nothing.
type Options struct {
	Control Control
	// Log hears of the HTTP server's own trouble, never of what is in a request.
	Log *slog.Logger
	// Now is the clock of the records and of the retention of keys; nil is time.Now.
	Now func() time.Time
}

// Server is the provider. Its methods may be called from any goroutine.
type Server struct {
	options Options
	initial Script
	idBase  string
	ids     atomic.Uint64
	http    *http.Server
	serving sync.WaitGroup // serve loops and connections

	mu     sync.Mutex
	era    *era
	closed bool
	url    string
}

// New makes a server that plays script, now and after each Reset. It panics on a script that Validate refuses; a script
// from outside comes through ParseScript, which has asked. Close must be called.
func New(script Script, options Options) *Server {
	if err := script.Validate(); err != nil {
		panic("scripted.New: " + err.Error())
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{options: options, initial: script, idBase: randomID(), era: newEra(script, options.Now)}
	s.http = &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(options.Log.Handler(), slog.LevelDebug),
		ConnState:         s.connState,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	return s
}

// randomID keeps the response ids of two servers apart.
func randomID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Serve accepts connections until Close and returns nil then, or at once when the server is closed. It may be called for several listeners, which it closes.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return l.Close()
	}
	s.serving.Add(1)
	s.mu.Unlock()
	s.setURL(l)
	defer s.serving.Done()
	if err := s.http.Serve(listener{l, s}); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve scripted provider: %w", err)
	}
	return nil
}

// setURL keeps the first address.
func (s *Server) setURL(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.url == "" {
		s.url = "http://" + l.Addr().String()
	}
}

// URL is the base URL of the first listener served, without a slash at its end; empty before.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// Close cuts everything that runs and waits until no goroutine of the server is left, or the context ends.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	e := s.era
	s.mu.Unlock()
	e.cut()
	err := s.http.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.end()
		s.serving.Wait()
	}()
	select {
	case <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("close scripted provider: %w", context.Cause(ctx))
	}
}

// connState counts the goroutines of connections, which net/http does not wait for itself.
func (s *Server) connState(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.serving.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.serving.Done()
	}
}

func (s *Server) current() *era {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.era
}

// enter returns the era that a request whose body was read belongs to, or nil when the server is closed. The caller is
// counted as running in it.
func (s *Server) enter() *era {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.era.running.Add(1)
	return s.era
}

// Handler returns the provider for another HTTP server. Connections are counted, and accept steps played, only where
// Serve accepts.
func (s *Server) Handler() http.Handler {
	control, asks := s.controlHandler(), s.askHandler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		isControl := strings.HasPrefix(r.URL.Path, controlPrefix)
		if c := connOf(r); c != nil {
			c.use(isControl)
		}
		wire := wireAt(r.URL.Path)
		_, asking := asks.Handler(r)
		switch {
		case isControl && s.options.Control != ControlOff:
			control.ServeHTTP(w, r)
		case asking != "":
			asks.ServeHTTP(w, r)
		case wire == nil:
			http.NotFound(w, r)
		default:
			s.serveWire(w, r, wire)
		}
	})
}

// serveWire reads a request and answers it.
func (s *Server) serveWire(w http.ResponseWriter, r *http.Request, wire *wire) {
	x := s.newExchange(w, wire)
	if r.Method != http.MethodPost {
		s.turnAway(w, x, http.StatusMethodNotAllowed)
		return
	}
	if body, ok := s.admit(x, r); ok {
		defer x.era.running.Done()
		s.answer(x, r, body)
	}
}

func (s *Server) newExchange(w http.ResponseWriter, wire *wire) *exchange {
	x := &exchange{wire: wire, requestID: s.nextID("req_"), ids: s.nextID, w: w, ctl: http.NewResponseController(w)}
	w.Header().Set(wire.idHeader, x.requestID)
	return x
}

// admit reads the body of a request and takes it into the era, which then waits for it.
func (s *Server) admit(x *exchange, r *http.Request) (body []byte, ok bool) {
	w := x.w
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		s.turnAway(w, x, http.StatusRequestEntityTooLarge)
		return nil, false
	}
	if err != nil {
		panic(http.ErrAbortHandler) // the client left while it was sending
	}
	if x.era = s.enter(); x.era == nil {
		s.turnAway(w, x, http.StatusServiceUnavailable)
		return nil, false
	}
	return body, true
}

// turnAway answers what is not counted as a request.
func (s *Server) turnAway(w http.ResponseWriter, x *exchange, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(x.wire.refusal(refusal{status: status, requestID: x.requestID}))
}

// answer opens the record, finds the rule and runs the exchange.
func (s *Server) answer(x *exchange, r *http.Request, body []byte) {
	e, sum := x.era, sha256.Sum256(body)
	key, bodySum := r.Header.Get("Idempotency-Key"), hex.EncodeToString(sum[:])
	x.req = x.wire.parse(body)
	if x.wire.address != nil {
		x.wire.address(r.URL, &x.req)
	}
	p, rule := e.program(), Rule{}
	if x.req.problem == "" {
		rule = p.pick(x.req, key)
	}
	x.plan = rule.Plan
	if x.req.keep != nil && x.req.keep.background {
		x.plan.OnClientGone = ClientGoneFinish
	}
	x.sink = &sink{w: x.w, ctl: x.ctl, mode: x.plan.Write}
	x.rec = e.book.request(Call{
		Wire: x.wire.name, Model: x.req.model, IdempotencyKey: key, BodySHA256: bodySum, Rule: rule.Name,
	})
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer x.freeOnCut(cancel)()
	x.ctx = ctx
	want := stored{
		at:   replayKey{sha256.Sum256([]byte(credential(r.Header))), key},
		path: r.URL.Path, body: bodySum, created: s.options.Now(),
	}
	end := EndClosed // what stays if the connection has to be cut by a panic
	defer func() { e.book.connectionOver(x.rec, end) }()
	end = x.run(func() (*generation, verdict) { return e.generate(p, x, want, s.nextID(x.wire.idKind)) })
}

// freeOnCut ends the exchange's context when the era is cut, and with it a write to a client that does not read. What it
// returns takes that back: the connection may live on, and must not carry an old deadline into its next request.
func (x *exchange) freeOnCut(cancel context.CancelFunc) (release func()) {
	freed := make(chan struct{})
	stop := context.AfterFunc(x.era.ctx, func() {
		defer close(freed)
		cancel()
		_ = x.ctl.SetWriteDeadline(time.Unix(1, 0))
	})
	return func() {
		if !stop() {
			<-freed
			_ = x.ctl.SetWriteDeadline(time.Time{})
		}
	}
}

// nextID returns an id that no other response of this process has.
func (s *Server) nextID(kind string) string {
	return fmt.Sprintf("%s%s%06d", kind, s.idBase, s.ids.Add(1))
}

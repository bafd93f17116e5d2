package clienttest

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// Server is a stand-in for turnd. Its methods are safe for concurrent use.
type Server struct {
	turnsv1.UnimplementedTurnServiceServer

	// Addr is the host and port it listens on.
	Addr string
	// Repeat is set, before the first call, to have the last answer given to all that come after it.
	Repeat bool

	mu      sync.Mutex
	answers []Answer
	calls   []*Call
	conns   map[net.Conn]struct{}
}

// Call is one call. All requests but that of the method that was called are nil.
type Call struct {
	Turn       *turnsv1.TurnRequest
	Follow     *turnsv1.FollowReplyRequest
	Cancel     *turnsv1.CancelReplyRequest
	Regenerate *turnsv1.RegenerateReplyRequest
	Select     *turnsv1.SelectReplyRequest
	GetTurn    *turnsv1.GetTurnRequest
	ListTurns  *turnsv1.ListTurnsRequest
	Header     metadata.MD
	Time       time.Time // of its arrival

	ctx      context.Context
	server   *Server
	send     func(*turnsv1.Event) error // nil if the method streams nothing
	response proto.Message
}

// Answer answers one call. What it returns is the status of the call.
type Answer func(*Call) error

// Start serves until the test is over. The answers are used one a call, in their order; a call more than that fails with
// OUT_OF_RANGE, which no client tries again.
func Start(t testing.TB, answers ...Answer) *Server {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	s := New(answers...)
	s.Addr = listener.Addr().String()
	g := grpc.NewServer(grpc.MaxSendMsgSize(16 << 20))
	turnsv1.RegisterTurnServiceServer(g, s)
	served := make(chan error, 1)
	go func() { served <- g.Serve(s.Watch(listener)) }()
	t.Cleanup(func() {
		g.Stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

// New makes a Server that others serve, on a listener of their own.
func New(answers ...Answer) *Server {
	return &Server{answers: answers, conns: map[net.Conn]struct{}{}}
}

// Watch is a listener whose connections the Server can cut.
func (s *Server) Watch(lis net.Listener) net.Listener {
	return &listenerOfConns{Listener: lis, server: s}
}

// Calls are the calls so far.
func (s *Server) Calls() []*Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Call(nil), s.calls...)
}

// Turn implements the service.
func (s *Server) Turn(req *turnsv1.TurnRequest, stream grpc.ServerStreamingServer[turnsv1.TurnResponse]) error {
	return s.answer(&Call{Turn: req, ctx: stream.Context(),
		send: func(e *turnsv1.Event) error { return stream.Send(&turnsv1.TurnResponse{Event: e}) }})
}

// FollowReply implements the service.
func (s *Server) FollowReply(req *turnsv1.FollowReplyRequest, stream grpc.ServerStreamingServer[turnsv1.FollowReplyResponse]) error {
	return s.answer(&Call{Follow: req, ctx: stream.Context(),
		send: func(e *turnsv1.Event) error { return stream.Send(&turnsv1.FollowReplyResponse{Event: e}) }})
}

// CancelReply implements the service.
func (s *Server) CancelReply(ctx context.Context, req *turnsv1.CancelReplyRequest) (*turnsv1.CancelReplyResponse, error) {
	return respond[*turnsv1.CancelReplyResponse](s, &Call{Cancel: req, ctx: ctx})
}

// RegenerateReply implements the service.
func (s *Server) RegenerateReply(ctx context.Context, req *turnsv1.RegenerateReplyRequest) (*turnsv1.RegenerateReplyResponse, error) {
	return respond[*turnsv1.RegenerateReplyResponse](s, &Call{Regenerate: req, ctx: ctx})
}

// SelectReply implements the service.
func (s *Server) SelectReply(ctx context.Context, req *turnsv1.SelectReplyRequest) (*turnsv1.SelectReplyResponse, error) {
	return respond[*turnsv1.SelectReplyResponse](s, &Call{Select: req, ctx: ctx})
}

// GetTurn implements the service.
func (s *Server) GetTurn(ctx context.Context, req *turnsv1.GetTurnRequest) (*turnsv1.GetTurnResponse, error) {
	return respond[*turnsv1.GetTurnResponse](s, &Call{GetTurn: req, ctx: ctx})
}

// ListTurns implements the service.
func (s *Server) ListTurns(ctx context.Context, req *turnsv1.ListTurnsRequest) (*turnsv1.ListTurnsResponse, error) {
	return respond[*turnsv1.ListTurnsResponse](s, &Call{ListTurns: req, ctx: ctx})
}

// respond answers a call that streams nothing.
func respond[M proto.Message](s *Server, c *Call) (response M, err error) {
	if err := s.answer(c); err != nil {
		return response, err
	}
	response, ok := c.response.(M)
	if !ok {
		return response, status.Errorf(codes.OutOfRange, "a call came that wants %T for an answer, and another was to be given", response)
	}
	return response, nil
}

func (s *Server) answer(c *Call) error {
	c.server, c.Time = s, time.Now()
	c.Header, _ = metadata.FromIncomingContext(c.ctx)
	s.mu.Lock()
	n := len(s.calls)
	s.calls = append(s.calls, c)
	s.mu.Unlock()
	if s.Repeat {
		n = min(n, len(s.answers)-1)
	}
	if n >= len(s.answers) {
		return status.Errorf(codes.OutOfRange, "call %d came, and %d were expected", n+1, len(s.answers))
	}
	return s.answers[n](c)
}

// Done is closed when the caller of the call is gone.
func (c *Call) Done() <-chan struct{} { return c.ctx.Done() }

// Send streams events.
func (c *Call) Send(events ...*turnsv1.Event) error {
	if c.send == nil && len(events) > 0 {
		return status.Error(codes.OutOfRange, "a call came that streams nothing, and one that does was expected")
	}
	for _, e := range events {
		if err := c.send(e); err != nil {
			return err
		}
	}
	return nil
}

// Cut closes all connections, as a network does that fails.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		_ = conn.Close()
	}
	clear(s.conns)
}

// listenerOfConns notes the connections that it accepts.
type listenerOfConns struct {
	net.Listener
	server *Server
}

// Accept implements net.Listener.
func (l *listenerOfConns) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.server.mu.Lock()
		l.server.conns[conn] = struct{}{}
		l.server.mu.Unlock()
	}
	return conn, err
}

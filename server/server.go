package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/stats"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server/auth"
)

// Config is what a Server is made of. Service and Follower are required; the zero value of every other field takes the
// default that its comment gives.
type Config struct {
	Service  Service
	Follower Follower
	// Logger gets what is not meant for clients. Default: nothing is logged.
	Logger *slog.Logger
	// Auth is how callers prove who they are: "none" (default), or modes with commas between them, as AuthModes reads them.
	Auth string
	// Authenticator finds out who calls. It goes with every mode but "none", by which callers are who they say.
	Authenticator auth.Authenticator
	// Recheck is how often it is asked again about whoever has a stream open, which ends once its key or token is no good
	// any more: 10 s.
	Recheck time.Duration
	// MaxContentBytes bounds the content of a user turn, and apart from it its options: 4 MiB.
	MaxContentBytes int
	// MaxRecvBytes bounds a message on its way in: 16 MiB. It is above MaxContentBytes so that content which is somewhat
	// too large gets an error that says so.
	MaxRecvBytes int
	// Grace is how long calls may go on after the context of Serve has ended: 30 s.
	Grace time.Duration
	// TLS is how the listeners are served; GetConfigForClient may renew certificates. What is spoken inside, the server
	// offers itself. A certificate that a client shows is in the peer of its calls, and says nothing about who calls.
	// Default: in the clear.
	TLS *tls.Config
	// SniffTimeout is how long a new connection may take to show its protocol, with the handshake of TLS before, and an
	// HTTP request its header: 5 s.
	SniffTimeout time.Duration
	// ArrivalTime is how long the request of a call may take to arrive, from its header on: 30 s. A call whose request does
	// not is ended as CANCELLED.
	ArrivalTime time.Duration
	// MaxConnections bounds open connections on a listener; further ones wait in the kernel's queue: 8192. A quarter of
	// them can be such that have not shown their protocol; with one more, the longest silent is closed.
	MaxConnections int
	// MaxStreams bounds the calls under way on one connection: 1024.
	MaxStreams uint32
	// WriteTime is how long a client of the web may take for the next 64 KiB of what it is sent: a minute. One that takes
	// nothing for longer is cut off, and goes on from its cursor.
	WriteTime time.Duration
	// CORSOrigins are the origins, as CheckOrigins has them, whose pages may call from a browser besides those of this server.
	CORSOrigins []string
	// Readiness is what health follows, as long as no drain is under way. Default: the server is ready as long as it serves.
	Readiness *Readiness
	// Stats is told of each call of turnd's own methods, in whichever way it came, to measure and trace it. Default: nobody is.
	Stats stats.Handler
	// Console answers what by HTTP is neither a call nor an event stream: "/" and static files. Default: a page that says what
	// is served here.
	Console http.Handler
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Console == nil {
		c.Console = http.HandlerFunc(webNotice)
	}
	orDefault(&c.MaxContentBytes, 4<<20)
	orDefault(&c.MaxRecvBytes, 16<<20)
	orDefault(&c.Grace, 30*time.Second)
	orDefault(&c.Recheck, 10*time.Second)
	orDefault(&c.SniffTimeout, 5*time.Second)
	orDefault(&c.ArrivalTime, 30*time.Second)
	orDefault(&c.WriteTime, time.Minute)
	orDefault(&c.MaxConnections, 8192)
	orDefault(&c.MaxStreams, 1024)
	return c
}

func orDefault[T comparable](v *T, d T) {
	var unset T
	if *v == unset {
		*v = d
	}
}

// Server serves turnd's wire. Make it by New; it serves once.
type Server struct {
	cfg  Config
	gate *gate
	grpc *grpc.Server
	// bridge serves what the web speaks, by the same gate. It is another server than grpc, since a graceful stop of that one
	// would cut off what came in by net/http.
	bridge *grpc.Server
	web    *http.Server
	// webRuns is held for reading by each request of the web.
	webRuns sync.RWMutex
	health  *health.Server
	calls   *calls
	// streams are open under a key or token.
	streams *streams
	// late is done when a drain is to end although its grace may not be over.
	late   context.Context
	beLate context.CancelFunc
}

// The handlers of the services, one method a file. The embedded stubs are what gRPC asks for; no method is left to them.
type (
	turnService struct {
		turnsv1.UnimplementedTurnServiceServer
		*Server
	}
	conversationService struct {
		turnsv1.UnimplementedConversationServiceServer
		*Server
	}
	// operatorService acts in the tenant of its caller: a key of the scope for operators is one of its tenant's. Only workers
	// are of no tenant. Where nobody proves who he is, which is on loopback alone, everybody is an operator of the tenant
	// that he names.
	operatorService struct {
		turnsv1.UnimplementedOperatorServiceServer
		*Server
	}
)

// New makes a server that is not yet serving. It fails if the rules of the wire can't be compiled, or Auth and Authenticator
// don't go together.
func New(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if cfg.Service == nil || cfg.Follower == nil {
		return nil, errors.New("server needs a Service and a Follower")
	}
	modes, err := AuthModes(cfg.Auth)
	if err != nil {
		return nil, err
	}
	if err := CheckOrigins(cfg.Auth, cfg.CORSOrigins); err != nil {
		return nil, err
	}
	if slices.Contains(modes, AuthNone) != (cfg.Authenticator == nil) {
		return nil, errors.New("an Authenticator goes with every mode of auth but none")
	}
	rules, err := newValidator()
	if err != nil {
		return nil, err
	}
	if cfg.TLS != nil {
		cfg.TLS = offering(cfg.TLS)
	}
	s := &Server{cfg: cfg, health: health.NewServer(), calls: newCalls(), streams: newStreams(cfg.Authenticator, cfg.Recheck)}
	s.late, s.beLate = context.WithCancel(context.Background())
	s.gate = &gate{mapper: mapper{cfg.Logger}, codec: newCodec(), validate: rules, who: cfg.Authenticator, calls: s.calls,
		streams: s.streams}
	s.bridge = s.newGRPC()
	if s.web, err = s.newWeb(); err != nil {
		return nil, err
	}
	if err := checkScopes(s.bridge.GetServiceInfo()); err != nil {
		return nil, err
	}
	s.setServing(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	return s, nil
}

// newGRPC makes a server of all services.
func (s *Server) newGRPC(more ...grpc.ServerOption) *grpc.Server {
	g := grpc.NewServer(append(s.options(s.gate), more...)...)
	turnsv1.RegisterTurnServiceServer(g, turnService{Server: s})
	turnsv1.RegisterConversationServiceServer(g, conversationService{Server: s})
	turnsv1.RegisterOperatorServiceServer(g, operatorService{Server: s})
	grpc_health_v1.RegisterHealthServer(g, s.health)
	reflection.Register(g)
	return g
}

// streamWorkers is how many goroutines are kept for calls. A call in one of them finds a stack that has grown already, where a new
// one's grows several times over; what comes while all are busy gets one of its own.
const streamWorkers = 64

// options bound what one client can hold: message and header sizes, calls on a connection, silence, pings. A dead peer
// is noticed within Time and Timeout together, so a follower whose machine went away does not stay for hours.
func (s *Server) options(g *gate) []grpc.ServerOption {
	opts := []grpc.ServerOption{
		grpc.InTapHandle(arrivals{s.cfg.ArrivalTime}.begin),
		grpc.UnaryInterceptor(g.unary),
		grpc.StreamInterceptor(g.stream),
		grpc.UnknownServiceHandler(unknownMethod),
		grpc.ForceServerCodecV2(g.codec),
		grpc.MaxRecvMsgSize(s.cfg.MaxRecvBytes),
		grpc.MaxConcurrentStreams(s.cfg.MaxStreams),
		grpc.MaxHeaderListSize(32 << 10),
		grpc.ConnectionTimeout(s.cfg.SniffTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		// Without it Stop would return while handlers still use what the caller of Serve closes next.
		grpc.WaitForHandlers(true),
	}
	if s.cfg.TLS != nil {
		opts = append(opts, grpc.Creds(finishedTLS{}))
	}
	if s.cfg.Stats != nil {
		opts = append(opts, grpc.StatsHandler(counted{s.cfg.Stats}))
	}
	return opts
}

// Serve serves on a listener, which it closes, until ctx ends, and then drains: health says NOT_SERVING, nothing new is
// accepted, and running calls end by themselves within the grace; what still runs then is ended with a status that says
// that the server is shutting down. It returns when everything that it started has ended: nil after a drain, an error if
// a listener failed or may not be used with Auth.
//
// Further listeners serve the web alone, and need TLS: there a browser agrees on HTTP/2, which is gRPC on the first one.
func (s *Server) Serve(ctx context.Context, lis net.Listener, web ...net.Listener) error {
	all := append([]net.Listener{lis}, web...)
	if err := s.checkListeners(all); err != nil {
		return err
	}
	s.grpc = s.newGRPC(grpc.NumStreamWorkers(streamWorkers)) // they run from here on, until it is stopped
	splits := make([]*splitter, len(all))
	group, failed := errgroup.WithContext(ctx)
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error { return s.streams.run(watching) })
	if s.cfg.Readiness == nil {
		s.setServing(grpc_health_v1.HealthCheckResponse_SERVING)
	} else {
		group.Go(func() error {
			s.keepHealth(watching)
			return nil
		})
	}
	for i, l := range all {
		split := s.newSplitter(l, i > 0)
		splits[i] = split
		group.Go(split.run)
		group.Go(func() error { return unless(s.web.Serve(split.web), http.ErrServerClosed) })
	}
	group.Go(func() error { return unless(s.grpc.Serve(splits[0].grpc), grpc.ErrServerStopped) })
	group.Go(func() error {
		<-failed.Done()
		defer stopWatching()
		s.drain(splits)
		return nil
	})
	if err := group.Wait(); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// checkListeners closes the listeners if one of them may not be used. Addresses are checked again here, resolved: a name
// such as localhost could stand for anything.
func (s *Server) checkListeners(all []net.Listener) (err error) {
	if len(all) > 1 && s.cfg.TLS == nil {
		err = errors.New("a listener for the web alone needs TLS")
	}
	for _, l := range all {
		if addr, ok := l.Addr().(*net.TCPAddr); ok {
			err = errors.Join(err, CheckAuth(s.cfg.Auth, addr.String()))
		}
	}
	if err != nil {
		for _, l := range all {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}

// newSplitter splits a listener, or leaves it to the web alone.
func (s *Server) newSplitter(lis net.Listener, webAlone bool) *splitter {
	split := newSplitter(lis, s.cfg.MaxConnections, s.cfg.SniffTimeout)
	split.tls, split.log = s.cfg.TLS, s.cfg.Logger
	if webAlone {
		split.grpc = nil
	}
	return split
}

// Hurry lets a drain, under way or to come, go on for no longer than a time from now.
func (s *Server) Hurry(within time.Duration) { time.AfterFunc(within, s.beLate) }

// unless is err, if it is not the one that only tells of a stop.
func unless(err, stop error) error {
	if errors.Is(err, stop) {
		return nil
	}
	return err
}

// drain ends everything. GracefulStop tells clients to go elsewhere at once and returns when the last call has ended, which a
// health watch never does by itself, and Shutdown waits for requests in the same way; so our own calls, in whichever way they
// came, are waited for here, and then the rest is cut.
func (s *Server) drain(splits []*splitter) {
	s.health.Shutdown()
	for _, split := range splits {
		split.close()
	}
	grace, cancel := context.WithTimeout(s.late, s.cfg.Grace)
	defer cancel()
	var stops sync.WaitGroup
	last, hangUp := context.WithCancel(context.Background())
	defer hangUp()
	stops.Go(func() { s.stopWeb(last) })
	stops.Go(func() { s.stopGRPC(last) })
	select {
	case <-s.calls.drained():
	case <-grace.Done():
		s.cfg.Logger.Warn("grace is over; calls still running are cut off")
	}
	s.calls.cutAll()
	defer time.AfterFunc(lastWords, hangUp).Stop()
	stops.Wait()
}

// stopGRPC returns when no call of gRPC runs any more. A reader that takes nothing holds its stream open until last ends.
func (s *Server) stopGRPC(last context.Context) {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.grpc.GracefulStop()
	}()
	select {
	case <-stopped:
	case <-last.Done():
		s.grpc.Stop()
		<-stopped
	}
}

// stopWeb returns when nothing runs any more that came by HTTP.
func (s *Server) stopWeb(last context.Context) {
	if s.web.Shutdown(last) != nil {
		_ = s.web.Close()
	}
	s.bridge.Stop()
	s.webRuns.Lock() // for good: who comes now is too late
}

// lastWords is how long a call that was cut off has to send its status.
const lastWords = time.Second

package badlink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/vanguard"
	"google.golang.org/grpc"

	"github.com/turnd/turnd/client/clienttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// Stage plays one scenario on loopback. Its methods are safe for concurrent use.
type Stage struct {
	// Addr is the host and port that it speaks gRPC and Connect on. It stays the same while the server is down.
	Addr string

	scenario Scenario
	calls    *clienttest.Server
	bridge   *grpc.Server
	handler  http.Handler

	mu     sync.Mutex
	server *http.Server // nil while down
	served sync.WaitGroup
}

// Open makes a stage, which the caller closes.
func Open(ctx context.Context, scenario Scenario) (*Stage, error) {
	s := &Stage{scenario: scenario, bridge: grpc.NewServer()}
	answers := make([]clienttest.Answer, 0, len(scenario.Calls))
	for _, call := range scenario.Calls {
		answers = append(answers, s.answer(call))
	}
	s.calls = clienttest.New(answers...)
	s.calls.Repeat = scenario.Repeat
	turnsv1.RegisterTurnServiceServer(s.bridge, s.calls)
	services := []*vanguard.Service{vanguard.NewService(turnsv1.TurnService_ServiceDesc.ServiceName, s.bridge)}
	handler, err := vanguard.NewTranscoder(services, vanguard.WithDefaultServiceOptions(
		vanguard.WithTargetProtocols(vanguard.ProtocolGRPC), vanguard.WithTargetCodecs(vanguard.CodecProto)))
	if err != nil {
		return nil, fmt.Errorf("open a stage: %w", err)
	}
	s.handler = handler
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a stage: %w", err)
	}
	s.Addr = lis.Addr().String()
	if scenario.Down {
		return s, lis.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serve(lis)
	return s, nil
}

// serve brings a server up. The caller holds mu.
func (s *Stage) serve(lis net.Listener) {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: s.handler, Protocols: protocols, ReadHeaderTimeout: 10 * time.Second}
	s.server = server
	s.served.Go(func() { _ = server.Serve(s.calls.Watch(lis)) })
}

// Up brings the server back if it is down. A client that has noticed that it is calls this, so that no time has to be chosen.
func (s *Stage) Up(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return nil
	}
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Addr)
	if err != nil {
		return fmt.Errorf("bring the stage back: %w", err)
	}
	s.serve(lis)
	return nil
}

func (s *Stage) goDown() {
	s.mu.Lock()
	server := s.server
	s.server = nil
	s.mu.Unlock()
	if server != nil {
		_ = server.Close()
	}
	s.calls.Cut()
}

// Close ends the stage and waits for its calls.
func (s *Stage) Close() error {
	s.goDown()
	s.bridge.Stop()
	s.served.Wait()
	return nil
}

// Reported is one call that came.
type Reported struct {
	TurnID string `json:"turn_id"`
	Source string `json:"source,omitempty"`
	// ReplyID and Offset are the cursor; ReplyID is empty for none.
	ReplyID string `json:"reply_id"`
	Offset  uint32 `json:"offset"`
	// AtMS is when it came, in milliseconds since the first.
	AtMS int64 `json:"at_ms"`
}

// Report lists the calls that came.
func (s *Stage) Report() []Reported {
	calls := s.calls.Calls()
	out := make([]Reported, len(calls))
	for i, c := range calls {
		out[i] = Reported{AtMS: c.Time.Sub(calls[0].Time).Milliseconds()}
		switch {
		case c.Turn != nil:
			out[i].TurnID = c.Turn.GetInput().GetTurnId()
			out[i].Source = c.Turn.GetInput().GetSource().String()
			out[i].ReplyID, out[i].Offset = c.Turn.GetCursor().GetReplyId(), c.Turn.GetCursor().GetOffset()
		case c.Follow != nil:
			out[i].ReplyID, out[i].Offset = c.Follow.GetReplyId(), c.Follow.GetOffset()
		}
	}
	return out
}

var errNoScenario = errors.New("there is no such scenario")

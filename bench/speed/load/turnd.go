package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// Ask is what each turn says: 200 bytes.
var Ask = strings.Repeat("where is my parcel? ", 10)

// kept is how many finished turns are there to be replayed.
const kept = 512

// service is a client of the service that is measured: the generated stub, with nothing between it and the figures.
type service struct {
	stub  turnsv1.TurnServiceClient
	bytes int    // of a reply
	end   uint32 // where the log of a reply ends; learned at the start
	done  []*turnsv1.TurnInput
}

func newInput() *turnsv1.TurnInput {
	return &turnsv1.TurnInput{
		ConversationId: uuid.NewString(), TurnId: uuid.NewString(),
		Content: []*turnsv1.Block{{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: Ask}}}},
	}
}

// turn sends a turn and follows its reply to the end in the same call.
func (s *service) turn(ctx context.Context) (time.Time, error) { return s.follow(ctx, newInput()) }

// replay sends one of the turns that are finished once more.
func (s *service) replay(ctx context.Context) (time.Time, error) {
	return s.follow(ctx, s.done[rand.IntN(len(s.done))]) //nolint:gosec // which one it is is no secret
}

func (s *service) follow(ctx context.Context, in *turnsv1.TurnInput) (time.Time, error) {
	first, _, err := s.read(ctx, in)
	return first, err
}

// read is follow that tells where the log ended.
func (s *service) read(ctx context.Context, in *turnsv1.TurnInput) (first time.Time, end uint32, err error) {
	stream, err := s.stub.Turn(ctx, &turnsv1.TurnRequest{Input: in})
	if err != nil {
		return first, 0, err
	}
	n := 0
	end, err = drain(func() (*turnsv1.Event, error) {
		msg, err := stream.Recv()
		return msg.GetEvent(), err
	}, func(d *turnsv1.Delta) {
		if n == 0 {
			first = time.Now()
		}
		n += len(d.GetText())
	})
	if err == nil {
		err = sized(n, s.bytes)
	}
	return first, end, err
}

// submit sends a turn, and follows its reply from the end: what comes is that it is complete.
func (s *service) submit(ctx context.Context) (none time.Time, err error) {
	in := newInput()
	sub, err := s.stub.SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: in})
	if err != nil {
		return none, err
	}
	stream, err := s.stub.FollowReply(ctx, &turnsv1.FollowReplyRequest{
		ConversationId: in.GetConversationId(), Offset: s.end,
		Target: &turnsv1.FollowReplyRequest_ReplyId{ReplyId: sub.GetReply().GetReplyId()},
	})
	if err != nil {
		return none, err
	}
	end, err := drain(func() (*turnsv1.Event, error) {
		msg, err := stream.Recv()
		return msg.GetEvent(), err
	}, func(*turnsv1.Delta) {})
	if err == nil {
		err = sized(int(end), int(s.end))
	}
	return none, err
}

// drain reads a stream to its end, which must be a complete reply, and returns where its log ends.
func drain(next func() (*turnsv1.Event, error), delta func(*turnsv1.Delta)) (end uint32, err error) {
	completed := false
	for {
		ev, err := next()
		if errors.Is(err, io.EOF) && completed {
			return end, nil
		}
		if err != nil {
			return 0, err
		}
		switch kind := ev.GetKind().(type) {
		case *turnsv1.Event_Delta:
			delta(kind.Delta)
		case *turnsv1.Event_Completed:
			completed, end = true, ev.GetNextOffset()
		case *turnsv1.Event_Abandoned, *turnsv1.Event_Held, *turnsv1.Event_Restarted:
			return 0, fmt.Errorf("a reply was not completed: %v", ev)
		}
	}
}

// prepare makes some turns first: those that are replayed, or one that tells where a log ends.
func (s *service) prepare(ctx context.Context, n int) error {
	for range n {
		in := newInput()
		_, end, err := s.read(ctx, in)
		if err != nil {
			return fmt.Errorf("a turn before the load: %w", err)
		}
		s.done, s.end = append(s.done, in), end
	}
	return nil
}

// serviceClients makes one service a connection, and shares them among the clients.
func serviceClients(ctx context.Context, spec Spec, conns []*grpc.ClientConn) ([]client, error) {
	services := make([]*service, len(conns))
	for i, conn := range conns {
		s := &service{stub: turnsv1.NewTurnServiceClient(conn), bytes: spec.Deltas * PieceBytes}
		n := 1
		if spec.Shape == Replay {
			n = kept
		}
		if i > 0 {
			n = 0
			s.done, s.end = services[0].done, services[0].end
		}
		if err := s.prepare(ctx, n); err != nil {
			return nil, err
		}
		services[i] = s
	}
	return each(spec.Clients, func(i int) client {
		s := services[i%len(services)]
		switch spec.Shape {
		case Submit:
			return s.submit
		case Replay:
			return s.replay
		default:
			return s.turn
		}
	}), nil
}

func each(n int, one func(int) client) []client {
	var all []client
	for i := range n {
		all = append(all, one(i))
	}
	return all
}

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
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// Ask is what each turn says: 200 bytes.
var Ask = strings.Repeat("where is my parcel? ", 10)

const (
	kept      = 256 // finished turns that are there to be replayed
	preparing = 32  // of them, made at once
)

// service is a client of the service that is measured: the generated stub, with nothing between it and the figures.
type service struct {
	stub  turnsv1.TurnServiceClient
	bytes int // of a reply
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

func (s *service) follow(ctx context.Context, in *turnsv1.TurnInput) (first time.Time, err error) {
	stream, err := s.stub.Turn(ctx, &turnsv1.TurnRequest{Input: in})
	if err != nil {
		return first, err
	}
	n := 0
	err = drain(func() (*turnsv1.Event, error) {
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
	return first, err
}

// submit sends a turn, and then follows its reply from its end, which is where it had come to when the turn was taken: what comes
// at once is the rest, and that it is complete.
func (s *service) submit(ctx context.Context) (none time.Time, err error) {
	in := newInput()
	sub, err := s.stub.SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: in})
	if err != nil {
		return none, err
	}
	return none, s.finish(ctx, in, sub)
}

// finish follows a reply that was submitted to its end.
func (s *service) finish(ctx context.Context, in *turnsv1.TurnInput, sub *turnsv1.SubmitTurnResponse) error {
	stream, err := s.stub.FollowReply(ctx, &turnsv1.FollowReplyRequest{
		ConversationId: in.GetConversationId(), Offset: sub.GetReply().GetLength(),
		Target: &turnsv1.FollowReplyRequest_ReplyId{ReplyId: sub.GetReply().GetReplyId()},
	})
	if err != nil {
		return err
	}
	n := int(sub.GetReply().GetLength())
	err = drain(func() (*turnsv1.Event, error) {
		msg, err := stream.Recv()
		return msg.GetEvent(), err
	}, func(d *turnsv1.Delta) { n += len(d.GetText()) })
	if err == nil {
		err = sized(n, s.bytes)
	}
	return err
}

// drain reads a stream to its end, which must be a complete reply.
func drain(next func() (*turnsv1.Event, error), delta func(*turnsv1.Delta)) error {
	completed := false
	for {
		ev, err := next()
		if errors.Is(err, io.EOF) && completed {
			return nil
		}
		if err != nil {
			return err
		}
		switch kind := ev.GetKind().(type) {
		case *turnsv1.Event_Delta:
			delta(kind.Delta)
		case *turnsv1.Event_Completed:
			completed = true
		case *turnsv1.Event_Abandoned, *turnsv1.Event_Held, *turnsv1.Event_Restarted:
			return fmt.Errorf("a reply was not completed: %v", ev)
		}
	}
}

// prepare makes the turns that are to be replayed.
func (s *service) prepare(ctx context.Context) error {
	s.done = make([]*turnsv1.TurnInput, kept)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(preparing)
	for i := range s.done {
		s.done[i] = newInput()
		group.Go(func() error {
			_, err := s.follow(ctx, s.done[i])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("a turn before the load: %w", err)
	}
	return nil
}

// serviceClients makes one service a connection, and shares them among the clients.
func serviceClients(ctx context.Context, spec Spec, conns []*grpc.ClientConn) ([]client, error) {
	services := make([]*service, len(conns))
	for i, conn := range conns {
		s := &service{stub: turnsv1.NewTurnServiceClient(conn), bytes: spec.Deltas * PieceBytes}
		services[i] = s
		if i > 0 {
			s.done = services[0].done
		} else if spec.Shape == Replay {
			if err := s.prepare(ctx); err != nil {
				return nil, err
			}
		}
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

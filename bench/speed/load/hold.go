package load

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/turnd/turnd/bench/speed/floor"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// opening is how many streams are opened at once.
const opening = 128

// Hold opens as many streams as there are clients, each of a reply of its own that has begun and goes no further, and keeps them
// open until the context ends. It tells when all are open.
func Hold(ctx context.Context, spec Spec, opened func() error) error {
	conns, end, err := dial(spec)
	if err != nil {
		return err
	}
	defer end()
	open := openTurn
	if spec.Shape == Relay {
		open = openRelay
	}
	streams, cancel := context.WithCancel(ctx) // the group's own ends with its last opening
	defer cancel()
	group, _ := errgroup.WithContext(ctx)
	group.SetLimit(opening)
	for i := range spec.Clients {
		group.Go(func() error { return open(streams, conns[i%len(conns)]) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := opened(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func openTurn(ctx context.Context, conn *grpc.ClientConn) error {
	stream, err := turnsv1.NewTurnServiceClient(conn).Turn(ctx, &turnsv1.TurnRequest{Input: newInput()})
	if err != nil {
		return err
	}
	for {
		msg, err := stream.Recv()
		if err != nil {
			return err
		}
		switch msg.GetEvent().GetKind().(type) {
		case *turnsv1.Event_Delta:
			return nil
		case *turnsv1.Event_Completed, *turnsv1.Event_Abandoned:
			return errors.New("a reply that was to be held is over")
		}
	}
}

func openRelay(ctx context.Context, conn *grpc.ClientConn) error {
	stream, err := conn.NewStream(ctx, &floor.RelayStream, floor.MethodRelay)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(wrapperspb.String(Ask)); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	return stream.RecvMsg(new(wrapperspb.StringValue))
}

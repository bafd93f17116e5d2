package server

import (
	"context"

	"google.golang.org/grpc"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// Turn takes a user turn and streams its reply. Until accepted is sent a failure is a status; from then on what becomes
// of the reply is an event, and a status only says that the stream was lost.
func (t turnService) Turn(req *turnsv1.TurnRequest, stream grpc.ServerStreamingServer[turnsv1.TurnResponse]) error {
	ctx := stream.Context()
	sub, err := t.submit(ctx, req)
	if err != nil {
		return err
	}
	send := func(e *turnsv1.Event) error { return stream.Send(&turnsv1.TurnResponse{Event: e}) }
	accept := func() error {
		if err := send(acceptedToWire(*sub)); err != nil || sub.Restarted == nil {
			return err
		}
		restarted := &emitter{send: send, reply: sub.Reply.ID, at: sub.Offset}
		return restarted.write(restartedToWire(*sub.Restarted), 0)
	}
	var ended func(turns.Reply)
	if saves := sub.Saves; saves != "" { // the submission itself is not kept for as long as the stream goes on
		ended = func(reply turns.Reply) { t.cfg.Service.FollowedToEnd(ctx, saves, reply) }
	}
	return t.follow(ctx, sub.Key, sub.Turn.ID, &sub.Reply, sub.Offset, accept, send, ended)
}

// submit hands over what was sent. It is apart from Turn, on whose stack there would be its room for as long as the stream
// goes on.
func (t turnService) submit(ctx context.Context, req *turnsv1.TurnRequest) (*turns.Submission, error) {
	delivery, err := deliveryFromWire(ctx, req.GetInput(), req.GetCursor(), t.cfg.MaxContentBytes)
	if err != nil {
		return nil, err
	}
	sub, err := t.cfg.Service.Submit(ctx, callerOf(ctx), delivery)
	return &sub, err
}

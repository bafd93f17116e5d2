package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// Send prepares a turn: it mints the turn_id if there is none and writes the record. It returns before anything is sent;
// the Stream's Events do that. The input is not changed and may be changed afterwards.
//
// A turn that was in flight before goes on at the server, but the record is now the new turn's.
func (c *Client) Send(ctx context.Context, in *turnsv1.TurnInput) (*Stream, error) {
	if in == nil {
		return nil, errors.New("send a turn: there is none")
	}
	in = proto.CloneOf(in)
	if err := identify(in); err != nil {
		return nil, fmt.Errorf("send a turn: %w", err)
	}
	record, err := newRecord(in, c.opt.Now())
	if err != nil {
		return nil, fmt.Errorf("send a turn: %w", err)
	}
	if err := c.slot.begin(ctx, record); err != nil {
		return nil, fmt.Errorf("record turn %s before it is sent: %w", in.GetTurnId(), err)
	}
	return c.turnStream(in, record, NewReply("", 0)), nil
}

// identify gives a turn its id, or checks the one it has.
func identify(in *turnsv1.TurnInput) error {
	if in.GetTurnId() == "" {
		id, err := newTurnID()
		in.TurnId = id
		return err
	}
	id, err := uuid.Parse(in.GetTurnId())
	if err != nil || !strings.EqualFold(id.String(), in.GetTurnId()) {
		return errors.New("turn_id is no UUID; derive one by TurnIDFor from an id of another form")
	}
	in.TurnId = id.String()
	return nil
}

// From says where a resumed reply is read from.
type From int

const (
	// FromCursor goes on after the last event that the earlier Stream handed out, for a caller that still shows the rest.
	FromCursor From = iota
	// FromStart reads the reply from its beginning, for a caller that shows nothing yet.
	FromStart
)

// Resume goes on with the turn that the record holds: the same id, the same input. It is ErrNoRecord if there is none,
// or if it was corrupt or older than an hour.
//
// If the reply has failed meanwhile in a way that another attempt may cure, then resuming makes that attempt.
func (c *Client) Resume(ctx context.Context, from From) (*Stream, error) {
	record, in, err := c.slot.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("resume the turn in flight: %w", err)
	}
	if record == nil {
		return nil, ErrNoRecord
	}
	offset := record.Offset
	if from == FromStart {
		offset = 0
	}
	s := c.turnStream(in, record, NewReply(record.ReplyID, offset))
	s.sent = true // an earlier process has sent it, or nearly
	return s, nil
}

func (c *Client) turnStream(in *turnsv1.TurnInput, record *Record, reply *Reply) *Stream {
	s := &Stream{client: c, input: in, record: record, reply: reply, conversation: record.ConversationID}
	s.open = s.openTurn
	return s
}

// openTurn makes one delivery of the turn. All deliveries carry the same input; only the source differs, which is not part
// of it.
func (s *Stream) openTurn(ctx context.Context) (receive, error) {
	in := s.input
	if s.sent && in.GetSource() == turnsv1.DeliverySource_DELIVERY_SOURCE_UNSPECIFIED {
		in = proto.CloneOf(in)
		in.Source = turnsv1.DeliverySource_DELIVERY_SOURCE_CLIENT_RETRY
	}
	s.sent = true
	stream, err := s.client.rpc.Turn(ctx, &turnsv1.TurnRequest{Input: in, Cursor: s.reply.Cursor()}, grpc.MaxCallRecvMsgSize(maxReceive))
	if err != nil {
		return nil, err
	}
	return receiveFrom(stream), nil
}

// Follow reads a reply from an offset of its log, without sending anything that could make another attempt. Either the
// reply's id or the turn's has to be given; of a turn the latest reply is followed. Nothing is recorded.
func (c *Client) Follow(conversation string, target Target, offset uint32) *Stream {
	s := &Stream{client: c, reply: NewReply(target.ReplyID, offset), conversation: conversation}
	s.open = func(ctx context.Context) (receive, error) {
		req := &turnsv1.FollowReplyRequest{ConversationId: conversation, Offset: s.reply.next}
		req.Target = &turnsv1.FollowReplyRequest_TurnId{TurnId: target.TurnID}
		if id := s.reply.ID(); id != "" {
			req.Target = &turnsv1.FollowReplyRequest_ReplyId{ReplyId: id}
		}
		stream, err := c.rpc.FollowReply(ctx, req, grpc.MaxCallRecvMsgSize(maxReceive))
		if err != nil {
			return nil, err
		}
		return receiveFrom(stream), nil
	}
	return s
}

// Target names a reply: by its own id if there is one, else as the latest to a turn.
type Target struct {
	ReplyID string
	TurnID  string
}

// receive waits for the next event of one connection.
type receive func() (*turnsv1.Event, error)

func receiveFrom[M interface{ GetEvent() *turnsv1.Event }](stream interface{ Recv() (M, error) }) receive {
	return func() (*turnsv1.Event, error) {
		message, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		return message.GetEvent(), nil
	}
}

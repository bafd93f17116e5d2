package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// recent is how many finished turns are known to those that send one again.
const recent = 256

// mixed is a client of a steady load of all kinds.
type mixed struct {
	service
	rest time.Duration
	past *ring
	long uuid.UUID // the conversation that goes on and on
}

// mixKinds are what the clients of a mix do, client by client in this order.
var mixKinds = []struct {
	name string
	do   func(*mixed, context.Context) error
}{
	{"streamed", (*mixed).streamed},
	{"submitted", (*mixed).submitted},
	{"streamed", (*mixed).streamed},
	{"submitted", (*mixed).submitted},
	{"replayed", (*mixed).replayed},
	{"cancelled", (*mixed).cancelled},
	{"left", (*mixed).left},
	{"long", (*mixed).goesOn},
}

// mixClients are clients of which each rests after each of its turns, so that the load is the same whatever the machine does.
func mixClients(spec Spec, conns []*grpc.ClientConn) []client {
	past := &ring{}
	return each(spec.Clients, func(i int) client {
		m := &mixed{
			service: service{stub: turnsv1.NewTurnServiceClient(conns[i%len(conns)]), bytes: spec.Deltas * PieceBytes},
			rest:    spec.Rest, past: past, long: uuid.New(),
		}
		kind := mixKinds[i%len(mixKinds)]
		return func(ctx context.Context) (none time.Time, err error) {
			if err := kind.do(m, ctx); err != nil {
				return none, fmt.Errorf("%s: %w", kind.name, err)
			}
			return none, pause(ctx, m.rest, nil)
		}
	})
}

func (m *mixed) streamed(ctx context.Context) error {
	in := newInput()
	_, err := m.follow(ctx, in)
	if err == nil {
		m.past.put(in)
	}
	return err
}

func (m *mixed) submitted(ctx context.Context) error {
	_, err := m.submit(ctx)
	return err
}

// replayed sends a turn again that somebody has finished.
func (m *mixed) replayed(ctx context.Context) error {
	in := m.past.get()
	if in == nil {
		return nil
	}
	_, err := m.follow(ctx, in)
	return err
}

// goesOn says one more turn in a conversation that becomes long.
func (m *mixed) goesOn(ctx context.Context) error {
	in := newInput()
	in.ConversationId = m.long.String()
	_, err := m.follow(ctx, in)
	return err
}

// begin sends a turn, and returns its stream once its first delta is there.
func (m *mixed) begin(ctx context.Context) (stream grpc.ServerStreamingClient[turnsv1.TurnResponse], in *turnsv1.TurnInput, err error) {
	in = newInput()
	if stream, err = m.stub.Turn(ctx, &turnsv1.TurnRequest{Input: in}); err != nil {
		return nil, nil, err
	}
	for {
		msg, err := stream.Recv()
		if err != nil {
			return nil, nil, err
		}
		switch kind := msg.GetEvent().GetKind().(type) {
		case *turnsv1.Event_Delta:
			return stream, in, nil
		case *turnsv1.Event_Completed, *turnsv1.Event_Abandoned, *turnsv1.Event_Held:
			return nil, nil, fmt.Errorf("a reply was over before its first delta: %T", kind)
		}
	}
}

// cancelled stops a reply in its middle; it may be complete before.
func (m *mixed) cancelled(ctx context.Context) error {
	stream, in, err := m.begin(ctx)
	if err != nil {
		return err
	}
	_, err = m.stub.CancelReply(ctx, &turnsv1.CancelReplyRequest{
		ConversationId: in.GetConversationId(), Target: &turnsv1.CancelReplyRequest_TurnId{TurnId: in.GetTurnId()},
	})
	if err != nil {
		return err
	}
	over := false
	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) && over {
			return nil
		}
		if err != nil {
			return err
		}
		switch msg.GetEvent().GetKind().(type) {
		case *turnsv1.Event_Completed, *turnsv1.Event_Abandoned:
			over = true
		}
	}
}

// left goes away in the middle of a reply, which goes on without its client; another one follows it, and leaves as well.
func (m *mixed) left(ctx context.Context) error {
	first, leave := context.WithCancel(ctx)
	defer leave()
	_, in, err := m.begin(first)
	if err != nil {
		return err
	}
	second, leaveToo := context.WithCancel(ctx)
	defer leaveToo()
	stream, err := m.stub.FollowReply(second, &turnsv1.FollowReplyRequest{
		ConversationId: in.GetConversationId(), Target: &turnsv1.FollowReplyRequest_TurnId{TurnId: in.GetTurnId()},
	})
	if err != nil {
		return err
	}
	leave()
	if _, err := stream.Recv(); err != nil {
		return err
	}
	leaveToo()
	for {
		if _, err := stream.Recv(); err != nil {
			if status.Code(err) == codes.Canceled || errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// ring has the newest of what was put.
type ring struct {
	mu   sync.Mutex
	last []*turnsv1.TurnInput
	next int
}

func (r *ring) put(in *turnsv1.TurnInput) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.last) < recent {
		r.last = append(r.last, in)
		return
	}
	r.last[r.next] = in
	r.next = (r.next + 1) % recent
}

// get takes each in turn, the oldest first.
func (r *ring) get() *turnsv1.TurnInput {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.last) == 0 {
		return nil
	}
	r.next = (r.next + 1) % len(r.last)
	return r.last[r.next]
}

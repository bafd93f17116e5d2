package load

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/turnd/turnd/bench/speed/floor"
)

// bare is a client of the floors' service.
type bare struct {
	conn  *grpc.ClientConn
	bytes int // of a reply
}

// relay follows a reply through the relay.
func (b bare) relay(ctx context.Context) (first time.Time, err error) {
	stream, err := b.conn.NewStream(ctx, &floor.RelayStream, floor.MethodRelay)
	if err != nil {
		return first, err
	}
	if err := stream.SendMsg(wrapperspb.String(Ask)); err != nil {
		return first, err
	}
	if err := stream.CloseSend(); err != nil {
		return first, err
	}
	for n := 0; ; {
		msg := new(wrapperspb.StringValue)
		err := stream.RecvMsg(msg)
		if errors.Is(err, io.EOF) {
			return first, sized(n, b.bytes)
		}
		if err != nil {
			return first, err
		}
		if n == 0 {
			first = time.Now()
		}
		n += len(msg.GetValue())
	}
}

// calls makes two calls of which the second is answered with a reply.
func (b bare) calls(ctx context.Context) (none time.Time, err error) {
	for _, n := range []int{16, b.bytes} {
		out := new(wrapperspb.StringValue)
		if err := b.conn.Invoke(ctx, floor.MethodCall, wrapperspb.UInt32(uint32(n)), out); err != nil { //nolint:gosec // thousands at most
			return none, err
		}
		if err := sized(len(out.GetValue()), n); err != nil {
			return none, err
		}
	}
	return none, nil
}

// lookup asks for one row.
func (b bare) lookup(ctx context.Context) (none time.Time, err error) {
	id, out := floor.RowID(rand.IntN(floor.Rows)), new(wrapperspb.StringValue) //nolint:gosec // which one it is is no secret
	if err := b.conn.Invoke(ctx, floor.MethodLookup, wrapperspb.Bytes(id[:]), out); err != nil {
		return none, err
	}
	if len(out.GetValue()) < b.bytes {
		return none, sized(len(out.GetValue()), b.bytes)
	}
	return none, nil
}

func bareClients(spec Spec, conns []*grpc.ClientConn) []client {
	return each(spec.Clients, func(i int) client {
		b := bare{conns[i%len(conns)], spec.Deltas * PieceBytes}
		switch spec.Shape {
		case Calls:
			return b.calls
		case Lookup:
			return b.lookup
		default:
			return b.relay
		}
	})
}

// directClients read the provider with nothing between.
func directClients(spec Spec) []client {
	p := floor.NewProvider(spec.Target, Ask)
	return each(spec.Clients, func(int) client {
		return func(ctx context.Context) (first time.Time, err error) {
			n := 0
			err = p.Generate(ctx, func(text string) error {
				if n == 0 {
					first = time.Now()
				}
				n += len(text)
				return nil
			})
			if err != nil {
				return first, err
			}
			return first, sized(n, spec.Deltas*PieceBytes)
		}
	})
}

const (
	commitConns = 16 // as many as the service has
	groupConns  = 8
)

// commitClients keep turns in the database with no service between: each by its own two commits, or in company.
func commitClients(ctx context.Context, spec Spec) ([]client, func(), error) {
	n := int32(commitConns)
	if spec.Shape == Group {
		n = groupConns
	}
	pool, err := floor.Connect(ctx, spec.Target, n)
	if err != nil {
		return nil, nil, err
	}
	claim := func(ctx context.Context, t floor.Turn, c []byte) error { return floor.Claim(ctx, pool, t, c) }
	complete := func(ctx context.Context, t floor.Turn, c []byte) error { return floor.Complete(ctx, pool, t, c) }
	if spec.Shape == Group {
		g := floor.NewGroup(ctx, pool)
		claim = func(_ context.Context, t floor.Turn, c []byte) error { return g.Claim(t, c) }
		complete = func(_ context.Context, t floor.Turn, c []byte) error { return g.Complete(t, c) }
	}
	reply := strings.Repeat("sixteen bytes ok", spec.Deltas)
	return each(spec.Clients, func(int) client {
		// The first piece of such a turn is its claim: it is there when one commit is over.
		return func(ctx context.Context) (claimed time.Time, err error) {
			t := floor.NewTurn()
			if err := claim(ctx, t, floor.Content(Ask)); err != nil {
				return claimed, err
			}
			claimed = time.Now()
			return claimed, complete(ctx, t, floor.Content(reply))
		}
	}), pool.Close, nil
}

package floor

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Methods of the floors' one service. It is written down by hand: a floor needs no messages of its own.
const (
	// MethodRelay streams a reply of the provider, one message a delta.
	MethodRelay = "/floor.Floor/Relay"
	// MethodCall answers at once with as many bytes as it is asked for.
	MethodCall = "/floor.Floor/Call"
	// MethodLookup answers with the content of one row.
	MethodLookup = "/floor.Floor/Lookup"
)

// RelayStream describes MethodRelay to a client.
var RelayStream = grpc.StreamDesc{StreamName: "Relay", ServerStreams: true}

// Service answers the methods; what a method needs and is not there is a mistake of the bench.
type Service struct {
	Provider *Provider
	Pool     *pgxpool.Pool
}

// Register adds the service to a server.
func (s *Service) Register(to *grpc.Server) {
	stream := RelayStream
	stream.Handler = func(_ any, st grpc.ServerStream) error { return s.relay(st) }
	to.RegisterService(&grpc.ServiceDesc{
		ServiceName: "floor.Floor", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			{MethodName: "Call", Handler: unary(s.call)},
			{MethodName: "Lookup", Handler: unary(s.lookup)},
		},
		Streams: []grpc.StreamDesc{stream},
	}, s)
}

func unary[Q any](do func(context.Context, *Q) (*wrapperspb.StringValue, error)) grpc.MethodHandler {
	return func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		in := new(Q)
		if err := decode(in); err != nil {
			return nil, err
		}
		return do(ctx, in)
	}
}

func (s *Service) relay(st grpc.ServerStream) error {
	if err := st.RecvMsg(new(wrapperspb.StringValue)); err != nil {
		return err
	}
	return s.Provider.Generate(st.Context(), func(text string) error { return st.SendMsg(wrapperspb.String(text)) })
}

func (s *Service) call(_ context.Context, in *wrapperspb.UInt32Value) (*wrapperspb.StringValue, error) {
	return wrapperspb.String(strings.Repeat("x", int(in.GetValue()))), nil
}

func (s *Service) lookup(ctx context.Context, in *wrapperspb.BytesValue) (*wrapperspb.StringValue, error) {
	var content string
	err := s.Pool.QueryRow(ctx, "SELECT content::text FROM floor_turns WHERE id = $1", [16]byte(in.GetValue())).Scan(&content)
	if err != nil {
		return nil, err
	}
	return wrapperspb.String(content), nil
}

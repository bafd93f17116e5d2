package server

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/turnd/turnd/internal/tenanttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// empty is a domain in which nothing is found.
type empty struct{}

var errNothing = turns.NotFound("row", "id")

func (empty) FollowedToEnd(context.Context, turns.Layer, turns.Reply) {}

func (empty) Submit(_ context.Context, _ turns.Caller, d turns.Delivery) (turns.Submission, error) {
	if d.Input.Turn.IsZero() || len(d.Input.Content) == 0 {
		panic("a delivery without a turn")
	}
	return turns.Submission{}, errNothing
}

func (empty) FollowTarget(_ context.Context, _ turns.Caller, id turns.ConversationID, row turns.RowID) (turns.ConversationKey, turns.Reply, error) {
	if id.IsZero() || row.IsZero() {
		panic("a target without an id")
	}
	return turns.ConversationKey{}, turns.Reply{}, errNothing
}

func (e empty) FollowReply(ctx context.Context, c turns.Caller, id turns.ConversationID, row turns.RowID) (turns.ConversationKey, turns.Reply, error) {
	return e.FollowTarget(ctx, c, id, row)
}

func (empty) GetTurn(context.Context, turns.Caller, turns.ConversationID, turns.RowID) (turns.UserTurn, []turns.Reply, error) {
	return turns.UserTurn{}, nil, errNothing
}

func (empty) ListTurns(context.Context, turns.Caller, turns.ListQuery) ([]turns.TurnEntry, string, error) {
	return nil, "", errNothing
}

func (empty) Cancel(context.Context, turns.Caller, turns.ConversationID, turns.RowID) (turns.Reply, error) {
	return turns.Reply{}, errNothing
}

func (empty) Regenerate(context.Context, turns.Caller, turns.Regeneration) (turns.Reply, bool, error) {
	return turns.Reply{}, false, errNothing
}

func (empty) Select(context.Context, turns.Caller, turns.ConversationID, turns.ReplyID) (turns.Reply, error) {
	return turns.Reply{}, errNothing
}

func (empty) DeleteTurn(context.Context, turns.Caller, turns.ConversationID, turns.TurnID) (int, error) {
	return 0, errNothing
}

func (empty) CreateConversation(_ context.Context, _ turns.Caller, c turns.Conversation) (turns.Conversation, error) {
	return c, nil
}

func (empty) GetConversation(context.Context, turns.Caller, turns.ConversationID) (turns.Conversation, error) {
	return turns.Conversation{}, errNothing
}

func (empty) ListConversations(context.Context, turns.Caller, map[string]string, int, string) ([]turns.Conversation, string, error) {
	return nil, "", nil
}

func (empty) UpdateConversation(context.Context, turns.Caller, turns.ConversationUpdate) (turns.Conversation, error) {
	return turns.Conversation{}, errNothing
}

func (empty) DeleteConversation(context.Context, turns.Caller, turns.ConversationID) error {
	return errNothing
}

func (empty) HeldReplies(context.Context, turns.Caller, int, string) ([]turns.Reply, string, error) {
	return nil, "", nil
}

func (empty) ReleaseHeld(context.Context, turns.Caller, turns.ConversationID, turns.ReplyID, int64) (turns.Reply, error) {
	return turns.Reply{}, errNothing
}

func (empty) CompleteHeld(context.Context, turns.Caller, turns.ConversationID, turns.ReplyID, int64, []turns.Block) (turns.Reply, error) {
	return turns.Reply{}, errNothing
}

func (empty) ListCalls(context.Context, turns.Caller, turns.CallFilter, int, string) ([]turns.LedgerCall, string, error) {
	return nil, "", nil
}

func (empty) SumRepeats(context.Context, turns.Caller, turns.CallFilter) (map[turns.Layer]int64, error) {
	return nil, nil
}

func (empty) SweepNow(context.Context) (turns.Swept, error) { return turns.Swept{}, nil }

func (empty) Explain(context.Context, turns.Caller, turns.ConversationID, turns.RowID) (turns.Story, error) {
	return turns.Story{}, nil
}

func (empty) SumCalls(context.Context, turns.Caller, turns.CallFilter) (turns.LedgerSums, error) {
	return turns.LedgerSums{}, nil
}

func (empty) Workers(context.Context) ([]turns.WorkerStatus, error) { return nil, nil }

func (empty) Advice(r turns.Reply) (turns.Advice, time.Duration) { return turns.AdviceFor(r, 5) }

func (empty) Follow(context.Context, turns.ConversationKey, turns.ReplyID, uint32) iter.Seq2[turns.Event, error] {
	return func(yield func(turns.Event, error) bool) { yield(nil, errNothing) }
}

func (e empty) Replay(ctx context.Context, key turns.ConversationKey, _ turns.Reply, _ uint32) iter.Seq2[turns.Event, error] {
	return e.Follow(ctx, key, turns.ReplyID{}, 0)
}

func (e empty) FollowTurn(ctx context.Context, key turns.ConversationKey, _ turns.TurnID) iter.Seq2[turns.Event, error] {
	return e.Follow(ctx, key, turns.ReplyID{}, 0)
}

// received is a stream that has got the bytes of one request.
type received struct {
	grpc.ServerStream
	ctx   context.Context
	codec *codec
	raw   []byte
}

func (r *received) Context() context.Context { return r.ctx }

func (r *received) RecvMsg(m any) error {
	if r.raw == nil {
		return io.EOF
	}
	raw := r.raw
	r.raw = nil
	return r.codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw)}, m)
}

func (*received) SendMsg(any) error { return nil }

// calling calls one method with the bytes of a request, past the network and through all that comes after it.
type calling func(ctx context.Context, raw []byte) error

// callable are all methods of the services, by their name, with what the server puts around them.
func callable(t testing.TB) map[string]calling {
	rules, err := newValidator()
	require.NoError(t, err)
	cfg := Config{Service: empty{}, Follower: empty{}}.withDefaults()
	s := &Server{cfg: cfg, calls: newCalls(), streams: newStreams(nil, 0)}
	g := &gate{mapper: mapper{slog.New(slog.DiscardHandler)}, codec: newCodec(), validate: rules, calls: s.calls, streams: s.streams}
	all := map[string]calling{}
	for _, of := range []struct {
		desc grpc.ServiceDesc
		impl any
	}{{turnsv1.TurnService_ServiceDesc, turnService{Server: s}}, {turnsv1.ConversationService_ServiceDesc, conversationService{Server: s}},
		{turnsv1.OperatorService_ServiceDesc, operatorService{Server: s}}} {
		for _, m := range of.desc.Methods {
			all["/"+of.desc.ServiceName+"/"+m.MethodName] = func(ctx context.Context, raw []byte) error {
				_, err := m.Handler(of.impl, ctx, func(v any) error {
					return g.codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw)}, v)
				}, g.unary)
				return err
			}
		}
		for _, m := range of.desc.Streams {
			name := "/" + of.desc.ServiceName + "/" + m.StreamName
			all[name] = func(ctx context.Context, raw []byte) error {
				return g.stream(of.impl, &received{ctx: ctx, codec: g.codec, raw: raw}, &grpc.StreamServerInfo{FullMethod: name, IsServerStream: true}, m.Handler)
			}
		}
	}
	return all
}

// FuzzEveryMethodAnswersBytesOrRefusesThem takes any bytes as the request of any method, by the method's number in the order
// of names. Whatever they are, nothing panics and nothing is called a fault of turnd's own; what is refused says why and what
// to do, in a text that a terminal can show.
func FuzzEveryMethodAnswersBytesOrRefusesThem(f *testing.F) {
	call := callable(f)
	methods, err := tenanttest.Methods()
	require.NoError(f, err)
	ids := tenanttest.IDs{Conversation: "0b0b0b0b-0000-4000-8000-000000000001", Turn: "0b0b0b0b-0000-4000-8000-000000000002",
		Reply: "0b0b0b0b-0000-4000-8000-000000000003", Tokens: map[string]string{}}
	for i, m := range methods {
		require.Contains(f, call, m.Path())
		for _, request := range m.Requests(ids) {
			raw, err := proto.Marshal(request)
			require.NoError(f, err)
			f.Add(byte(i), raw)
			f.Add(byte(i), raw[:len(raw)/2])
		}
	}
	whole, err := proto.Marshal(fullRequest())
	require.NoError(f, err)
	f.Add(byte(0), whole)
	f.Fuzz(func(t *testing.T, method byte, raw []byte) {
		m := methods[int(method)%len(methods)]
		ctx := metadata.NewIncomingContext(t.Context(), metadata.MD{})
		err := call[m.Path()](ctx, append([]byte{}, raw...))
		if err == nil {
			return
		}
		st := status.Convert(err)
		require.NotContains(t, []codes.Code{codes.Internal, codes.Unknown}, st.Code(), "%s: %v", m, err)
		require.NotContains(t, []codes.Code{codes.Unimplemented}, st.Code(), "%s: %v", m, err)
		require.Less(t, strings.IndexFunc(st.Message(), unicode.IsControl), 0, "%s: %q", m, st.Message())
		require.NotEmpty(t, st.Details(), "%s: %v", m, err)
		info, ok := st.Details()[0].(*errdetails.ErrorInfo)
		require.True(t, ok, "%s: %v", m, err)
		require.NotEmpty(t, info.GetMetadata()["retry"], "%s: %v", m, err)
	})
}

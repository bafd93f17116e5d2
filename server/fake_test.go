package server_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/server/servertest"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/live"
)

// What is served in production fits.
var (
	_ server.Service  = (*turns.Service)(nil)
	_ server.Follower = (*live.Hub)(nil)
)

// Ids that the tests use.
var (
	conversationID = turns.ConversationID{UUID: uuid.MustParse("0b0b0b0b-0000-4000-8000-000000000001")}
	turnID         = turns.TurnID{UUID: uuid.MustParse("0b0b0b0b-0000-4000-8000-000000000002")}
	replyID        = turns.ReplyID{UUID: uuid.MustParse("0b0b0b0b-0000-4000-8000-000000000003")}
	otherID        = uuid.MustParse("0b0b0b0b-0000-4000-8000-000000000004")
)

// fake is a domain that a test scripts. What a test does not script must not be called: the embedded nil panics, and the
// call fails.
type fake struct {
	server.Service
	onSubmit func(turns.Caller, turns.Delivery) (turns.Submission, error)
	onTarget func(turns.Caller, turns.ConversationID, turns.RowID) (turns.ConversationKey, turns.Reply, error)
	onGet    func(turns.Caller, turns.ConversationID, turns.RowID) (turns.UserTurn, []turns.Reply, error)
	onList   func(turns.Caller, turns.ListQuery) ([]turns.TurnEntry, string, error)
	onRead   func(turns.Caller, turns.ConversationID) (turns.Conversation, error)
	onWait   func(ctx context.Context, turn turns.TurnID) iter.Seq2[turns.Event, error]
	onFollow func(ctx context.Context, reply turns.ReplyID, from uint32) iter.Seq2[turns.Event, error]

	mu        sync.Mutex
	callers   []turns.Caller
	delivered []turns.Delivery
}

// FollowedToEnd counts what repeats have saved, which is none of the server's matter.
func (f *fake) FollowedToEnd(context.Context, turns.Layer, turns.Reply) {}

func (f *fake) Submit(_ context.Context, c turns.Caller, d turns.Delivery) (turns.Submission, error) {
	f.mu.Lock()
	f.callers = append(f.callers, c)
	f.delivered = append(f.delivered, d)
	f.mu.Unlock()
	return f.onSubmit(c, d)
}

func (f *fake) FollowTarget(_ context.Context, c turns.Caller, id turns.ConversationID, row turns.RowID) (turns.ConversationKey, turns.Reply, error) {
	return f.onTarget(c, id, row)
}

func (f *fake) FollowReply(_ context.Context, c turns.Caller, id turns.ConversationID, row turns.RowID) (turns.ConversationKey, turns.Reply, error) {
	return f.onTarget(c, id, row)
}

func (f *fake) GetTurn(_ context.Context, c turns.Caller, id turns.ConversationID, row turns.RowID) (turns.UserTurn, []turns.Reply, error) {
	return f.onGet(c, id, row)
}

func (f *fake) ListTurns(_ context.Context, c turns.Caller, q turns.ListQuery) ([]turns.TurnEntry, string, error) {
	return f.onList(c, q)
}

func (f *fake) GetConversation(_ context.Context, c turns.Caller, id turns.ConversationID) (turns.Conversation, error) {
	return f.onRead(c, id)
}

func (f *fake) Advice(r turns.Reply) (turns.Advice, time.Duration) { return turns.AdviceFor(r, 5) }

func (f *fake) Follow(ctx context.Context, _ turns.ConversationKey, reply turns.ReplyID, from uint32) iter.Seq2[turns.Event, error] {
	return f.onFollow(ctx, reply, from)
}

func (f *fake) Replay(ctx context.Context, _ turns.ConversationKey, reply turns.Reply, from uint32) iter.Seq2[turns.Event, error] {
	return f.onFollow(ctx, reply.ID, from)
}

// submissions is how many deliveries got through to the domain.
func (f *fake) FollowTurn(ctx context.Context, _ turns.ConversationKey, turn turns.TurnID) iter.Seq2[turns.Event, error] {
	return f.onWait(ctx, turn)
}

func (f *fake) submissions() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.delivered)
}

// newFake answers every delivery with one reply in flight, whose stream is the given events.
func newFake(events ...turns.Event) *fake {
	f := &fake{}
	f.onSubmit = func(turns.Caller, turns.Delivery) (turns.Submission, error) {
		return turns.Submission{
			Turn: turns.UserTurn{Conversation: conversationID, ID: turnID, Seq: 1, Generation: 1}, Reply: replyOf(turns.StatusInFlight),
			Result: turns.ResultNew,
		}, nil
	}
	f.onTarget = func(turns.Caller, turns.ConversationID, turns.RowID) (turns.ConversationKey, turns.Reply, error) {
		return turns.ConversationKey{}, replyOf(turns.StatusInFlight), nil
	}
	f.onFollow = func(context.Context, turns.ReplyID, uint32) iter.Seq2[turns.Event, error] { return say(nil, events...) }
	return f
}

func replyOf(s turns.Status) turns.Reply {
	return turns.Reply{Conversation: conversationID, ID: replyID, Turn: turnID, Status: s, Attempt: 1, Generation: 1, Epoch: 1,
		Provider: "scripted", Model: "demo", Calls: 1}
}

// say is a follower's stream of given events, then an error if there is one.
func say(err error, events ...turns.Event) iter.Seq2[turns.Event, error] {
	return func(yield func(turns.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// start runs the server over a fake.
func start(t testing.TB, f *fake, change ...func(*server.Config)) *servertest.Harness {
	cfg := server.Config{Service: f, Follower: f}
	for _, c := range change {
		c(&cfg)
	}
	return servertest.Start(t, cfg)
}

// input is a turn that breaks no rule.
func input() *turnsv1.TurnInput {
	return &turnsv1.TurnInput{ConversationId: conversationID.String(), TurnId: turnID.String(), Content: []*turnsv1.Block{textBlock("hello")}}
}

func textBlock(s string) *turnsv1.Block {
	return &turnsv1.Block{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: s}}}
}

// turn sends a turn and reads its stream to the end.
func turn(t testing.TB, h *servertest.Harness, req *turnsv1.TurnRequest) ([]*turnsv1.Event, error) {
	stream, err := turnsv1.NewTurnServiceClient(h.Conn).Turn(t.Context(), req)
	require.NoError(t, err)
	return events(stream)
}

func follow(t testing.TB, h *servertest.Harness, offset uint32) ([]*turnsv1.Event, error) {
	stream, err := turnsv1.NewTurnServiceClient(h.Conn).FollowReply(t.Context(), &turnsv1.FollowReplyRequest{
		ConversationId: conversationID.String(), Target: &turnsv1.FollowReplyRequest_ReplyId{ReplyId: replyID.String()}, Offset: offset})
	require.NoError(t, err)
	return events(stream)
}

func events[M interface{ GetEvent() *turnsv1.Event }](stream interface{ Recv() (M, error) }) ([]*turnsv1.Event, error) {
	var out []*turnsv1.Event
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, m.GetEvent())
	}
}

// info is the ErrorInfo of a status that must be a well-formed one of turnd's.
func info(t testing.TB, err error, code codes.Code) *errdetails.ErrorInfo {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, code.String(), status.Code(err).String(), "%v", err)
	i := detail[*errdetails.ErrorInfo](err)
	require.NotNil(t, i, "no ErrorInfo in %v", err)
	require.Equal(t, "turnd", i.GetDomain())
	require.Contains(t, turnsv1.ErrorReason_value, "ERROR_REASON_"+i.GetReason())
	require.Contains(t, turnsv1.RetryAdvice_value, "RETRY_ADVICE_"+i.GetMetadata()["retry"])
	require.NotEqual(t, "UNSPECIFIED", i.GetMetadata()["retry"])
	return i
}

// detail finds a detail of a status by type, nil if it has none.
func detail[D any](err error) (found D) {
	for _, d := range status.Convert(err).Details() {
		if d, ok := d.(D); ok {
			return d
		}
	}
	return found
}

// fieldAt is the first field that a status blames.
func fieldAt(err error) string {
	v := detail[*errdetails.BadRequest](err).GetFieldViolations()
	if len(v) == 0 {
		return ""
	}
	return v[0].GetField()
}

// invoke calls a method by name.
func invoke(t testing.TB, h *servertest.Harness, method string, in, out any, opts ...grpc.CallOption) error {
	return h.Conn.Invoke(t.Context(), method, in, out, opts...)
}

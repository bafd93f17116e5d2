package server_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/server/servertest"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/access"
)

// endless is a fake whose replies never end.
func endless() *fake {
	f := newFake()
	f.onFollow = func(ctx context.Context, _ turns.ReplyID, _ uint32) iter.Seq2[turns.Event, error] {
		return func(yield func(turns.Event, error) bool) {
			if yield(turns.Heartbeat{}, nil) {
				<-ctx.Done()
				yield(nil, context.Cause(ctx))
			}
		}
	}
	return f
}

// followed is a stream that was let in and has begun.
func followed(t *testing.T, h *servertest.Harness, token string) grpc.ServerStreamingClient[turnsv1.FollowReplyResponse] {
	t.Helper()
	stream, err := turnsv1.NewTurnServiceClient(h.Conn).FollowReply(with(t, "authorization", "Bearer "+token), &turnsv1.FollowReplyRequest{
		ConversationId: conversationID.String(), Target: &turnsv1.FollowReplyRequest_ReplyId{ReplyId: replyID.String()}})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	return stream
}

func often(c *server.Config) { c.Recheck = 5 * time.Millisecond }

func TestAStreamEndsOnceItsKeyIsNoGood(t *testing.T) {
	d := &doorman{}
	d.let("first", access.ScopeRead)
	d.let("second", access.ScopeRead)
	h := start(t, endless(), d.guard, often)
	gone, too, stays := followed(t, h, "first"), followed(t, h, "first"), followed(t, h, "second")
	d.forget("first")
	for _, stream := range []grpc.ServerStreamingClient[turnsv1.FollowReplyResponse]{gone, too} {
		_, err := stream.Recv()
		require.Equal(t, "UNAUTHENTICATED", info(t, err, codes.Unauthenticated).GetReason())
	}
	d.let("second")
	_, err := stays.Recv()
	require.Equal(t, "read", info(t, err, codes.PermissionDenied).GetMetadata()["scope"])
}

func TestStreamsGoOnWhereNobodyCanTellWhoseTheyAre(t *testing.T) {
	d := &doorman{}
	d.let("first", access.ScopeRead)
	h := start(t, endless(), d.guard, often)
	stream := followed(t, h, "first")
	d.mu.Lock()
	d.fails = turns.Unavailable(context.DeadlineExceeded)
	d.mu.Unlock()
	before := d.times()
	require.Eventually(t, func() bool { return d.times() > before+3 }, 10*time.Second, time.Millisecond, "it is asked again and again")
	d.mu.Lock()
	d.fails = nil
	d.mu.Unlock()
	before = d.times()
	require.Eventually(t, func() bool { return d.times() > before+3 }, 10*time.Second, time.Millisecond)
	d.forget("first")
	_, err := stream.Recv()
	require.Equal(t, "UNAUTHENTICATED", info(t, err, codes.Unauthenticated).GetReason())
}

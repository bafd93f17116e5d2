package server_test

import (
	"context"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/server/servertest"
	"github.com/turnd/turnd/turns"
)

// gated is a follower that starts and then waits: for its gate, or for the call's end.
func gated(gate <-chan struct{}) func(context.Context, turns.ReplyID, uint32) iter.Seq2[turns.Event, error] {
	return func(ctx context.Context, _ turns.ReplyID, _ uint32) iter.Seq2[turns.Event, error] {
		return func(yield func(turns.Event, error) bool) {
			if !yield(turns.Started{Reply: replyOf(turns.StatusInFlight)}, nil) {
				return
			}
			select {
			case <-gate:
				yield(whole(), nil)
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
			}
		}
	}
}

// running begins a turn and returns once its reply has started.
func running(t *testing.T, h *servertest.Harness) grpc.ServerStreamingClient[turnsv1.TurnResponse] {
	stream, err := turnsv1.NewTurnServiceClient(h.Conn).Turn(t.Context(), &turnsv1.TurnRequest{Input: input()})
	require.NoError(t, err)
	for range 2 {
		_, err = stream.Recv()
		require.NoError(t, err)
	}
	return stream
}

func watch(t *testing.T, h *servertest.Harness) grpc.ServerStreamingClient[grpc_health_v1.HealthCheckResponse] {
	stream, err := grpc_health_v1.NewHealthClient(h.Conn).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	first, err := stream.Recv()
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, first.GetStatus())
	return stream
}

func TestADrainSaysSoFirstAndLetsRunningStreamsEndByThemselves(t *testing.T) {
	gate := make(chan struct{})
	f := newFake()
	f.onFollow = gated(gate)
	h := start(t, f)
	stream, health := running(t, h), watch(t, h)
	h.Drain()
	next, err := health.Recv()
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING, next.GetStatus())
	close(gate)
	last, err := events(stream)
	require.NoError(t, err)
	require.NotNil(t, last[0].GetCompleted())
	_, err = health.Recv()
	require.Equal(t, "DRAINING", info(t, err, codes.Unavailable).GetReason())
	require.NoError(t, h.Stop())
}

func TestWhatStillRunsAfterTheGraceEndsWithDraining(t *testing.T) {
	f := newFake()
	f.onFollow = gated(nil)
	h := start(t, f, func(c *server.Config) { c.Grace = 10 * time.Millisecond })
	stream := running(t, h)
	h.Drain()
	_, err := events(stream)
	got := info(t, err, codes.Unavailable)
	require.Equal(t, "DRAINING", got.GetReason())
	require.Equal(t, "SAME_ID_NOW", got.GetMetadata()["retry"])
	require.NoError(t, h.Stop())
}

func TestAReaderThatTakesNothingDoesNotHoldUpAShutdown(t *testing.T) {
	full := make(chan struct{})
	f := newFake()
	f.onFollow = func(context.Context, turns.ReplyID, uint32) iter.Seq2[turns.Event, error] {
		return func(yield func(turns.Event, error) bool) {
			text := strings.Repeat("x", 64<<10)
			for at, sent := uint32(0), 0; yield(turns.Grew{Offset: at, Next: at + 64<<10, Piece: turns.Piece{Kind: turns.KindText, Text: text}}, nil); sent++ {
				at += 64 << 10
				if sent == 0 {
					close(full)
				}
			}
		}
	}
	h := start(t, f, func(c *server.Config) { c.Grace = 10 * time.Millisecond })
	_, err := turnsv1.NewTurnServiceClient(h.Conn).Turn(t.Context(), &turnsv1.TurnRequest{Input: input()})
	require.NoError(t, err)
	<-full
	require.NoError(t, h.Stop())
}

func TestACallerThatLeavesEndsItsCall(t *testing.T) {
	f := newFake()
	left := make(chan error, 1)
	f.onFollow = func(ctx context.Context, _ turns.ReplyID, _ uint32) iter.Seq2[turns.Event, error] {
		return func(yield func(turns.Event, error) bool) {
			yield(turns.Started{Reply: replyOf(turns.StatusInFlight)}, nil)
			<-ctx.Done()
			left <- context.Cause(ctx)
		}
	}
	h := start(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := turnsv1.NewTurnServiceClient(h.Conn).Turn(ctx, &turnsv1.TurnRequest{Input: input()})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-left, context.Canceled)
}

// reflected lists the services by reflection.
func reflected(t *testing.T, h *servertest.Harness) string {
	stream, err := grpc_reflection_v1.NewServerReflectionClient(h.Conn).ServerReflectionInfo(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}}))
	resp, err := stream.Recv()
	require.NoError(t, err)
	require.NoError(t, stream.CloseSend())
	_, err = stream.Recv()
	require.ErrorIs(t, err, io.EOF)
	return resp.String()
}

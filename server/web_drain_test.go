package server_test

import (
	"bufio"
	"context"
	"io"
	"iter"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/server/servertest"
	"github.com/turnd/turnd/turns"
)

// webStream begins a turn over the web and returns once its reply has started.
func webStream(t *testing.T, h *servertest.Harness, opts ...connect.ClientOption) *connect.ServerStreamForClient[turnsv1.TurnResponse] {
	t.Helper()
	stream, err := webClient[turnsv1.TurnRequest, turnsv1.TurnResponse](t, h, turnsv1.TurnService_Turn_FullMethodName, opts...).
		CallServerStream(t.Context(), connect.NewRequest(&turnsv1.TurnRequest{Input: input()}))
	require.NoError(t, err)
	t.Cleanup(func() { _ = stream.Close() })
	for range 2 {
		require.True(t, stream.Receive(), "%v", stream.Err())
	}
	return stream
}

// isDraining waits until a server that was told to stop takes no more connections.
func isDraining(t *testing.T, h *servertest.Harness) {
	require.Eventually(t, func() bool {
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + h.Addr + "/")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err != nil
	}, patience, time.Millisecond)
}

func TestADrainLetsStreamsOfTheWebEndByThemselves(t *testing.T) {
	gate := make(chan struct{})
	f := newFake()
	f.onFollow = gated(gate)
	h := start(t, f)
	var streams []*connect.ServerStreamForClient[turnsv1.TurnResponse]
	for _, opts := range dialects {
		streams = append(streams, webStream(t, h, opts...))
	}
	events := bufio.NewReader(source(t, h, replyEvents).Body)
	_, err := next(events)
	require.NoError(t, err)
	native := running(t, h)
	h.Drain()
	isDraining(t, h)
	close(gate)
	for _, stream := range streams {
		require.True(t, stream.Receive(), "%v", stream.Err())
		require.NotNil(t, stream.Msg().GetEvent().GetCompleted())
		require.False(t, stream.Receive())
		require.NoError(t, stream.Err())
	}
	last, err := next(events)
	require.NoError(t, err)
	require.Equal(t, "completed", last.kind)
	m, err := native.Recv()
	require.NoError(t, err)
	require.NotNil(t, m.GetEvent().GetCompleted())
	require.NoError(t, h.Stop())
}

func TestWhatStillRunsOnTheWebAfterTheGraceEndsWithDraining(t *testing.T) {
	f := newFake()
	f.onFollow = gated(nil)
	h := start(t, f, func(c *server.Config) { c.Grace = 10 * time.Millisecond })
	var streams []*connect.ServerStreamForClient[turnsv1.TurnResponse]
	for _, opts := range dialects {
		streams = append(streams, webStream(t, h, opts...))
	}
	events := source(t, h, replyEvents)
	body := bufio.NewReader(events.Body)
	_, err := next(body)
	require.NoError(t, err)
	h.Drain()
	for _, stream := range streams {
		require.False(t, stream.Receive())
		got := info(t, asStatus(t, stream.Err()), codes.Unavailable)
		require.Equal(t, "DRAINING", got.GetReason())
		require.Equal(t, "SAME_ID_NOW", got.GetMetadata()["retry"])
	}
	rest, err := io.ReadAll(body)
	require.NoError(t, err, "the stream ends as a whole answer does")
	require.Equal(t, ": lost: DRAINING\n\n", string(rest))
	require.NoError(t, h.Stop())
}

// flood is a follower that never ends and is told when its call does.
func flood(left chan<- struct{}) func(context.Context, turns.ReplyID, uint32) iter.Seq2[turns.Event, error] {
	text := string(make([]byte, 64<<10))
	return func(ctx context.Context, _ turns.ReplyID, _ uint32) iter.Seq2[turns.Event, error] {
		return func(yield func(turns.Event, error) bool) {
			defer func() { left <- struct{}{} }()
			for at := uint32(0); ctx.Err() == nil; at += 64 << 10 {
				if !yield(turns.Grew{Offset: at, Next: at + 64<<10, Piece: turns.Piece{Kind: turns.KindText, Text: text}}, nil) {
					return
				}
			}
		}
	}
}

func TestAReaderOfTheWebThatTakesNothingIsCutOff(t *testing.T) {
	left := make(chan struct{}, 2)
	f := newFake()
	f.onFollow = flood(left)
	h := start(t, f, func(c *server.Config) { c.WriteTime = 50 * time.Millisecond })
	source(t, h, replyEvents)
	<-left
	stream := webStream(t, h)
	<-left
	for stream.Receive() {
	}
	require.Error(t, stream.Err())
	require.NoError(t, h.Stop())
}

func TestAReaderOfTheWebThatTakesNothingDoesNotHoldUpAShutdown(t *testing.T) {
	left := make(chan struct{}, 2)
	f := newFake()
	f.onFollow = flood(left)
	h := start(t, f, func(c *server.Config) { c.Grace = 10 * time.Millisecond })
	source(t, h, replyEvents)
	webStream(t, h)
	require.NoError(t, h.Stop())
	<-left
	<-left
}

func TestAClientOfTheWebThatLeavesEndsItsCallAlone(t *testing.T) {
	left := make(chan struct{}, 2)
	f := newFake()
	f.onFollow = func(ctx context.Context, _ turns.ReplyID, _ uint32) iter.Seq2[turns.Event, error] {
		return func(yield func(turns.Event, error) bool) {
			yield(turns.Started{Reply: replyOf(turns.StatusInFlight)}, nil)
			<-ctx.Done()
			left <- struct{}{}
		}
	}
	h := start(t, f)
	events := source(t, h, replyEvents)
	_, err := next(bufio.NewReader(events.Body))
	require.NoError(t, err)
	require.NoError(t, events.Body.Close())
	<-left
	require.NoError(t, webStream(t, h).Close())
	<-left
}

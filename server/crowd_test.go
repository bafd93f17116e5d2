package server_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server/servertest"
	"github.com/turnd/turnd/turns"
)

// text is what a stream's deltas join to, read until its end.
func text(h *servertest.Harness, t *testing.T) (string, error) {
	stream, err := turnsv1.NewTurnServiceClient(h.Conn).Turn(t.Context(), &turnsv1.TurnRequest{Input: input()})
	if err != nil {
		return "", err
	}
	got, err := events(stream)
	var joined strings.Builder
	for _, e := range got {
		joined.WriteString(e.GetDelta().GetText())
	}
	return joined.String(), err
}

func TestEveryoneWhoFollowsAReplyReadsTheSameBytesHoweverFastTheyAre(t *testing.T) {
	g := &growing{changed: make(chan struct{})}
	f := newFake()
	f.onFollow = g.follow
	h := start(t, f)
	const readers, pieces = 20, 200
	read := make([]string, readers)
	errs := make([]error, readers)
	var all sync.WaitGroup
	for i := range readers {
		all.Go(func() { read[i], errs[i] = text(h, t) })
	}
	for i := range pieces {
		g.change(func() {
			require.NoError(t, g.log.Append(turns.Piece{Kind: turns.KindText, Starts: i == 0, Text: "你好🦀", Ends: i == pieces-1}))
		})
	}
	g.change(func() { g.ended = true })
	all.Wait()
	for i := range readers {
		require.NoError(t, errs[i])
		require.Equal(t, strings.Repeat("你好🦀", pieces), read[i])
	}
}

func TestADrainWaitsForEveryStreamUnderWay(t *testing.T) {
	gate := make(chan struct{})
	f := newFake()
	f.onFollow = gated(gate)
	h := start(t, f)
	const streams = 10
	ended := make(chan error, streams)
	for range streams {
		stream := running(t, h)
		go func() {
			_, err := events(stream)
			ended <- err
		}()
	}
	health := watch(t, h)
	h.Drain()
	next, err := health.Recv()
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING, next.GetStatus())
	close(gate)
	for range streams {
		require.NoError(t, <-ended)
	}
	require.NoError(t, h.Stop())
}

func TestContentThatIsNestedVeryDeepHarmsNothing(t *testing.T) {
	f := newFake(whole())
	h := start(t, f)
	inner := textBlock("x")
	for range 2000 {
		inner = &turnsv1.Block{Kind: &turnsv1.Block_ToolResult{ToolResult: &turnsv1.ToolResultBlock{ToolUseId: "u", Content: []*turnsv1.Block{inner}}}}
	}
	in := input()
	in.Content = append(in.Content, inner)
	_, err := turn(t, h, &turnsv1.TurnRequest{Input: in})
	if err != nil {
		info(t, err, codes.InvalidArgument)
	}
	_, err = turn(t, h, &turnsv1.TurnRequest{Input: input()})
	require.NoError(t, err)
}

func TestServicesThatAreNotOursFailWithTheSameDetails(t *testing.T) {
	h := start(t, newFake())
	_, err := grpc_health_v1.NewHealthClient(h.Conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "nobody"})
	require.Equal(t, "NOT_FOUND", info(t, err, codes.NotFound).GetReason())
	err = sendRaw(t, h, grpc_health_v1.Health_Check_FullMethodName, []byte("\x0a\x02\xff\xfe"))
	info(t, err, codes.InvalidArgument)
	require.Equal(t, "service", fieldAt(err))
}

func TestAFollowerThatEndsWithAReplyInFlightIsAFaultAndNotAnEnd(t *testing.T) {
	got, err := follow(t, start(t, newFake(turns.Started{Reply: replyOf(turns.StatusInFlight)}, turns.Ended{Reply: replyOf(turns.StatusInFlight)})), 0)
	require.Len(t, got, 1)
	info(t, err, codes.Internal)
}

func TestStoredContentThatIsNoLogIsAFaultOfTurndsOwn(t *testing.T) {
	f := newFake()
	f.onGet = func(turns.Caller, turns.ConversationID, turns.RowID) (turns.UserTurn, []turns.Reply, error) {
		r := replyOf(turns.StatusComplete)
		r.Content = []turns.Piece{{Block: 4, Kind: turns.KindText, Text: "torn"}}
		return turns.UserTurn{}, []turns.Reply{r}, nil
	}
	_, err := turnsv1.NewTurnServiceClient(start(t, f).Conn).GetTurn(t.Context(), &turnsv1.GetTurnRequest{
		ConversationId: conversationID.String(), Target: &turnsv1.GetTurnRequest_TurnId{TurnId: turnID.String()}})
	info(t, err, codes.Internal)
}

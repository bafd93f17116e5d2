package server_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/server/servertest"
	"github.com/turnd/turnd/turns"
)

// rawClient speaks HTTP/2 by hand, as no library would.
type rawClient struct {
	t      *testing.T
	conn   net.Conn
	framer *http2.Framer
}

func raw(t *testing.T, h *servertest.Harness) *rawClient {
	conn := dial(t, h)
	_, err := io.WriteString(conn, http2.ClientPreface)
	require.NoError(t, err)
	c := &rawClient{t: t, conn: conn, framer: http2.NewFramer(conn, conn)}
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	require.NoError(t, c.framer.WriteSettings())
	return c
}

// header is the header block of a call of SubmitTurn.
func header(more ...hpack.HeaderField) []byte {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, f := range append([]hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: "turnd"},
		{Name: ":path", Value: turnsv1.TurnService_SubmitTurn_FullMethodName}, {Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"}}, more...) {
		_ = enc.WriteField(f)
	}
	return block.Bytes()
}

func (c *rawClient) call(stream uint32, more ...hpack.HeaderField) error {
	return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: header(more...), EndHeaders: true})
}

// ends reads until a stream has ended, and tells how.
func (c *rawClient) ends(stream uint32) (grpcStatus string) {
	c.t.Helper()
	for {
		frame, err := c.framer.ReadFrame()
		require.NoError(c.t, err)
		if frame.Header().StreamID != stream {
			continue
		}
		switch f := frame.(type) {
		case *http2.RSTStreamFrame:
			return "reset"
		case *http2.MetaHeadersFrame:
			for _, field := range f.Fields {
				if field.Name == "grpc-status" {
					return field.Value
				}
			}
		}
	}
}

func TestACallWhoseRequestDoesNotArriveIsEnded(t *testing.T) {
	f := newFake(whole())
	h := start(t, f, func(c *server.Config) { c.ArrivalTime = 50 * time.Millisecond })
	c := raw(t, h)
	require.NoError(t, c.call(1))
	require.NoError(t, c.framer.WriteData(1, false, []byte{0, 0, 1, 0, 0, 10})) // a byte of 64 KiB
	require.Contains(t, []string{"1", "reset"}, c.ends(1))
	require.Zero(t, f.submissions())
	_, err := turn(t, h, &turnsv1.TurnRequest{Input: input()})
	require.NoError(t, err, "others are served")
}

func TestACallMayTakeLongerThanItsRequestMayToArrive(t *testing.T) {
	gate := make(chan struct{})
	f := newFake()
	f.onFollow = gated(gate)
	h := start(t, f, func(c *server.Config) { c.ArrivalTime = 50 * time.Millisecond })
	stream := running(t, h)
	// A call that began later and is ended for its request shows that the time of the first has passed.
	c := raw(t, h)
	require.NoError(t, c.call(1))
	c.ends(1)
	close(gate)
	_, err := events(stream)
	require.NoError(t, err)
}

func TestHeadersWithoutAnEndCloseTheirConnection(t *testing.T) {
	h := start(t, newFake(whole()))
	c := raw(t, h)
	require.NoError(t, c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: header()}))
	var block bytes.Buffer
	require.NoError(t, hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: "x-more", Value: strings.Repeat("x", 8<<10)}))
	var err error
	const most = 64 << 20
	for sent := 0; err == nil; sent += block.Len() {
		require.Less(t, sent, most, "the server goes on reading")
		err = c.framer.WriteContinuation(1, false, block.Bytes())
	}
	var timeout net.Error
	require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "the server holds the connection: %v", err)
	_, err = turn(t, h, &turnsv1.TurnRequest{Input: input()})
	require.NoError(t, err)
}

func TestMetadataBeyondTheLimitReachesNoHandler(t *testing.T) {
	f := newFake(whole())
	h := start(t, f)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-more", strings.Repeat("x", 64<<10))
	_, err := turnsv1.NewTurnServiceClient(h.Conn).SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: input()})
	require.Error(t, err)
	require.Zero(t, f.submissions())
	_, err = turn(t, h, &turnsv1.TurnRequest{Input: input()})
	require.NoError(t, err)
}

func TestCallsThatAreResetAtOnceNeverRunMoreThanOneConnectionMay(t *testing.T) {
	const most, calls = 8, 2000
	var now, peak atomic.Int64
	gate := make(chan struct{})
	f := newFake(whole())
	answer := f.onSubmit
	f.onSubmit = func(c turns.Caller, d turns.Delivery) (turns.Submission, error) {
		for n := now.Add(1); ; {
			if p := peak.Load(); n <= p || peak.CompareAndSwap(p, n) {
				break
			}
		}
		defer now.Add(-1)
		<-gate
		return answer(c, d)
	}
	h := start(t, f, func(c *server.Config) { c.MaxStreams = most })
	c := raw(t, h)
	go func() { _, _ = io.Copy(io.Discard, c.conn) }()
	message := []byte{0, 0, 0, 0, 0}
	request, err := proto.Marshal(&turnsv1.SubmitTurnRequest{Input: input()})
	require.NoError(t, err)
	message[3], message[4] = byte(len(request)>>8), byte(len(request))
	for i := uint32(0); i < calls && err == nil; i++ {
		if err = c.call(2*i + 1); err == nil {
			err = c.framer.WriteData(2*i+1, true, append(message, request...))
		}
		if err == nil {
			err = c.framer.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
		}
	}
	require.Eventually(t, func() bool { return now.Load() > 0 || err != nil }, patience, time.Millisecond)
	close(gate)
	require.LessOrEqual(t, peak.Load(), int64(most))
	require.NoError(t, c.conn.Close())
	_, err = turn(t, h, &turnsv1.TurnRequest{Input: input()})
	require.NoError(t, err)
}

// oversize are requests with more of something than anybody needs.
func oversize() map[string]*turnsv1.TurnInput {
	with := func(change func(*turnsv1.TurnInput)) *turnsv1.TurnInput {
		in := input()
		in.Options = &turnsv1.GenerationOptions{}
		change(in)
		return in
	}
	return map[string]*turnsv1.TurnInput{
		"a hundred thousand blocks within another, deep down": with(func(in *turnsv1.TurnInput) {
			many := make([]*turnsv1.Block, 100_000)
			fill(many)
			for range 100 {
				many = []*turnsv1.Block{{Kind: &turnsv1.Block_ToolResult{ToolResult: &turnsv1.ToolResultBlock{ToolUseId: "u", Content: many}}}}
			}
			in.Content = many
		}),
		"a hundred thousand blocks": with(func(in *turnsv1.TurnInput) { in.Content = make([]*turnsv1.Block, 100_000); fill(in.Content) }),
		"a long id":                 with(func(in *turnsv1.TurnInput) { in.TurnId = strings.Repeat("a", 1<<20) }),
		"ten thousand stop sequences": with(func(in *turnsv1.TurnInput) {
			for range 10_000 {
				in.Options.StopSequences = append(in.Options.StopSequences, "stop")
			}
		}),
		"ten thousand tools": with(func(in *turnsv1.TurnInput) {
			for range 10_000 {
				in.Options.Tools = append(in.Options.Tools, &turnsv1.Tool{Name: "t", InputSchemaJson: "{}"})
			}
		}),
		"a tool's deep schema": with(func(in *turnsv1.TurnInput) {
			in.Options.Tools = []*turnsv1.Tool{{Name: "t", InputSchemaJson: strings.Repeat(`{"a":`, 1<<20)}}
		}),
		"a model's long name": with(func(in *turnsv1.TurnInput) { in.Options.Model = strings.Repeat("m", 5<<20) }),
	}
}

func TestMoreThanAnybodyNeedsIsRefusedWithoutMuchWork(t *testing.T) {
	for name, in := range oversize() {
		t.Run(name, func(t *testing.T) {
			f := newFake(whole())
			h := start(t, f)
			began := time.Now()
			_, err := turnsv1.NewTurnServiceClient(h.Conn).SubmitTurn(t.Context(), &turnsv1.SubmitTurnRequest{Input: in})
			t.Log(time.Since(began), len(status.Convert(err).Message()))
			info(t, err, codes.InvalidArgument)
			require.Less(t, len(status.Convert(err).Proto().String()), 8<<10, "what was sent comes back")
			require.Zero(t, f.submissions())
		})
	}
}

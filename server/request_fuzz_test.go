package server

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// FuzzBytesAreADeliveryOrAnInvalidArgument takes bytes the way that a request's go, up to the domain.
func FuzzBytesAreADeliveryOrAnInvalidArgument(f *testing.F) {
	whole, err := proto.Marshal(fullRequest())
	require.NoError(f, err)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("\x0a\x02\xff\xfe"))
	rules, err := newValidator()
	require.NoError(f, err)
	g := &gate{codec: newCodec(), validate: rules}
	m := mapper{slog.New(slog.DiscardHandler)}
	f.Fuzz(func(t *testing.T, raw []byte) {
		req := &turnsv1.SubmitTurnRequest{}
		require.NoError(t, g.codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw)}, req))
		err := g.check(req)
		var d turns.Delivery
		if err == nil {
			d, err = deliveryFromWire(t.Context(), req.GetInput(), nil, 1<<20)
		}
		if err == nil {
			require.False(t, d.Input.Turn.IsZero())
			require.NotEmpty(t, d.Input.Content)
			return
		}
		var e *turns.Error
		var fields fieldErrors
		require.True(t, errors.As(err, &e) || errors.As(err, &fields), "%v", err)
		require.Equal(t, codes.InvalidArgument, status.Code(m.status(t.Context(), "/m", err)))
	})
}

package server

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/turnd/turnd/turns"
)

// A client makes the status of its own cancellation by itself, so what the server says of one is asked of the mapper.
func TestACallerThatIsGoneGetsAStatusOfItsOwnDoing(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	shut, end := context.WithCancelCause(t.Context())
	end(errDraining)
	busy := &turns.Error{Code: turns.CodeBusy, Problem: "busy"}
	for name, c := range map[string]struct {
		ctx    context.Context
		err    error
		code   codes.Code
		advice string
	}{
		"cancelled":                          {cancelled, context.Canceled, codes.Canceled, "SAME_ID_NOW"},
		"cancelled amid a query":             {cancelled, turns.Unavailable(context.Canceled), codes.Canceled, "SAME_ID_NOW"},
		"too late":                           {late, context.DeadlineExceeded, codes.DeadlineExceeded, "SAME_ID_NOW"},
		"what is known of the request stays": {cancelled, busy, codes.FailedPrecondition, "SAME_ID_AFTER_WAIT"},
		"a panic stays a fault":              {cancelled, &panicError{value: 1}, codes.Internal, "SAME_ID_AFTER_WAIT"},
		"a time limit that is not theirs":    {t.Context(), context.DeadlineExceeded, codes.Internal, "SAME_ID_AFTER_WAIT"},
		"the server ended it":                {shut, context.Canceled, codes.Unavailable, "SAME_ID_NOW"},
		"the server ended it amid a query":   {shut, turns.Unavailable(errors.New("x")), codes.Unavailable, "SAME_ID_NOW"},
		"grpc's own, over the receive limit": {t.Context(), status.Error(codes.ResourceExhausted, "larger than max"), codes.ResourceExhausted, "DO_NOT_RETRY"},
		"grpc's own, transport is closing":   {t.Context(), status.Error(codes.Unavailable, "closing"), codes.Unavailable, "SAME_ID_NOW"},
		"grpc's own, of a kind not expected": {t.Context(), status.Error(codes.DataLoss, "?"), codes.DataLoss, "SAME_ID_AFTER_WAIT"},
	} {
		t.Run(name, func(t *testing.T) {
			st := status.Convert(mapper{slog.New(slog.DiscardHandler)}.status(c.ctx, "/m", c.err))
			require.Equal(t, c.code.String(), st.Code().String())
			info, ok := st.Details()[0].(*errdetails.ErrorInfo)
			require.True(t, ok)
			require.Equal(t, c.advice, info.GetMetadata()["retry"])
		})
	}
}

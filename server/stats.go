package server

import (
	"context"

	"google.golang.org/grpc/stats"
)

// counted tells a handler of the calls of turnd's own methods. Of health checks and reflection there would be too many to
// read, and a method that does not exist is called what a stranger likes.
type counted struct{ stats.Handler }

// uncounted marks the context of a call that the handler is not told of.
type uncounted struct{}

// TagRPC implements stats.Handler.
func (c counted) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if _, ok := scopes[info.FullMethodName]; !ok {
		return context.WithValue(ctx, uncounted{}, true)
	}
	return c.Handler.TagRPC(ctx, info)
}

// HandleRPC implements stats.Handler.
func (c counted) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if ctx.Value(uncounted{}) == nil {
		c.Handler.HandleRPC(ctx, s)
	}
}

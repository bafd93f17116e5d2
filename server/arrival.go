package server

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/tap"
)

// arrivals end calls whose request does not arrive. Until its request is whole a call holds a goroutine and what came of it so
// far, so a sender of a byte a minute must not have one for long. Nobody else sees such a call: gRPC runs a handler only once
// the request is there.
type arrivals struct{ within time.Duration }

// arrival is the wait for one request.
type arrival struct{ over func() }

type arrivalKey struct{}

// begin is told of every call when its header is there. The context that it gives is the call's: when it ends, so does the
// wait for the request.
func (a arrivals) begin(ctx context.Context, _ *tap.Info) (context.Context, error) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(a.within, cancel)
	// A call that ends otherwise needs no timer, nor does it have to wait until it fires.
	unhook := context.AfterFunc(ctx, func() { timer.Stop() })
	w := &arrival{over: sync.OnceFunc(func() {
		timer.Stop()
		unhook()
	})}
	return context.WithValue(ctx, arrivalKey{}, w), nil
}

// arrived says that a call's request is there.
func arrived(ctx context.Context) {
	if w, ok := ctx.Value(arrivalKey{}).(*arrival); ok {
		w.over()
	}
}

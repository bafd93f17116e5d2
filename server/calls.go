package server

import (
	"context"
	"sync"
)

// calls knows the calls under way, so that a drain can wait for them and, when its grace is over, end them with a
// status of ours rather than with a cut connection.
type calls struct {
	mu       sync.Mutex
	running  int
	draining bool
	idle     chan struct{}

	cut    context.Context
	cutAll context.CancelFunc
}

func newCalls() *calls {
	c := &calls{idle: make(chan struct{})}
	c.cut, c.cutAll = context.WithCancel(context.Background())
	return c
}

// enter counts a call until leave, and gives it a context that ends with errDraining when everything is cut off, or when it is
// cut off itself with a reason. A health watch or a reflection stream never ends by itself, so it is not waited for.
func (c *calls) enter(ctx context.Context, method string) (_ context.Context, cut context.CancelCauseFunc, leave func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(c.cut, func() { cancel(errDraining) })
	counted := ours(method)
	if counted {
		c.add(1)
	}
	return ctx, cancel, func() {
		unhook()
		cancel(nil)
		if counted {
			c.add(-1)
		}
	}
}

func (c *calls) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running += n
	c.settle()
}

// drained is closed once no call is running. A call that comes in later is not waited for: the library has told its
// client to go elsewhere, and the call is cut off with the rest.
func (c *calls) drained() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	c.settle()
	return c.idle
}

func (c *calls) settle() {
	if !c.draining || c.running > 0 {
		return
	}
	select {
	case <-c.idle:
	default:
		close(c.idle)
	}
}

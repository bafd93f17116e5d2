package telemetry

import (
	"context"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// outbox is a span processor that nothing ever waits for: a span that finds no room is dropped, and counted. The SDK's own
// goes on sending in the background when its end is cut short, and says of what it drops a number that nobody can read.
type outbox struct {
	to      sdktrace.SpanExporter
	env     Environment
	losses  *losses
	queue   chan sdktrace.ReadOnlySpan
	flushes chan chan struct{}

	ending sync.RWMutex // held for reading while a span is put into the queue
	ended  bool
	stop   chan struct{}
	done   chan struct{}
	// life ends what is being sent, once the end may take no longer.
	life context.Context
	kill context.CancelFunc
}

var _ sdktrace.SpanProcessor = (*outbox)(nil)

// newOutbox starts a goroutine, which Shutdown ends and waits for.
func newOutbox(to sdktrace.SpanExporter, env Environment, l *losses) *outbox {
	o := &outbox{to: to, env: env, losses: l, queue: make(chan sdktrace.ReadOnlySpan, env.Queue), flushes: make(chan chan struct{}),
		stop: make(chan struct{}), done: make(chan struct{})}
	o.life, o.kill = context.WithCancel(context.Background())
	go o.run()
	return o
}

// OnStart implements sdktrace.SpanProcessor.
func (o *outbox) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor.
func (o *outbox) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	o.ending.RLock()
	defer o.ending.RUnlock()
	if o.ended {
		return
	}
	select {
	case o.queue <- s:
	default:
		o.losses.lost(1, errFull)
	}
}

func (o *outbox) run() {
	defer close(o.done)
	batch := make([]sdktrace.ReadOnlySpan, 0, o.env.Batch)
	tick := time.NewTicker(o.env.Delay)
	defer tick.Stop()
	for {
		select {
		case s := <-o.queue:
			if batch = append(batch, s); len(batch) == o.env.Batch {
				batch = o.send(batch)
			}
		case <-tick.C:
			batch = o.send(batch)
		case flushed := <-o.flushes:
			batch = o.sendAll(batch)
			close(flushed)
		case <-o.stop:
			o.sendAll(batch)
			return
		}
	}
}

// sendAll sends a batch and what is in the queue.
func (o *outbox) sendAll(batch []sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	for {
		select {
		case s := <-o.queue:
			if batch = append(batch, s); len(batch) == o.env.Batch {
				batch = o.send(batch)
			}
		default:
			return o.send(batch)
		}
	}
}

// send sends a batch, once, and gives it back empty. What is not taken is gone: meanwhile the next spans wait.
func (o *outbox) send(batch []sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	if len(batch) == 0 {
		return batch
	}
	ctx, cancel := context.WithTimeout(o.life, o.env.ExportTime)
	defer cancel()
	if err := o.to.ExportSpans(ctx, batch); err != nil {
		o.losses.lost(len(batch), err)
	}
	clear(batch) // or they would be held until the next ones come
	return batch[:0]
}

// ForceFlush implements sdktrace.SpanProcessor.
func (o *outbox) ForceFlush(ctx context.Context) error {
	flushed := make(chan struct{})
	select {
	case o.flushes <- flushed:
	case <-o.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-flushed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown implements sdktrace.SpanProcessor. What is not sent when ctx ends is dropped.
func (o *outbox) Shutdown(ctx context.Context) error {
	o.ending.Lock()
	again := o.ended
	o.ended = true
	o.ending.Unlock()
	if again {
		return nil
	}
	close(o.stop)
	defer o.kill()
	select {
	case <-o.done:
	case <-ctx.Done():
		o.kill()
		<-o.done
	}
	return o.to.Shutdown(ctx)
}

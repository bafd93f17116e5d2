package main

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnd/turnd/server"
)

// lastEndings is how long replies that were cut off at the end of the grace have to be stored as such, and their
// followers to hear of it.
const lastEndings = 5 * time.Second

// errDraining makes an instance not ready while it drains.
var errDraining = errors.New("draining")

// serve serves until ctx ends or something fails, and then drains. The parts end in this order, each when nothing needs
// it any more:
//
//  1. the server turns NOT_SERVING and takes no further connection; at the same time the service refuses new attempts
//     and lets the running replies finish within the grace;
//  2. the service's loops, once no reply runs here: until then its lease, its checkpoints and its ear for stops are
//     needed;
//  3. the hub, once no stream is open: it feeds those who follow a reply of another worker;
//  4. the ops listener.
func (h *house) serve(ctx context.Context) error {
	if err := h.service.Start(ctx); err != nil {
		return err
	}
	loops := newLoop(h.service.Run)
	hub := newLoop(h.hub.Run)
	ops := newLoop(h.serveOps)
	err := h.serveUntil(ctx, loops, ops)
	return errors.Join(err, loops.end(), hub.end(), ops.end(), removeReady(h.cfg.ReadyFile))
}

// serveUntil serves the wire, and drains it and the service together.
func (h *house) serveUntil(ctx context.Context, loops, ops *loop) error {
	group, serving := errgroup.WithContext(ctx)
	group.Go(func() error { return h.server.Serve(serving, h.listen) })
	group.Go(func() error { return h.announce(serving) })
	group.Go(func() error {
		select {
		case <-serving.Done():
			return nil
		case <-ops.done:
			return ops.end() // a listener that failed ends the process
		}
	})
	group.Go(func() error {
		<-serving.Done()
		h.logger.Info("draining", "grace", h.cfg.Grace, "in_flight", h.service.InFlight())
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.cfg.Grace)
		defer cancel()
		err := h.service.Drain(grace, lastEndings)
		return errors.Join(err, loops.end())
	})
	err := group.Wait()
	h.logger.Info("drained")
	return err
}

// serveOps serves operators, if they are to be served.
func (h *house) serveOps(ctx context.Context) error {
	if h.ops == nil {
		<-ctx.Done()
		return nil
	}
	return server.Ops{
		Metrics: h.tel.MetricsHandler,
		Logger:  h.logger,
		Checks: []server.Check{
			{Name: "store", Ready: h.store.ping},
			{Name: "serving", Ready: func(context.Context) error {
				if h.service.Draining() {
					return errDraining
				}
				return nil
			}},
		},
	}.Serve(ctx, h.ops)
}

// announce says that the listeners take connections.
func (h *house) announce(ctx context.Context) error {
	r := h.ready()
	if err := r.write(h.cfg.ReadyFile); err != nil {
		return err
	}
	if err := r.print(h.stdout); err != nil {
		return err
	}
	h.logger.InfoContext(ctx, "serving", "listen", r.Listen, "worker_id", r.WorkerID, "store", h.at.String())
	if h.models.demo != nil {
		hint(h.stderr, os.Args[0], r.Listen)
	}
	return nil
}

func (h *house) ready() ready {
	r := ready{
		PID: os.Getpid(), Listen: h.listen.Addr().String(), WorkerID: h.service.WorkerID().String(),
		Store: h.at.engine, Models: h.models.Models(),
	}
	if h.ops != nil {
		r.Ops = h.ops.Addr().String()
	}
	return r
}

// loop is something that runs until it is told to end.
type loop struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // once done is closed
}

// newLoop runs a part under a context of its own: it must outlive the signal that begins the drain.
func newLoop(run func(context.Context) error) *loop {
	ctx, cancel := context.WithCancel(context.Background())
	l := &loop{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		l.err = run(ctx)
	}()
	return l
}

// end ends the part and waits for it. It may be called again.
func (l *loop) end() error {
	l.cancel()
	<-l.done
	return l.err
}

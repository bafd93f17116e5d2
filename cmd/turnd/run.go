package main

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnd/turnd/server"
)

// lastEndings is how long replies that were cut off at the end of the grace, or by a second signal, have to be stored as such, and their
// followers to hear of it.
const lastEndings = 5 * time.Second

// serve serves until ctx ends or something fails, and then drains. The parts end in this order, each when nothing needs
// it any more:
//
//  0. after a signal, readiness and health turn at once, and for the drain's delay all goes on, so that whoever sends work here
//     has heard of it before connections are refused;
//  1. the server turns NOT_SERVING and takes no further connection; at the same time the service refuses new attempts
//     and lets the running replies finish within the grace, and who follows a reply of another worker is let go;
//  2. the service's loops, once no reply runs here: until then its lease, its checkpoints and its ear for stops are
//     needed;
//  3. the hub, once no stream is open: it tells other workers of the last endings;
//  4. the ops listener.
//
// Webhooks are taken until 2.
func (a *app) serve(ctx context.Context) error {
	if err := a.service.Start(ctx); err != nil {
		return err
	}
	loops := newLoop(a.service.Run)
	hub := newLoop(a.hub.Run)
	ops, hooks := newLoop(a.serveOps), newLoop(a.serveWebhooks)
	err := a.serveUntil(ctx, loops, ops, hooks)
	return errors.Join(err, hooks.end(), loops.end(), hub.end(), ops.end(), removeReady(a.cfg.ReadyFile))
}

// serveUntil serves the wire, and drains it and the service together.
func (a *app) serveUntil(ctx context.Context, loops, ops, hooks *loop) error {
	until, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	group, serving := errgroup.WithContext(until)
	group.Go(func() error {
		defer end()
		a.linger(ctx, serving)
		return nil
	})
	group.Go(func() error { return a.server.Serve(serving, a.listen, a.webListeners()...) })
	group.Go(func() error {
		a.keepCerts(serving)
		return nil
	})
	group.Go(func() error {
		if err := a.announce(serving); err != nil {
			return err
		}
		a.reloads(serving) // not before: it writes the ready file too
		return nil
	})
	group.Go(func() error {
		select {
		case <-serving.Done():
			return nil
		case <-ops.done:
			return ops.end() // a listener that failed ends the process
		case <-hooks.done:
			return hooks.end()
		}
	})
	group.Go(func() error {
		<-serving.Done()
		a.logger.Info("draining", "grace", a.cfg.Grace, "in_flight", a.service.InFlight())
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.Grace)
		defer cancel()
		defer context.AfterFunc(a.haste, func() {
			cancel()
			a.server.Hurry(lastEndings)
		})()
		a.hub.Drain()
		err := a.service.Drain(grace, lastEndings)
		return errors.Join(err, loops.end())
	})
	err := group.Wait()
	a.logger.Info("drained")
	return err
}

// linger returns when serving is to end: a while after ctx has ended, or at once if something failed or haste is asked for.
func (a *app) linger(ctx, serving context.Context) {
	select {
	case <-ctx.Done():
	case <-serving.Done():
		a.standing.leave()
		return
	}
	a.standing.leave()
	if a.cfg.DrainDelay == 0 {
		return
	}
	a.logger.Info("about to drain", "delay", a.cfg.DrainDelay, "in_flight", a.service.InFlight())
	delay := time.NewTimer(a.cfg.DrainDelay)
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-a.haste.Done():
	case <-serving.Done():
	}
}

// webListeners are those of the web alone.
func (a *app) webListeners() []net.Listener {
	if a.web == nil {
		return nil
	}
	return []net.Listener{a.web}
}

// serveOps serves operators, if they are to be served.
func (a *app) serveOps(ctx context.Context) error {
	if a.ops == nil {
		<-ctx.Done()
		return nil
	}
	return server.Ops{
		Metrics:   a.tel.MetricsHandler,
		Logger:    a.logger,
		Readiness: a.standing.readiness,
		Alive:     a.service.Stuck,
		About:     thisBuild(),
	}.Serve(ctx, a.ops)
}

// serveWebhooks takes vendors' messages, if they are to be taken. It serves until no reply runs here: what a message wakes
// may be any worker's.
func (a *app) serveWebhooks(ctx context.Context) error {
	if a.hooks == nil {
		<-ctx.Done()
		return nil
	}
	return server.Webhooks{
		Secret: func(endpoint string) string { return a.models.WebhookSecret(endpoint).Reveal() },
		Wake:   a.service.Wake,
		Logger: a.logger,
	}.Serve(ctx, a.hooks)
}

// announce says that the listeners take connections.
func (a *app) announce(ctx context.Context) error {
	r := a.ready()
	if err := r.write(a.cfg.ReadyFile); err != nil {
		return err
	}
	if err := r.print(a.stdout); err != nil {
		return err
	}
	a.standing.arrive()
	a.logger.InfoContext(ctx, "serving", "listen", r.Listen, "worker_id", r.WorkerID, "store", a.at.String())
	if a.models.demo != nil && a.cfg.LogFormat == "text" { // nobody reads the others as they come
		hint(a.stderr, os.Args[0], r.Listen, a.certs != nil, a.cfg.Auth != "none")
	}
	return nil
}

func (a *app) ready() ready {
	this := thisBuild()
	r := ready{
		PID: os.Getpid(), Version: this.Version, Schema: this.Schema, Listen: a.listen.Addr().String(), WorkerID: a.service.WorkerID().String(),
		Store: a.at.engine, Models: a.models.Models(),
	}
	if a.web != nil {
		r.Web = a.web.Addr().String()
	}
	if a.ops != nil {
		r.Ops = a.ops.Addr().String()
	}
	if a.hooks != nil {
		r.Webhooks = a.hooks.Addr().String()
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

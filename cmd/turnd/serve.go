package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/turnd/turnd/internal/telemetry"
	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/live"
)

// closeTime bounds each step of letting go that does not depend on a reply.
const closeTime = 5 * time.Second

type serveCmd struct {
	Config `embed:""`
}

// Run implements the command. It returns nil after a clean drain.
func (c serveCmd) Run(ctx context.Context) error {
	logger := newLogger(os.Stderr, c.LogFormat, c.LogLevel)
	return serveHouse(ctx, c.Config, logger, os.Stdout, os.Stderr)
}

// serveHouse builds everything, serves until ctx ends, and takes everything down again.
func serveHouse(ctx context.Context, cfg Config, logger *slog.Logger, stdout, stderr io.Writer) error {
	h, err := build(ctx, cfg, logger)
	if err != nil {
		return errors.Join(err, h.close())
	}
	h.stdout, h.stderr = stdout, stderr
	return errors.Join(h.serve(ctx), h.close())
}

// house is everything that serves, in the order in which it is built. It is taken down in the opposite order.
type house struct {
	cfg    Config
	logger *slog.Logger
	at     place

	stdout, stderr io.Writer

	models  models
	store   store
	tel     *telemetry.Telemetry
	hub     *live.Hub
	service *turns.Service
	server  *server.Server

	listen net.Listener
	ops    net.Listener // nil when off

	// closers take down what was built, the last first.
	closers []func(context.Context) error
}

// build makes everything up to open listeners, and serves nothing yet. What was made before an error is in the house.
func build(ctx context.Context, cfg Config, logger *slog.Logger) (h *house, err error) {
	h = &house{cfg: cfg, logger: logger}
	if h.at, err = cfg.Database.place(); err != nil {
		return h, err
	}
	logger.InfoContext(ctx, "starting", "version", version())
	logger.DebugContext(ctx, "configured", "config", cfg)
	if cfg.SpoolDir != "" {
		logger.WarnContext(ctx, "nothing is spooled to disk by this build; the spool dir is not used", "spool_dir", cfg.SpoolDir)
	}
	for _, step := range []func(context.Context) error{
		h.openModels, h.openStore, h.setUpTelemetry, h.makeService, h.openListeners,
	} {
		if err := step(ctx); err != nil {
			return h, err
		}
	}
	return h, nil
}

func (h *house) openModels(ctx context.Context) (err error) {
	if h.models, err = openModels(ctx, h.cfg, h.logger); err != nil {
		return err
	}
	h.closers = append(h.closers, h.models.close)
	return nil
}

func (h *house) openStore(ctx context.Context) (err error) {
	if h.store, err = openStore(ctx, h.cfg, h.at); err != nil {
		return err
	}
	h.closers = append(h.closers, func(context.Context) error { return h.store.close() })
	return nil
}

func (h *house) setUpTelemetry(ctx context.Context) (err error) {
	if h.tel, err = telemetry.Setup(ctx, telemetry.Config{Version: version(), InstanceID: uuid.NewString()}); err != nil {
		return err
	}
	h.closers = append(h.closers, h.tel.Shutdown)
	return nil
}

func (h *house) makeService(context.Context) (err error) {
	h.hub = live.New(live.Config{
		Store: h.store, Logger: h.logger, Tick: h.cfg.Checkpoint, Heartbeat: h.cfg.Heartbeat, Patience: h.cfg.Lease,
	})
	h.service, err = turns.New(turns.Config{
		Store: h.store, Generator: h.models, Logs: h.hub, Logger: h.logger, Meter: h.tel.Meter,
		WorkerName: h.cfg.workerName(), Settings: h.cfg.settings(),
	})
	if err != nil {
		return err
	}
	err = h.tel.Gauge("turnd.in_flight", "{reply}", "Replies that this worker runs.", func() int64 { return int64(h.service.InFlight()) })
	if err != nil {
		return err
	}
	h.server, err = server.New(server.Config{
		Service: h.service, Follower: h.hub, Logger: h.logger, Auth: h.cfg.Auth,
		MaxContentBytes: h.cfg.MaxContentBytes, Grace: h.cfg.Grace + lastEndings,
	})
	return err
}

func (h *house) openListeners(ctx context.Context) (err error) {
	if h.listen, err = h.open(ctx, "--listen", h.cfg.Listen); err != nil || h.cfg.OpsListen == off {
		return err
	}
	if !isLoopback(localAddress(h.cfg.OpsListen)) {
		h.logger.WarnContext(ctx, "the ops listener is not on loopback: whoever reaches it reads metrics and profiles", "ops", h.cfg.OpsListen)
	}
	h.ops, err = h.open(ctx, "--ops-listen", h.cfg.OpsListen)
	return err
}

// open listens. Who serves on a listener closes it too; the closer is for when that never begins.
func (h *house) open(ctx context.Context, flag, address string) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", localAddress(address))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	h.closers = append(h.closers, func(context.Context) error {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return l, nil
}

// close takes down what was built, the last first.
func (h *house) close() error {
	var problems []error
	for i := len(h.closers) - 1; i >= 0; i-- {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		problems = append(problems, h.closers[i](ctx))
		cancel()
	}
	return errors.Join(problems...)
}

// settings are the limits of the service.
func (c Config) settings() turns.Settings {
	return turns.Settings{
		Lease: c.Lease, Sweep: c.Sweep, Checkpoint: c.Checkpoint,
		MaxCalls: c.MaxCalls, MaxWait: c.MaxWait, Backoff: c.Backoff,
		MaxContentBytes: c.MaxContentBytes, MaxOutputBytes: c.MaxOutputBytes, MaxInFlight: c.MaxInFlight,
	}
}

// workerName is a label for people; a host that has no name is no reason not to serve.
func (c Config) workerName() string {
	if c.WorkerName != "" {
		return c.WorkerName
	}
	name, err := os.Hostname()
	if err != nil {
		return "unnamed"
	}
	return name
}

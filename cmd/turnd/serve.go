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
	"go.opentelemetry.io/otel"

	"github.com/turnd/turnd/internal/certs"
	"github.com/turnd/turnd/internal/telemetry"
	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/live"
	"github.com/turnd/turnd/web"
)

// closeTime bounds each step of letting go that does not depend on a reply.
const closeTime = 5 * time.Second

type serveCmd struct {
	Config `embed:""`
}

// Run implements the command. It returns nil after a clean drain.
func (c serveCmd) Run(ctx context.Context, h haste) error {
	logger := newLogger(os.Stderr, c.LogFormat, c.LogLevel)
	defer holdFloor(os.Getenv("GOGC"), memoryLimit())()
	return serveApp(ctx, h, c.Config, logger, os.Stdout, os.Stderr)
}

// serveApp builds everything, serves until ctx ends, and takes everything down again, which is quicker once h is done.
func serveApp(ctx context.Context, h haste, cfg Config, logger *slog.Logger, stdout, stderr io.Writer) error {
	a, err := build(ctx, cfg, logger)
	if err != nil {
		return errors.Join(err, a.close())
	}
	a.haste, a.stdout, a.stderr = h, stdout, stderr
	return errors.Join(a.serve(ctx), a.close())
}

// app is everything that serves, in the order in which it is built. It is taken down in the opposite order.
type app struct {
	cfg    Config
	logger *slog.Logger
	at     place

	haste          haste
	stdout, stderr io.Writer

	certs   *certs.Keeper // nil without TLS
	models  models
	hangups chan os.Signal // nil without files to read again
	store   store
	spool   turns.Spool
	tel     *telemetry.Telemetry
	hub     *live.Hub
	service *turns.Service
	server  *server.Server

	standing standing

	listen net.Listener
	web    net.Listener // nil when off
	ops    net.Listener // nil when off
	hooks  net.Listener // nil when off

	// closers take down what was built, the last first.
	closers []func(context.Context) error
}

// build makes everything up to open listeners, and serves nothing yet. What was made before an error is in the app.
func build(ctx context.Context, cfg Config, logger *slog.Logger) (a *app, err error) {
	a = &app{cfg: cfg, logger: logger}
	if a.at, err = cfg.Database.place(); err != nil {
		return a, err
	}
	this := thisBuild()
	logger.InfoContext(ctx, "starting", "version", this.Version, "commit", this.Commit, "go", this.Go, "schema", this.Schema)
	logger.DebugContext(ctx, "configured", "config", cfg)
	for _, step := range []func(context.Context) error{
		a.setUpTelemetry, a.openCerts, a.openModels, a.openStore, a.openSpool, a.makeService, a.openListeners,
	} {
		if err := step(ctx); err != nil {
			return a, err
		}
	}
	return a, nil
}

func (a *app) openModels(ctx context.Context) (err error) {
	a.hearHangups()
	if a.models, err = openModels(ctx, a.cfg, a.logger, a.tel.Meter); err != nil {
		return err
	}
	a.closers = append(a.closers, a.models.close)
	return nil
}

func (a *app) openStore(ctx context.Context) (err error) {
	if a.store, err = openStore(ctx, a.cfg, a.at, a.tel, a.logger); err != nil {
		return err
	}
	a.closers = append(a.closers, func(context.Context) error { return a.store.close() })
	return nil
}

func (a *app) setUpTelemetry(ctx context.Context) (err error) {
	cfg, err := a.cfg.Telemetry.config()
	if err != nil {
		return err
	}
	cfg.Version, cfg.InstanceID, cfg.Logger = version(), uuid.NewString(), a.logger
	if a.tel, err = telemetry.Setup(ctx, cfg); err != nil {
		return err
	}
	otel.SetErrorHandler(telemetry.Complaints(a.logger))
	a.closers = append(a.closers, a.tel.Shutdown)
	return nil
}

func (a *app) makeService(ctx context.Context) (err error) {
	a.hub = live.New(live.Config{
		Store: a.store, Logger: a.logger, Tick: a.cfg.Checkpoint, Heartbeat: a.cfg.Heartbeat, Patience: a.cfg.Lease,
		Bus: a.newBus(), OnStop: a.nudge, Meter: a.tel.Meter,
	})
	limits, suspended, err := a.newLimits()
	if err != nil {
		return err
	}
	a.service, err = turns.New(turns.Config{
		Store: a.store, Generator: a.models, Logs: a.hub, Spool: a.spool, Limiter: limits, Suspensions: suspended, Logger: a.logger, Meter: a.tel.Meter, Tracer: a.tel.Tracer,
		WorkerName: a.cfg.workerName(), Settings: a.cfg.settings(),
	})
	if err != nil {
		return err
	}
	if err := a.showGauges(); err != nil {
		return err
	}
	who, err := a.openAuth(ctx)
	if err != nil {
		return err
	}
	a.standing.readiness = a.newReadiness(a.logger)
	a.server, err = server.New(server.Config{
		Service: a.service, Follower: a.hub, Readiness: a.standing.readiness, Logger: a.logger, Auth: a.cfg.Auth, Authenticator: who, Recheck: a.cfg.recheck(),
		MaxContentBytes: a.cfg.MaxContentBytes, Grace: a.cfg.Grace + lastEndings, TLS: a.tlsConfig(),
		CORSOrigins: a.cfg.corsOrigins(), Console: web.Console(), Stats: a.tel.Calls(),
	})
	return err
}

func (a *app) openListeners(ctx context.Context) (err error) {
	if a.listen, err = a.open(ctx, "--listen", a.cfg.Listen); err != nil {
		return err
	}
	if a.cfg.WebListen != off {
		if a.web, err = a.open(ctx, "--web-listen", a.cfg.WebListen); err != nil {
			return err
		}
	}
	if a.cfg.WebhookListen != off {
		if a.hooks, err = a.open(ctx, "--webhook-listen", a.cfg.WebhookListen); err != nil {
			return err
		}
	}
	if a.cfg.OpsListen == off {
		return nil
	}
	if !isLoopback(localAddress(a.cfg.OpsListen)) {
		a.logger.WarnContext(ctx, "the ops listener is not on loopback: whoever reaches it reads metrics and profiles", "ops", a.cfg.OpsListen)
	}
	a.ops, err = a.open(ctx, "--ops-listen", a.cfg.OpsListen)
	return err
}

// open listens. Who serves on a listener closes it too; the closer is for when that never begins.
func (a *app) open(ctx context.Context, flag, address string) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", localAddress(address))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	a.closers = append(a.closers, func(context.Context) error {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return l, nil
}

// close takes down what was built, the last first.
func (a *app) close() error {
	var problems []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		problems = append(problems, a.closers[i](ctx))
		cancel()
	}
	return errors.Join(problems...)
}

// settings are the limits of the service.
func (c Config) settings() turns.Settings {
	return turns.Settings{
		Lease: c.Lease, Sweep: c.Sweep, Checkpoint: c.Checkpoint,
		MaxCalls: c.MaxCalls, MaxWait: c.MaxWait, Backoff: c.Backoff,
		ConversationCaps: turns.Caps{Turns: c.Caps.MaxConversationTurns, Tokens: c.Caps.MaxConversationTokens,
			CostMicros: c.Caps.MaxConversationCost, Time: c.Caps.MaxConversationTime},
		TenantCaps: turns.Caps{Turns: c.Caps.MaxTenantTurns, Tokens: c.Caps.MaxTenantTokens, CostMicros: c.Caps.MaxTenantCost,
			Time: c.Caps.MaxTenantTime},
		MaxContentBytes: c.MaxContentBytes, MaxOutputBytes: c.MaxOutputBytes,
		MaxInFlight: c.MaxInFlight, MaxQueue: c.MaxQueue, MaxWaiting: c.MaxWaiting, ToolWait: turns.DefaultSettings().ToolWait,
		OnAmbiguous: turns.OnAmbiguous(c.OnAmbiguous), OnPartial: turns.OnPartial(c.OnPartial),
		Submissions: c.submissions(), MaxSubjectInFlight: int(c.limit(c.Limits.MaxSubjectInFlight, defaultSubjectInFlight)),
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

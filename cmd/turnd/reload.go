package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/turnd/turnd/llm"
)

// hearHangups takes SIGHUP from the process if there are files to read again, of models or of TLS. Without any it does what
// it always does: end a process whose terminal is gone.
func (a *app) hearHangups() {
	if a.cfg.Models == "" && !a.cfg.TLS.on() {
		return
	}
	a.hangups = make(chan os.Signal, 1)
	signal.Notify(a.hangups, syscall.SIGHUP)
	a.closers = append(a.closers, func(context.Context) error {
		signal.Stop(a.hangups)
		return nil
	})
}

// reloads reads the files again at each SIGHUP until ctx ends. One that comes while a file is being read is kept.
func (a *app) reloads(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.hangups:
			if a.certs != nil {
				a.certs.Reload(ctx)
			}
			if a.cfg.Models != "" {
				a.reload(ctx)
			}
		}
	}
}

// reload serves what the models file says now, and the keys it names, or goes on as before where it can't be served.
func (a *app) reload(ctx context.Context) {
	config, err := llm.Load(a.cfg.Models)
	if err == nil {
		err = a.models.Replace(config)
	}
	if err != nil {
		a.refuseReload(ctx, err)
		return
	}
	a.logger.InfoContext(ctx, "models file is in force", "file", a.cfg.Models, "models", strings.Join(a.models.Models(), ","))
	if err := a.ready().write(a.cfg.ReadyFile); err != nil {
		a.logger.ErrorContext(ctx, "the ready file still names the models from before", "err", err)
	}
}

// refuseReload gives each problem a line of its own.
func (a *app) refuseReload(ctx context.Context, err error) {
	problems := llm.Problems(err)
	for _, p := range problems {
		a.logger.ErrorContext(ctx, "models file has a mistake", "file", a.cfg.Models, "line", p.Line, "entry", p.Path, "problem", p.Text)
	}
	refused := []any{"file", a.cfg.Models}
	if len(problems) == 0 {
		refused = append(refused, "err", err)
	}
	a.logger.ErrorContext(ctx, "models file is refused, the one before stays in force", refused...)
}

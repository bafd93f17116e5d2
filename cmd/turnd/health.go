package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/turnd/turnd/migrations"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server"
)

// What checks of readiness say is not so.
var (
	errDraining  = errors.New("draining")
	errStarting  = errors.New("the listeners do not take connections yet")
	errLeaseLost = errors.New("this worker's lease was not renewed in time")
)

// standing is where this process is between its start and its end.
type standing struct {
	// listening is set once the listeners take connections, leaving with the first signal.
	listening, leaving atomic.Bool
	readiness          *server.Readiness
}

// leave says that this process will end soon, although it still takes what comes.
func (s *standing) leave() {
	s.leaving.Store(true)
	s.readiness.Nudge()
}

// arrive says that this process takes connections.
func (s *standing) arrive() {
	s.listening.Store(true)
	s.readiness.Nudge()
}

// newReadiness lists what must hold for work to be sent here.
func (a *app) newReadiness(log *slog.Logger) *server.Readiness {
	return server.NewReadiness(log,
		server.Check{Name: "store", Costs: true, Ready: a.store.ping},
		server.Check{Name: "migrations", Costs: true, Ready: a.store.checkVersion},
		// Without the lease no reply starts here, and everything else goes on.
		server.Check{Name: "lease", Services: []string{turnsv1.TurnService_ServiceDesc.ServiceName}, Ready: func(context.Context) error {
			return unlessHolds(a.service.HoldsLease(), errLeaseLost)
		}},
		server.Check{Name: "listeners", Expected: true, Ready: func(context.Context) error {
			return unlessHolds(a.standing.listening.Load(), errStarting)
		}},
		server.Check{Name: "serving", Expected: true, Ready: func(context.Context) error {
			return unlessHolds(!a.standing.leaving.Load() && !a.service.Draining(), errDraining)
		}},
	)
}

func unlessHolds(holds bool, err error) error {
	if holds {
		return nil
	}
	return err
}

// checkVersion compares the database with this build. A newer schema does not stand in the way: during an upgrade the
// database is migrated while workers of the build before still serve, and all of them would become not ready at once.
func (s store) checkVersion(ctx context.Context) error {
	version, err := s.schemaVersion(ctx)
	if err == nil && version < migrations.Latest() {
		err = fmt.Errorf("%w: it is at %d and must be at %d; run `turnd migrate up`", migrations.ErrSchemaOld, version, migrations.Latest())
	}
	return err
}

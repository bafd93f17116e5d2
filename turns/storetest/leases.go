package storetest

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func leases() []promise {
	return []promise{
		{"a worker whose lease holds is not buried", aHoldingLeaseIsNotBuried},
		{"a worker whose lease ran out is buried once", anExpiredLeaseIsBuriedOnce},
		{"a worker that is excepted is not buried", anExceptedWorkerIsNotBuried},
		{"a worker that renewed late but before its burial is not buried", aRenewedWorkerIsNotBuried},
		{"a buried worker can't renew, ever", aBuriedWorkerCantRenew},
		{"an unknown worker can't renew", anUnknownWorkerCantRenew},
		{"a worker that retired is dead, and retiring again is no error", aRetiredWorkerIsDead},
		{"a renewal moves one row only", aRenewalMovesOneRow},
		{"dead workers are forgotten once their lease ended long ago", deadWorkersAreForgotten},
		{"a dead worker with a reply in flight is not forgotten", anOwnerIsNotForgotten},
		{"a worker that is not dead is never forgotten", aLivingWorkerIsNotForgotten},
		{"workers are listed with what they run, and for an hour after they died", workersAreListed},
		{"the uptime of the database does not run backwards", uptimeGrows},
	}
}

func workersAreListed(t *testing.T, w *world) {
	w.fresh()
	w.fresh()
	idle, dead, gone := w.register(), w.register(), w.register()
	w.bury(dead)
	w.exec("UPDATE workers SET lease_until = (SELECT max(lease_until) FROM workers) WHERE worker_id = %s", dead.UUID)
	w.bury(gone)
	w.forget(gone)
	views, err := w.Store.ListWorkers(w.ctx)
	require.NoError(t, err)
	require.Len(t, views, 3)
	require.Equal(t, []turns.Worker{{ID: w.worker, Name: "w"}, {ID: idle, Name: "w"}, {ID: dead, Name: "w"}},
		[]turns.Worker{views[0].Worker, views[1].Worker, views[2].Worker})
	require.Equal(t, []int{2, 0, 0}, []int{views[0].InFlight, views[1].InFlight, views[2].InFlight})
	require.Equal(t, []bool{false, false, true}, []bool{views[0].Dead, views[1].Dead, views[2].Dead})
	require.Positive(t, views[0].Uptime)
	require.WithinDuration(t, time.Now().Add(hour), views[0].LeaseUntil, 5*time.Minute)
}

// forget moves a worker's whole life so far back that nobody wants to know of it.
func (w *world) forget(id turns.WorkerID) {
	w.t.Helper()
	rows, err := w.Query(w.ctx, "SELECT lease_until FROM workers LIMIT 1")
	require.NoError(w.t, err)
	if _, ok := rows[0][0].(int64); ok {
		w.exec("UPDATE workers SET lease_until = 1 WHERE worker_id = %s", id.UUID)
		return
	}
	w.exec("UPDATE workers SET lease_until = '2001-01-01' WHERE worker_id = %s", id.UUID)
}

func aHoldingLeaseIsNotBuried(t *testing.T, w *world) {
	buried, err := w.Store.BuryWorkers(w.ctx)
	require.NoError(t, err)
	require.Empty(t, buried)
	require.NoError(t, w.Store.RenewLease(w.ctx, w.worker, time.Hour))
}

func anExpiredLeaseIsBuriedOnce(t *testing.T, w *world) {
	other := w.register()
	w.bury(other)
	buried, err := w.Store.BuryWorkers(w.ctx)
	require.NoError(t, err)
	require.Empty(t, buried)
}

func anExceptedWorkerIsNotBuried(t *testing.T, w *world) {
	self, other, third := w.worker, w.register(), w.register()
	for _, id := range []turns.WorkerID{self, other, third} {
		w.expireLease(id)
	}
	buried, err := w.Store.BuryWorkers(w.ctx, self, third, turns.WorkerID{})
	require.NoError(t, err)
	require.Equal(t, []turns.WorkerID{other}, buried)
	require.NoError(t, w.Store.RenewLease(w.ctx, self, time.Hour))
	require.NoError(t, w.Store.RenewLease(w.ctx, third, time.Hour))
}

func aRenewedWorkerIsNotBuried(t *testing.T, w *world) {
	w.expireLease(w.worker)
	require.NoError(t, w.Store.RenewLease(w.ctx, w.worker, time.Hour))
	aHoldingLeaseIsNotBuried(t, w)
}

func aBuriedWorkerCantRenew(t *testing.T, w *world) {
	w.bury(w.worker)
	w.unchanged(func() {
		require.ErrorIs(t, w.Store.RenewLease(w.ctx, w.worker, time.Hour), turns.ErrBuried)
	})
}

func anUnknownWorkerCantRenew(t *testing.T, w *world) {
	w.unchanged(func() {
		err := w.Store.RenewLease(w.ctx, turns.WorkerID{UUID: uuid.New()}, time.Hour)
		require.ErrorIs(t, err, turns.ErrBuried)
	})
}

func aRetiredWorkerIsDead(t *testing.T, w *world) {
	require.NoError(t, w.Store.RetireWorker(w.ctx, w.worker))
	require.NoError(t, w.Store.RetireWorker(w.ctx, w.worker))
	require.ErrorIs(t, w.Store.RenewLease(w.ctx, w.worker, time.Hour), turns.ErrBuried)
	w.lose(w.first(newConversation()))
	w.expireLease(w.worker)
	buried, err := w.Store.BuryWorkers(w.ctx)
	require.NoError(t, err)
	require.Empty(t, buried, "it was dead already")
}

func aRenewalMovesOneRow(t *testing.T, w *world) {
	other := w.register()
	w.expireLease(other)
	require.NoError(t, w.Store.RenewLease(w.ctx, w.worker, time.Hour))
	w.bury(other)
}

func deadWorkersAreForgotten(t *testing.T, w *world) {
	w.bury(w.register())
	require.NoError(t, w.Store.ForgetWorkers(w.ctx, time.Hour))
	require.EqualValues(t, 2, w.count("SELECT count(*) FROM workers"), "its lease ended less than an hour ago")
	require.NoError(t, w.Store.ForgetWorkers(w.ctx, 0))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM workers"))
}

func anOwnerIsNotForgotten(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.bury(w.worker)
	w.unchanged(func() { require.NoError(t, w.Store.ForgetWorkers(w.ctx, 0)) })
	won, err := w.Store.Sweep(w.ctx, sweeping(claim, 0))
	require.NoError(t, err)
	require.True(t, won)
	require.NoError(t, w.Store.ForgetWorkers(w.ctx, 0))
	require.Zero(t, w.count("SELECT count(*) FROM workers"))
}

func aLivingWorkerIsNotForgotten(t *testing.T, w *world) {
	w.expireLease(w.worker)
	w.unchanged(func() { require.NoError(t, w.Store.ForgetWorkers(w.ctx, 0)) })
}

func uptimeGrows(t *testing.T, w *world) {
	before, err := w.Store.Server(w.ctx)
	require.NoError(t, err)
	require.NotEmpty(t, before.Name)
	require.GreaterOrEqual(t, before.Uptime, time.Duration(0))
	after, err := w.Store.Server(w.ctx)
	require.NoError(t, err)
	require.GreaterOrEqual(t, after.Uptime, before.Uptime)
	require.Equal(t, before.Name, after.Name, "it is the same life")
}

package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

const registerWorker = `
INSERT INTO workers (worker_id, name, lease_until, start_time)
VALUES (@worker, @name, clock_timestamp() + @ttl::bigint * interval '1 microsecond', clock_timestamp())
ON CONFLICT (worker_id) DO UPDATE SET lease_until = excluded.lease_until, beat = workers.beat + 1
WHERE NOT workers.dead`

// RegisterWorker implements turns.Leases. The same worker again is a renewal, so that an unknown outcome can be repeated.
func (s *Store) RegisterWorker(ctx context.Context, w turns.Worker, ttl time.Duration) error {
	n, err := exec(ctx, s.lease, registerWorker, pgx.NamedArgs{
		"worker": zeronull.UUID(w.ID.UUID), "name": w.Name, "ttl": ttl.Microseconds()})
	return buriedIfNone("register worker", n, err)
}

const renewLease = `
UPDATE workers SET lease_until = clock_timestamp() + @ttl::bigint * interval '1 microsecond', beat = beat + 1
WHERE worker_id = @worker AND NOT dead`

// RenewLease implements turns.Leases.
func (s *Store) RenewLease(ctx context.Context, id turns.WorkerID, ttl time.Duration) error {
	n, err := exec(ctx, s.lease, renewLease, pgx.NamedArgs{"worker": zeronull.UUID(id.UUID), "ttl": ttl.Microseconds()})
	return buriedIfNone("renew lease", n, err)
}

func buriedIfNone(op string, changed int64, err error) error {
	if err != nil {
		return mapWrite(op, err)
	}
	if changed == 0 {
		return fmt.Errorf("%s: %w", op, turns.ErrBuried)
	}
	return nil
}

const retireWorker = `UPDATE workers SET dead = true, draining = true WHERE worker_id = @worker AND NOT dead`

// RetireWorker implements turns.Leases.
func (s *Store) RetireWorker(ctx context.Context, id turns.WorkerID) error {
	_, err := exec(ctx, s.lease, retireWorker, pgx.NamedArgs{"worker": zeronull.UUID(id.UUID)})
	return mapWrite("retire worker", err)
}

// The lock waits for claims under way, which hold FOR KEY SHARE on their owner, and looks at the lease again after that.
const buryWorkers = `
WITH expired AS (
	SELECT worker_id FROM workers WHERE NOT dead AND lease_until < clock_timestamp() AND worker_id <> ALL (@except::uuid[])
	ORDER BY worker_id FOR UPDATE
)
UPDATE workers w SET dead = true FROM expired e WHERE w.worker_id = e.worker_id AND NOT w.dead RETURNING w.worker_id`

// BuryWorkers implements turns.Leases.
func (s *Store) BuryWorkers(ctx context.Context, except ...turns.WorkerID) ([]turns.WorkerID, error) {
	args := pgx.NamedArgs{"except": column(except, func(id *turns.WorkerID) [16]byte { return id.UUID })}
	ids, err := collect(ctx, s.pool, buryWorkers, args, pgx.RowTo[[16]byte])
	if err != nil {
		return nil, mapWrite("bury workers", err)
	}
	return column(ids, func(id *[16]byte) turns.WorkerID { return turns.WorkerID{UUID: *id} }), nil
}

const forgetWorkers = `
DELETE FROM workers w
WHERE w.dead AND w.lease_until < clock_timestamp() - @age::bigint * interval '1 microsecond'
	AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.owner = w.worker_id AND t.role = 'assistant' AND t.status = 'in_flight')`

// ForgetWorkers implements turns.Leases. A dead worker claims nothing, so the look at its replies can't be overtaken.
func (s *Store) ForgetWorkers(ctx context.Context, age time.Duration) error {
	_, err := exec(ctx, s.pool, forgetWorkers, pgx.NamedArgs{"age": age.Microseconds()})
	return mapWrite("forget workers", err)
}

const listWorkers = `
SELECT w.worker_id, w.name, w.lease_until, w.dead,
	(SELECT count(*) FROM turns t WHERE t.owner = w.worker_id AND t.role = 'assistant' AND t.status = 'in_flight')::int AS in_flight,
	(EXTRACT(EPOCH FROM CASE WHEN w.dead THEN LEAST(w.lease_until, clock_timestamp()) ELSE clock_timestamp() END - w.start_time)
		* 1000000)::bigint AS uptime_us
FROM workers w
WHERE NOT w.dead OR w.lease_until > clock_timestamp() - interval '1 hour'
ORDER BY w.start_time, w.worker_id LIMIT 1000`

type workerRow struct {
	WorkerID   [16]byte
	Name       string
	LeaseUntil time.Time
	Dead       bool
	InFlight   int
	UptimeUs   int64
}

// ListWorkers implements turns.Leases.
func (s *Store) ListWorkers(ctx context.Context) ([]turns.WorkerView, error) {
	rows, err := collect(ctx, s.pool, listWorkers, nil, pgx.RowToStructByName[workerRow])
	if err != nil {
		return nil, mapRead("list workers", err)
	}
	return column(rows, func(r *workerRow) turns.WorkerView {
		return turns.WorkerView{Worker: turns.Worker{ID: turns.WorkerID{UUID: r.WorkerID}, Name: r.Name},
			LeaseUntil: r.LeaseUntil.UTC(), Dead: r.Dead, InFlight: r.InFlight, Uptime: microseconds(r.UptimeUs)}
	}), nil
}

// The start of the postmaster names the life of a server: two of them do not start in the same microsecond.
const server = `SELECT pg_postmaster_start_time()::text AS name,
	(EXTRACT(EPOCH FROM clock_timestamp() - pg_postmaster_start_time()) * 1000000)::bigint AS uptime_us`

type serverRow struct {
	Name     string
	UptimeUs int64
}

// Server implements turns.Leases. It asks over the connection that serves the lease.
func (s *Store) Server(ctx context.Context) (turns.ServerLife, error) {
	row, _, err := one(ctx, s.lease, server, nil, pgx.RowToStructByName[serverRow])
	return turns.ServerLife{Name: row.Name, Uptime: microseconds(row.UptimeUs)}, mapRead("ask which server answers", err)
}

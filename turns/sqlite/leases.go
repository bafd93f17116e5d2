package sqlite

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/turnd/turnd/turns"
)

const buryAllWorkers = `UPDATE workers SET dead = 1, lease_until = MIN(lease_until, @now) WHERE dead = 0`

// buryAll declares dead whoever was alive in the file: the lock says that nobody is.
func (s *Store) buryAll(ctx context.Context) error {
	return s.writeTx(ctx, "bury the workers of earlier processes", func(t *tx) error {
		_, err := t.exec(buryAllWorkers, arg("now", t.now))
		return err
	})
}

const registerWorker = `INSERT INTO workers (worker_id, name, lease_until, start_time)
	VALUES (@worker, @name, @now + @ttl, @now)`

// RegisterWorker implements turns.Leases.
func (s *Store) RegisterWorker(ctx context.Context, w turns.Worker, ttl time.Duration) error {
	return s.writeTx(ctx, "register worker", func(t *tx) error {
		_, err := t.exec(registerWorker, blob("worker", w.ID.UUID), arg("name", w.Name), arg("ttl", ttl.Microseconds()), arg("now", t.now))
		return err
	})
}

const renewLease = `UPDATE workers SET lease_until = @now + @ttl, beat = beat + 1 WHERE worker_id = @worker AND dead = 0`

// RenewLease implements turns.Leases.
func (s *Store) RenewLease(ctx context.Context, id turns.WorkerID, ttl time.Duration) error {
	return s.writeTx(ctx, "renew lease", func(t *tx) error {
		renewed, err := t.won(renewLease, blob("worker", id.UUID), arg("ttl", ttl.Microseconds()), arg("now", t.now))
		if err == nil && !renewed {
			err = turns.ErrBuried
		}
		return err
	})
}

const retireWorker = `UPDATE workers SET dead = 1, lease_until = MIN(lease_until, @now) WHERE worker_id = @worker AND dead = 0`

// RetireWorker implements turns.Leases.
func (s *Store) RetireWorker(ctx context.Context, id turns.WorkerID) error {
	return s.writeTx(ctx, "retire worker", func(t *tx) error {
		_, err := t.exec(retireWorker, blob("worker", id.UUID), arg("now", t.now))
		return err
	})
}

const buryWorkers = `UPDATE workers SET dead = 1 WHERE dead = 0 AND lease_until <= @now
		AND hex(worker_id) NOT IN (SELECT value FROM json_each(@except))
	RETURNING worker_id`

// BuryWorkers implements turns.Leases.
func (s *Store) BuryWorkers(ctx context.Context, except ...turns.WorkerID) (buried []turns.WorkerID, err error) {
	spared := make([]string, len(except))
	for i, id := range except {
		spared[i] = strings.ToUpper(hex.EncodeToString(id.UUID[:]))
	}
	list, err := json.Marshal(spared)
	if err != nil {
		return nil, err
	}
	err = s.writeTx(ctx, "bury workers", func(t *tx) error {
		return t.query(func(scan func(...any) error) error {
			var id uuid.UUID
			err := scan(&id)
			buried = append(buried, turns.WorkerID{UUID: id})
			return err
		}, buryWorkers, textArg("except", list), arg("now", t.now))
	})
	if err != nil {
		return nil, err
	}
	return buried, nil
}

const listWorkers = `SELECT worker_id, name, lease_until, dead, start_time,
		(SELECT COUNT(*) FROM turns WHERE owner = workers.worker_id AND status = 'in_flight')
	FROM workers WHERE dead = 0 OR lease_until > @now - 3600000000 ORDER BY start_time, worker_id LIMIT 1000`

// ListWorkers implements turns.Leases.
func (s *Store) ListWorkers(ctx context.Context) (views []turns.WorkerView, err error) {
	err = s.readTx(ctx, "list workers", func(t *tx) error {
		return t.query(func(scan func(...any) error) error {
			var v turns.WorkerView
			var until, start int64
			err := scan(&v.ID.UUID, &v.Name, &until, &v.Dead, &start, &v.InFlight)
			end := t.now
			if v.Dead {
				end = min(end, until)
			}
			v.LeaseUntil, v.Uptime = timeOf(until), micros(end-start)
			views = append(views, v)
			return err
		}, listWorkers, arg("now", t.now))
	})
	if err != nil {
		return nil, err
	}
	return views, nil
}

const forgetWorkers = `DELETE FROM workers WHERE dead = 1 AND lease_until < @now - @age
	AND NOT EXISTS (SELECT 1 FROM turns WHERE owner = workers.worker_id AND status = 'in_flight')`

// ForgetWorkers implements turns.Leases.
func (s *Store) ForgetWorkers(ctx context.Context, age time.Duration) error {
	return s.writeTx(ctx, "forget workers", func(t *tx) error {
		_, err := t.exec(forgetWorkers, arg("age", age.Microseconds()), arg("now", t.now))
		return err
	})
}

package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/quota"
)

// claimReserving claims items of which each has a reservation. What meets a limit for itself is answered so; what meets one
// because of others of the batch waits until it is known what became of those. Each round answers an item at least.
func (s *Store) claimReserving(ctx context.Context, claims []turns.Claim) ([]turns.ClaimResult, error) {
	results := make([]turns.ClaimResult, len(claims))
	now, later := places(claims), []int(nil)
	for len(now) > 0 {
		refused, err := s.claimAndCharge(ctx, claims, now, results)
		if err != nil {
			return nil, err
		}
		for _, r := range slices.Backward(refused) {
			n := now[r.N]
			if now = slices.Delete(now, r.N, r.N+1); r.Alone {
				results[n].Met = &r.Met
			} else {
				later = append(later, n)
			}
		}
		if len(refused) == 0 || len(now) == 0 {
			now, later = later, nil
		}
	}
	return results, nil
}

// claimAndCharge is one transaction for the items at some places. Where it answers refusals it has written nothing.
func (s *Store) claimAndCharge(ctx context.Context, claims []turns.Claim, at []int, results []turns.ClaimResult) (refused []quota.Refusal, err error) {
	items := make([]turns.Claim, len(at))
	for i, n := range at {
		items[i] = claims[n]
	}
	args, err := claimArgs(items)
	if err != nil {
		return nil, unfit{err}
	}
	keys := column(items, func(c *turns.Claim) turns.ReservationKey {
		return turns.ReservationKey{Key: c.Key, Turn: c.Turn, Generation: c.Reply.Generation}
	})
	var of []lane
	for _, c := range items {
		of = append(of, lanesOf(c.Tenant, c.Reserve)...)
	}
	var won []claimRow
	err = s.reserving(ctx, of, func(ctx context.Context, c *pgx.Conn) error {
		refused = nil
		var shares []shareRow
		b := &pgx.Batch{}
		b.Queue("begin")
		b.Queue(claim, named(args)).Query(into(&won, pgx.RowToStructByName[claimRow]))
		b.Queue(lockShares, named(reservationArgs(keys))).Query(into(&shares, pgx.RowToStructByName[shareRow]))
		if err := c.SendBatch(ctx, b).Close(); err != nil || len(won) == 0 {
			return err
		}
		slices.SortFunc(won, func(x, y claimRow) int { return x.N - y.N })
		asks := column(won, func(w *claimRow) quota.Ask {
			return askFor(keys[w.N], items[w.N].Tenant, items[w.N].Reserve, shares[w.N])
		})
		refused, err = chargeIn(ctx, c, asks, won[0].CreateTime)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(refused) > 0 {
		for i := range refused {
			refused[i].N = won[refused[i].N].N
		}
		return refused, nil
	}
	for _, r := range won {
		results[at[r.N]] = turns.ClaimResult{Won: true, CreateTime: r.CreateTime.UTC()}
	}
	return nil, nil
}

func askFor(key turns.ReservationKey, tenant turns.Tenant, reserve *turns.Reservation, row shareRow) quota.Ask {
	a := quota.Ask{ReservationKey: key, Tenant: tenant, Reserve: *reserve, Spent: row.Spent}
	if row.Found {
		share := row.share(key)
		a.Old = &share
	}
	return a
}

// into gathers the rows of a statement of a batch.
func into[T any](list *[]T, scan pgx.RowToFunc[T]) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*list, err = pgx.CollectRows(rows, scan)
		return err
	}
}

// enqueueAndCharge stores a turn in line with its reservation.
func (s *Store) enqueueAndCharge(ctx context.Context, e turns.Enqueueing, args pgx.NamedArgs) (row enqueueRow, met *turns.LimitMet, err error) {
	key := turns.ReservationKey{Key: e.Key, Turn: e.Turn, Generation: 1}
	tenant := e.Waiting.Caller.Tenant
	err = s.reserving(ctx, lanesOf(tenant, e.Reserve), func(ctx context.Context, c *pgx.Conn) error {
		met = nil
		var rows []enqueueRow
		var shares []shareRow
		b := &pgx.Batch{}
		b.Queue("begin")
		b.Queue(enqueue, named(args)).Query(into(&rows, pgx.RowToStructByName[enqueueRow]))
		b.Queue(lockShares, named(reservationArgs([]turns.ReservationKey{key}))).Query(into(&shares, pgx.RowToStructByName[shareRow]))
		if err := c.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if row = rows[0]; row.Seq == 0 {
			return nil
		}
		refused, err := chargeIn(ctx, c, []quota.Ask{askFor(key, tenant, e.Reserve, shares[0])}, time.Time(row.CreateTime))
		if len(refused) > 0 {
			met = &refused[0].Met
		}
		return err
	})
	return row, met, err
}

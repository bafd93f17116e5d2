package sqlite

import (
	"context"
	"time"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/quota"
)

const readPlaceOf = `SELECT NOT erased, waiting <> '' FROM turns WHERE conversation_key = @key AND id = @turn AND role = 'user'`

// readNewest reads the reply of a generation that is live or, if none is, the newest.
const readNewest = `SELECT status, reason FROM turns
	WHERE conversation_key = @key AND responds_to = @turn AND generation = @generation
	ORDER BY status <> 'abandoned' DESC, attempt DESC LIMIT 1`

// outcome is what has become of a turn and generation.
func (t *tx) outcome(key turns.ReservationKey) (o quota.Outcome, err error) {
	place := []any{arg("key", key.Key[:]), blob("turn", key.Turn.UUID)}
	if _, err := t.found(readPlaceOf, place, &o.Stored, &o.Waiting); err != nil {
		return o, err
	}
	if _, err := t.found(readNewest, reservationArgs(key), &o.Status, &o.Reason); err != nil {
		return o, err
	}
	_, err = t.found(readSpent, reservationArgs(key), &o.Spent, &o.Called)
	return o, err
}

// settleShares settles reservations and counts those that are over. Those of turns that are deleted have left their line.
func (t *tx) settleShares(keys []turns.ReservationKey, deleted bool) (closed int, err error) {
	var all []quota.Settled
	for _, key := range keys {
		share, err := t.share(key)
		if err != nil {
			return 0, err
		}
		if share == nil {
			continue
		}
		outcome, err := t.outcome(key)
		if err != nil {
			return 0, err
		}
		outcome.Waiting = outcome.Waiting && !deleted
		all = append(all, quota.Settled{Share: *share, Outcome: outcome})
	}
	w, closed := quota.Settle(all)
	return closed, t.writeQuotas(w)
}

// shareKeys are the reservations that a statement gives.
func (t *tx) shareKeys(text string, args ...any) (keys []turns.ReservationKey, err error) {
	err = t.query(func(scan func(...any) error) error {
		var k turns.ReservationKey
		var raw []byte
		if err := scan(&raw, &k.Turn.UUID, &k.Generation); err != nil {
			return err
		}
		k.Key = turns.ConversationKey(raw)
		keys = append(keys, k)
		return nil
	}, text, args...)
	return keys, err
}

const openSharesOfTurn = openShares + ` WHERE q.conversation_key = @key AND q.turn_id = @turn AND q.open`

// settleDeleted settles what is open of turns that are deleted now: after it nobody can tell any more what became of them.
func (t *tx) settleDeleted(key turns.ConversationKey, tree []treeRow) error {
	for _, r := range tree {
		if !r.user {
			continue
		}
		keys, err := t.shareKeys(openSharesOfTurn, arg("key", key[:]), blob("turn", r.id))
		if err != nil {
			return err
		}
		if _, err := t.settleShares(keys, true); err != nil {
			return err
		}
	}
	return nil
}

// SettleReservations implements turns.Quotas.
func (s *Store) SettleReservations(ctx context.Context, keys []turns.ReservationKey) error {
	if len(keys) == 0 {
		return nil
	}
	return s.writeTx(ctx, "settle reservations", func(t *tx) error {
		_, err := t.settleShares(quota.Distinct(keys), false)
		return err
	})
}

// What is held for long stays at the front of this order, and each call looks at it again.
const (
	openShares = `SELECT q.conversation_key, q.turn_id, q.generation FROM quota_reservations q`

	thatEnded = ` AND NOT EXISTS (SELECT 1 FROM turns u
			WHERE u.conversation_key = q.conversation_key AND u.id = q.turn_id AND u.role = 'user' AND u.waiting <> '')
		AND NOT EXISTS (SELECT 1 FROM turns a
			WHERE a.conversation_key = q.conversation_key AND a.responds_to = q.turn_id AND a.role = 'assistant'
				AND a.status <> 'abandoned' AND a.status <> 'complete' AND a.generation = q.generation)
	ORDER BY q.create_time LIMIT @limit`

	endedShares         = openShares + ` INDEXED BY quota_reservations_by_age WHERE q.open` + thatEnded
	endedSharesOfTenant = openShares + ` INDEXED BY quota_reservations_open WHERE q.open AND q.tenant = @tenant
		AND (@subject = '' OR q.subject = @subject)` + thatEnded
)

// SettleOpen implements turns.Quotas.
func (s *Store) SettleOpen(ctx context.Context, tenant turns.Tenant, subject string, limit int) (settled int, err error) {
	text, args := endedShares, []any{arg("limit", limit)}
	if tenant != "" {
		text, args = endedSharesOfTenant, append(args, arg("tenant", string(tenant)), arg("subject", subject))
	}
	var keys []turns.ReservationKey
	err = s.readTx(ctx, "read what has ended", func(t *tx) (err error) {
		keys, err = t.shareKeys(text, args...)
		return err
	})
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	err = s.writeTx(ctx, "settle what has ended", func(t *tx) error {
		settled, err = t.settleShares(keys, false)
		return err
	})
	if err != nil {
		return 0, err
	}
	return settled, nil
}

// QuotaUsed implements turns.Quotas.
func (s *Store) QuotaUsed(ctx context.Context, tenant turns.Tenant, subject string) (used turns.QuotaUse, err error) {
	err = s.readTx(ctx, "read a quota", func(t *tx) error {
		day := timeOf(t.now).UTC().Truncate(24 * time.Hour)
		row, err := t.quota(quota.Name{Tenant: tenant, Subject: subject, Day: quota.DayOf(day)})
		if err != nil {
			return err
		}
		bucket, err := t.quota(quota.Name{Tenant: tenant, Subject: subject, Day: quota.BucketDay})
		used = turns.QuotaUse{Turns: row.Turns, Tokens: row.Tokens, Left: day.AddDate(0, 0, 1).Sub(timeOf(t.now)),
			Ahead: max(bucket.NextAt.Sub(timeOf(t.now)), 0)}
		return err
	})
	return used, err
}

// What is open is read along its index: as much as a subject, or a tenant, has running and in line.
const openCharge = `SELECT COALESCE(SUM(q.turns), 0), COALESCE(SUM(q.tokens), 0) FROM quota_reservations q INDEXED BY quota_reservations_open
	WHERE q.open AND q.tenant = @tenant AND q.day = @day AND CASE WHEN @subject = '' THEN q.of_tenant ELSE q.subject = @reserved AND q.of_subject END`

// QuotaSettled implements turns.Quotas.
func (s *Store) QuotaSettled(ctx context.Context, tenant turns.Tenant, subject string) (settled turns.QuotaUse, err error) {
	err = s.readTx(ctx, "read what is settled of a quota", func(t *tx) error {
		day := timeOf(t.now).UTC().Truncate(24 * time.Hour)
		name := quota.Name{Tenant: tenant, Subject: subject, Day: quota.DayOf(day)}
		row, err := t.quota(name)
		if err != nil {
			return err
		}
		var open quota.Row
		_, err = t.found(openCharge, append(nameArgs(name), arg("reserved", quota.ReservedBy(subject))), &open.Turns, &open.Tokens)
		settled = turns.QuotaUse{Turns: max(row.Turns-open.Turns, 0), Tokens: max(row.Tokens-open.Tokens, 0),
			Left: day.AddDate(0, 0, 1).Sub(timeOf(t.now))}
		return err
	})
	return settled, err
}

// A row that counts submissions goes once it has counted none for as long.
const forgetQuotas = `DELETE FROM quotas WHERE rowid IN (SELECT rowid FROM quotas INDEXED BY quotas_by_day
	WHERE day < @day AND (next_at IS NULL OR next_at < @before) ORDER BY day LIMIT @limit)`

const forgetShares = `DELETE FROM quota_reservations WHERE rowid IN (SELECT rowid FROM quota_reservations INDEXED BY quota_reservations_closed
	WHERE NOT open AND day < @day ORDER BY day LIMIT @limit)`

// ForgetQuotas implements turns.Quotas.
func (s *Store) ForgetQuotas(ctx context.Context, age time.Duration, limit int) (more bool, err error) {
	err = s.writeTx(ctx, "forget quotas", func(t *tx) error {
		before := t.now - age.Microseconds()
		args := []any{arg("day", quota.DayOf(timeOf(before))), arg("limit", limit)}
		shares, err := t.exec(forgetShares, args...)
		if err != nil {
			return err
		}
		quotas, err := t.exec(forgetQuotas, append(args, arg("before", before))...)
		more = shares == int64(limit) || quotas == int64(limit)
		return err
	})
	return more && err == nil, err
}

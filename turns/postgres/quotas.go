package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/quota"
)

// The reservations are locked by the statement before, in the same transaction, so that this one sees each attempt that was
// made under them: a claim charges its reservation before it is committed.
const readOutcomes = `
WITH item AS (
	SELECT * FROM unnest(@n::int[], @key::uuid[], @turn::uuid[], @generation::int[]) AS i (n, conversation_key, turn_id, generation)
)
SELECT i.n, COALESCE(NOT u.erased, false) AS stored, COALESCE(u.waiting <> '', false) AS waiting,
	COALESCE(r.status, '') AS status, COALESCE(r.reason, '') AS reason, s.called, s.spent
FROM item i
LEFT JOIN turns u ON u.conversation_key = i.conversation_key AND u.id = i.turn_id AND u.role = 'user'
LEFT JOIN LATERAL (
	SELECT a.status, a.reason FROM turns a
	WHERE a.conversation_key = i.conversation_key AND a.responds_to = i.turn_id AND a.generation = i.generation
	ORDER BY (a.status <> 'abandoned') DESC, a.attempt DESC LIMIT 1) r ON true
CROSS JOIN LATERAL (` + spentOfGeneration + `) s
ORDER BY i.n`

type outcomeRow struct {
	N               int
	Stored, Waiting bool
	Status, Reason  string
	Called          bool
	Spent           int64
}

func (r outcomeRow) outcome() quota.Outcome {
	return quota.Outcome{Stored: r.Stored, Waiting: r.Waiting, Status: turns.Status(r.Status), Reason: turns.Reason(r.Reason),
		Called: r.Called, Spent: r.Spent}
}

// SettleReservations implements turns.Quotas.
func (s *Store) SettleReservations(ctx context.Context, keys []turns.ReservationKey) error {
	_, err := s.settle(ctx, quota.Distinct(keys))
	return mapWrite("settle reservations", err)
}

// settle settles reservations and counts those that are over. Its error is raw.
func (s *Store) settle(ctx context.Context, keys []turns.ReservationKey) (closed int, err error) {
	if len(keys) == 0 {
		return 0, nil
	}
	err = s.inOne(ctx, func(ctx context.Context, c *pgx.Conn) error {
		b := &pgx.Batch{}
		b.Queue("begin")
		all, err := settledIn(ctx, c, b, keys)
		if err != nil {
			return err
		}
		var w quota.Writes
		if w, closed = quota.Settle(all); len(w.Shares) == 0 {
			return nil
		}
		b = &pgx.Batch{}
		queueWrites(b, w)
		b.Queue("commit")
		return c.SendBatch(ctx, b).Close()
	})
	return closed, err
}

// batcher is a connection or a transaction.
type batcher interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// settledIn locks reservations and reads what became of their turns, after what the batch has already.
func settledIn(ctx context.Context, c batcher, b *pgx.Batch, keys []turns.ReservationKey) (all []quota.Settled, err error) {
	var shares []shareRow
	var outcomes []outcomeRow
	b.Queue(lockShares, named(reservationArgs(keys))).Query(into(&shares, pgx.RowToStructByName[shareRow]))
	b.Queue(readOutcomes, named(reservationArgs(keys))).Query(into(&outcomes, pgx.RowToStructByName[outcomeRow]))
	if err := c.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	for i, r := range shares {
		if r.Found {
			all = append(all, quota.Settled{Share: r.share(keys[r.N]), Outcome: outcomes[i].outcome()})
		}
	}
	return all, nil
}

const openSharesOfTurns = `
SELECT r.conversation_key, r.turn_id, r.generation FROM quota_reservations r
WHERE r.conversation_key = @key AND r.turn_id = ANY (@turns::uuid[]) AND r.open`

// settleDeleted settles, in the transaction that deletes turns, what is open of them: after it nobody can tell any more what
// became of them. What stood in line has left it.
func settleDeleted(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs) error {
	rows, err := all(ctx, tx, openSharesOfTurns, pgx.NamedArgs{"key": args["key"], "turns": args["turns"]}, pgx.RowToStructByName[keyRow])
	if err != nil || len(rows) == 0 {
		return err
	}
	settled, err := settledIn(ctx, tx, &pgx.Batch{}, column(rows, (*keyRow).key))
	if err != nil {
		return err
	}
	for i := range settled {
		settled[i].Outcome.Waiting = false
	}
	w, _ := quota.Settle(settled)
	b := &pgx.Batch{}
	queueWrites(b, w)
	return tx.SendBatch(ctx, b).Close()
}

// What is held for long stays at the front of this order, and each call looks at it again.
const (
	openShares = `
SELECT r.conversation_key, r.turn_id, r.generation FROM quota_reservations r WHERE r.open`

	thatEnded = `
	AND NOT EXISTS (SELECT 1 FROM turns u
		WHERE u.conversation_key = r.conversation_key AND u.id = r.turn_id AND u.role = 'user' AND u.waiting <> '')
	AND NOT EXISTS (SELECT 1 FROM turns a
		WHERE a.conversation_key = r.conversation_key AND a.responds_to = r.turn_id AND a.role = 'assistant'
			AND a.status <> 'abandoned' AND a.status <> 'complete' AND a.generation = r.generation)
ORDER BY r.create_time LIMIT @limit`

	endedShares          = openShares + thatEnded
	endedSharesOfTenant  = openShares + ` AND r.tenant = @tenant` + thatEnded
	endedSharesOfSubject = openShares + ` AND r.tenant = @tenant AND r.subject = @subject` + thatEnded
)

type keyRow struct {
	ConversationKey [16]byte
	TurnID          [16]byte
	Generation      int32
}

func (r *keyRow) key() turns.ReservationKey {
	return turns.ReservationKey{Key: r.ConversationKey, Turn: turns.TurnID{UUID: uuid.UUID(r.TurnID)}, Generation: r.Generation}
}

// SettleOpen implements turns.Quotas.
func (s *Store) SettleOpen(ctx context.Context, tenant turns.Tenant, subject string, limit int) (settled int, err error) {
	const op = "settle what has ended"
	sql, args := endedShares, pgx.NamedArgs{"limit": limit}
	switch {
	case tenant != "" && subject != "":
		sql, args["tenant"], args["subject"] = endedSharesOfSubject, string(tenant), subject
	case tenant != "":
		sql, args["tenant"] = endedSharesOfTenant, string(tenant)
	}
	rows, err := collect(ctx, s.pool, sql, args, pgx.RowToStructByName[keyRow])
	if err != nil {
		return 0, mapRead(op, err)
	}
	settled, err = s.settle(ctx, column(rows, (*keyRow).key))
	return settled, mapWrite(op, err)
}

const quotaUsed = `
SELECT coalesce(q.turns, 0) AS turns, coalesce(q.tokens, 0) AS tokens,
	(extract(epoch FROM n.at::date + interval '1 day' - n.at) * 1000000)::bigint AS left_us,
	greatest((extract(epoch FROM (b.next_at AT TIME ZONE 'UTC') - n.at) * 1000000)::bigint, 0) AS ahead_us
FROM (SELECT statement_timestamp() AT TIME ZONE 'UTC' AS at) n
LEFT JOIN quotas q ON q.tenant = @tenant AND q.subject = @subject AND q.day = n.at::date
LEFT JOIN quotas b ON b.tenant = @tenant AND b.subject = @subject AND b.day = @bucket::date`

type usedRow struct{ Turns, Tokens, LeftUs, AheadUs int64 }

// QuotaUsed implements turns.Quotas.
func (s *Store) QuotaUsed(ctx context.Context, tenant turns.Tenant, subject string) (turns.QuotaUse, error) {
	args := pgx.NamedArgs{"tenant": string(tenant), "subject": subject, "bucket": quota.BucketDay}
	row, _, err := one(ctx, s.pool, quotaUsed, args, pgx.RowToStructByName[usedRow])
	return turns.QuotaUse{Turns: row.Turns, Tokens: row.Tokens, Left: microseconds(row.LeftUs), Ahead: microseconds(row.AheadUs)}, mapRead("read a quota", err)
}

// What is open is read along its index, of today's alone: as much as a subject, or a tenant, has running and in line.
const (
	quotaSettled = `
SELECT greatest(coalesce(q.turns, 0) - coalesce(o.turns, 0), 0)::bigint AS turns, greatest(coalesce(q.tokens, 0) - coalesce(o.tokens, 0), 0)::bigint AS tokens,
	(extract(epoch FROM n.at::date + interval '1 day' - n.at) * 1000000)::bigint AS left_us, 0::bigint AS ahead_us
FROM (SELECT statement_timestamp() AT TIME ZONE 'UTC' AS at) n
LEFT JOIN quotas q ON q.tenant = @tenant AND q.subject = @subject AND q.day = n.at::date
CROSS JOIN LATERAL (SELECT sum(r.turns) AS turns, sum(r.tokens) AS tokens FROM quota_reservations r
	WHERE r.open AND r.tenant = @tenant AND r.day = n.at::date`

	settledOfTenant  = quotaSettled + ` AND r.of_tenant) o`
	settledOfSubject = quotaSettled + ` AND r.subject = @reserved AND r.of_subject) o`
)

// QuotaSettled implements turns.Quotas.
func (s *Store) QuotaSettled(ctx context.Context, tenant turns.Tenant, subject string) (turns.QuotaUse, error) {
	sql, args := settledOfTenant, pgx.NamedArgs{"tenant": string(tenant), "subject": subject}
	if subject != "" {
		sql, args["reserved"] = settledOfSubject, quota.ReservedBy(subject)
	}
	row, _, err := one(ctx, s.pool, sql, args, pgx.RowToStructByName[usedRow])
	return turns.QuotaUse{Turns: row.Turns, Tokens: row.Tokens, Left: microseconds(row.LeftUs)}, mapRead("read what is settled of a quota", err)
}

// The age goes back from the day's end. A row that counts submissions goes once it has counted none for as long.
const (
	isOldQuota = ` q.day < ((statement_timestamp() - @age_us::bigint * interval '1 microsecond') AT TIME ZONE 'UTC')::date
	AND (q.next_at IS NULL OR q.next_at < statement_timestamp() - @age_us::bigint * interval '1 microsecond')`

	oldQuotas = `
SELECT q.tenant, q.subject, q.day::text AS day FROM quotas q WHERE` + isOldQuota + ` ORDER BY q.day LIMIT @limit`

	forgetQuotas = `
DELETE FROM quotas q USING unnest(@n::int[], @tenant::text[], @subject::text[], @day::text[]) AS i (n, tenant, subject, day)
WHERE q.tenant = i.tenant AND q.subject = i.subject AND q.day = i.day::date AND` + isOldQuota

	oldShares = `
SELECT r.conversation_key, r.turn_id, r.generation FROM quota_reservations r
WHERE NOT r.open AND r.day < ((statement_timestamp() - @age_us::bigint * interval '1 microsecond') AT TIME ZONE 'UTC')::date
ORDER BY r.day LIMIT @limit`

	forgetShares = `
DELETE FROM quota_reservations r
USING unnest(@n::int[], @key::uuid[], @turn::uuid[], @generation::int[]) AS i (n, conversation_key, turn_id, generation)
WHERE r.conversation_key = i.conversation_key AND r.turn_id = i.turn_id AND r.generation = i.generation AND NOT r.open
	AND r.day < ((statement_timestamp() - @age_us::bigint * interval '1 microsecond') AT TIME ZONE 'UTC')::date`
)

// ForgetQuotas implements turns.Quotas.
func (s *Store) ForgetQuotas(ctx context.Context, age time.Duration, limit int) (more bool, err error) {
	const op = "forget quotas"
	which := pgx.NamedArgs{"age_us": age.Microseconds(), "limit": limit}
	shares, err := collect(ctx, s.pool, oldShares, which, pgx.RowToStructByName[keyRow])
	if err != nil {
		return false, mapRead(op, err)
	}
	names, err := collect(ctx, s.pool, oldQuotas, which, pgx.RowToStructByName[oldRow])
	if err != nil {
		return false, mapRead(op, err)
	}
	old, days := reservationArgs(column(shares, (*keyRow).key)), nameArgs(column(names, (*oldRow).name))
	old["age_us"], days["age_us"] = which["age_us"], which["age_us"]
	if _, err := exec(ctx, s.pool, forgetShares, old); err != nil {
		return false, mapWrite(op, err)
	}
	if _, err := exec(ctx, s.pool, forgetQuotas, days); err != nil {
		return false, mapWrite(op, err)
	}
	return len(shares) == limit || len(names) == limit, nil
}

type oldRow struct{ Tenant, Subject, Day string }

func (r *oldRow) name() quota.Name {
	return quota.Name{Tenant: turns.Tenant(r.Tenant), Subject: r.Subject, Day: r.Day}
}

package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/quota"
)

// A reservation is charged in the transaction that claims, or stores, what it is for, and after that: what is lost charges
// nothing. The rows of reservations are locked below the conversation, then those of quotas, a tenant's own first. What is
// to be written is decided under these locks. They are held for one answer to this end and back, and the commit.
const lockShares = `
WITH item AS (
	SELECT * FROM unnest(@n::int[], @key::uuid[], @turn::uuid[], @generation::int[]) AS i (n, conversation_key, turn_id, generation)
), locked AS (
	SELECT r.* FROM item i JOIN quota_reservations r
		ON r.conversation_key = i.conversation_key AND r.turn_id = i.turn_id AND r.generation = i.generation
	ORDER BY r.conversation_key, r.turn_id, r.generation FOR UPDATE OF r
)
SELECT i.n, l.tenant IS NOT NULL AS found, COALESCE(l.tenant, '') AS tenant, COALESCE(l.subject, '') AS subject,
	COALESCE(l.day::text, '') AS day, COALESCE(l.of_subject, false) AS of_subject, COALESCE(l.of_tenant, false) AS of_tenant,
	COALESCE(l.turns, 0)::bigint AS turns, COALESCE(l.tokens, 0) AS tokens, COALESCE(l.settled_before, 0) AS before,
	COALESCE(l.open, false) AS open, s.spent
FROM item i
LEFT JOIN locked l ON l.conversation_key = i.conversation_key AND l.turn_id = i.turn_id AND l.generation = i.generation
CROSS JOIN LATERAL (` + spentOfGeneration + `) s
ORDER BY i.n`

// spentOfGeneration is what the calls of a turn and generation took, by the ledger.
const spentOfGeneration = `
	SELECT COALESCE(sum(p.input_tokens + p.output_tokens), 0)::bigint AS spent, count(*) > 0 AS called
	FROM turns a JOIN provider_calls p ON p.conversation_key = a.conversation_key AND p.reply_id = a.id
	WHERE a.conversation_key = i.conversation_key AND a.responds_to = i.turn_id AND a.generation = i.generation`

type shareRow struct {
	N                     int
	Found                 bool
	Tenant, Subject, Day  string
	OfSubject, OfTenant   bool
	Turns, Tokens, Before int64
	Open                  bool
	Spent                 int64
}

func (r shareRow) share(key turns.ReservationKey) quota.Share {
	return quota.Share{ReservationKey: key, Tenant: turns.Tenant(r.Tenant), Subject: r.Subject, Day: r.Day, OfSubject: r.OfSubject,
		OfTenant: r.OfTenant, Turns: r.Turns, Tokens: r.Tokens, Before: r.Before, Open: r.Open}
}

func reservationArgs(keys []turns.ReservationKey) pgx.NamedArgs {
	return pgx.NamedArgs{
		"n":          places(keys),
		"key":        column(keys, func(k *turns.ReservationKey) zeronull.UUID { return zeronull.UUID(k.Key) }),
		"turn":       column(keys, func(k *turns.ReservationKey) zeronull.UUID { return zeronull.UUID(k.Turn.UUID) }),
		"generation": column(keys, func(k *turns.ReservationKey) int32 { return k.Generation }),
	}
}

const makeQuotas = `
INSERT INTO quotas (tenant, subject, day)
SELECT i.tenant, i.subject, i.day::date FROM unnest(@n::int[], @tenant::text[], @subject::text[], @day::text[]) AS i (n, tenant, subject, day)
ORDER BY i.n
ON CONFLICT DO NOTHING`

const lockQuotas = `
WITH locked AS (
	SELECT i.n, q.* FROM unnest(@n::int[], @tenant::text[], @subject::text[], @day::text[]) AS i (n, tenant, subject, day)
	JOIN quotas q ON q.tenant = i.tenant AND q.subject = i.subject AND q.day = i.day::date
	ORDER BY i.n FOR NO KEY UPDATE OF q
)
SELECT tenant, subject, day::text AS day, turns, tokens, next_at, clock_timestamp() AS now FROM locked`

type quotaRow struct {
	Tenant, Subject, Day string
	Turns, Tokens        int64
	NextAt               zeronull.Timestamptz
	Now                  time.Time
}

func nameArgs(names []quota.Name) pgx.NamedArgs {
	return pgx.NamedArgs{
		"n":       places(names),
		"tenant":  column(names, func(n *quota.Name) string { return string(n.Tenant) }),
		"subject": column(names, func(n *quota.Name) string { return n.Subject }),
		"day":     column(names, func(n *quota.Name) string { return n.Day }),
	}
}

const writeShares = `
INSERT INTO quota_reservations AS r (conversation_key, turn_id, generation, tenant, subject, day, of_subject, of_tenant, turns, tokens,
	settled_before, open, create_time)
SELECT i.conversation_key, i.turn_id, i.generation, i.tenant, i.subject, i.day::date, i.of_subject, i.of_tenant, i.turns, i.tokens, i.before,
	i.open, clock_timestamp()
FROM unnest(@key::uuid[], @turn::uuid[], @generation::int[], @tenant::text[], @subject::text[], @day::text[], @of_subject::bool[],
	@of_tenant::bool[], @turns::int[], @tokens::bigint[], @before::bigint[], @open::bool[])
	AS i (conversation_key, turn_id, generation, tenant, subject, day, of_subject, of_tenant, turns, tokens, before, open)
ON CONFLICT (conversation_key, turn_id, generation) DO UPDATE SET subject = excluded.subject, day = excluded.day,
	of_subject = excluded.of_subject, of_tenant = excluded.of_tenant, turns = excluded.turns, tokens = excluded.tokens,
	settled_before = excluded.settled_before, open = excluded.open`

func writeShareArgs(shares []quota.Share) pgx.NamedArgs {
	args := reservationArgs(column(shares, func(s *quota.Share) turns.ReservationKey { return s.ReservationKey }))
	delete(args, "n")
	args["tenant"] = column(shares, func(s *quota.Share) string { return string(s.Tenant) })
	args["subject"] = column(shares, func(s *quota.Share) string { return s.Subject })
	args["day"] = column(shares, func(s *quota.Share) string { return s.Day })
	args["of_subject"] = column(shares, func(s *quota.Share) bool { return s.OfSubject })
	args["of_tenant"] = column(shares, func(s *quota.Share) bool { return s.OfTenant })
	args["turns"] = column(shares, func(s *quota.Share) int64 { return s.Turns })
	args["tokens"] = column(shares, func(s *quota.Share) int64 { return s.Tokens })
	args["before"] = column(shares, func(s *quota.Share) int64 { return s.Before })
	args["open"] = column(shares, func(s *quota.Share) bool { return s.Open })
	return args
}

// A settlement has not locked the rows that it moves before. A row of a day that was forgotten is not made again.
const moveQuotas = `
WITH item AS (
	SELECT * FROM unnest(@n::int[], @tenant::text[], @subject::text[], @day::text[], @turns::bigint[], @tokens::bigint[], @next_at::timestamptz[])
		AS i (n, tenant, subject, day, turns, tokens, next_at)
), locked AS (
	SELECT i.* FROM item i JOIN quotas q ON q.tenant = i.tenant AND q.subject = i.subject AND q.day = i.day::date
	ORDER BY i.n FOR NO KEY UPDATE OF q
)
UPDATE quotas q SET turns = GREATEST(q.turns + l.turns, 0), tokens = GREATEST(q.tokens + l.tokens, 0), next_at = COALESCE(l.next_at, q.next_at)
FROM locked l WHERE q.tenant = l.tenant AND q.subject = l.subject AND q.day = l.day::date`

func moveArgs(moves []quota.Move) pgx.NamedArgs {
	args := nameArgs(column(moves, func(m *quota.Move) quota.Name { return m.Name }))
	args["turns"] = column(moves, func(m *quota.Move) int64 { return m.Turns })
	args["tokens"] = column(moves, func(m *quota.Move) int64 { return m.Tokens })
	args["next_at"] = column(moves, func(m *quota.Move) zeronull.Timestamptz { return zeronull.Timestamptz(m.NextAt) })
	return args
}

// queueWrites adds the writes that were decided.
func queueWrites(b *pgx.Batch, w quota.Writes) {
	if len(w.Shares) > 0 {
		b.Queue(writeShares, named(writeShareArgs(w.Shares)))
	}
	if len(w.Moves) > 0 {
		b.Queue(moveQuotas, named(moveArgs(w.Moves)))
	}
}

// transaction is what is done with a connection from its beginning to its commit.
type transaction func(context.Context, *pgx.Conn) error

// inOne runs do with a connection, and takes back what it has begun there unless it was committed.
func (s *Store) inOne(ctx context.Context, do transaction) error {
	return s.pool.repeat(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		c := conn.Conn()
		err := do(ctx, c)
		if c.PgConn().TxStatus() != 'I' && !c.IsClosed() {
			_, undo := c.Exec(ctx, "rollback")
			if err == nil {
				err = undo
			}
		}
		return err
	})
}

// chargeIn charges, within the transaction that the connection is in, what was won there, and commits it. Where it answers
// refusals nothing is written, and the transaction is still open.
func chargeIn(ctx context.Context, c *pgx.Conn, asks []quota.Ask, at time.Time) ([]quota.Refusal, error) {
	plan := quota.Plan(asks, quota.DayOf(at))
	var rows []quota.Row
	if names := plan.Names(); len(names) > 0 {
		locked, err := lockRows(ctx, c, plan.Made(), names)
		if err != nil {
			return nil, err
		}
		for _, r := range locked {
			at = r.Now
			rows = append(rows, quota.Row{Name: quota.Name{Tenant: turns.Tenant(r.Tenant), Subject: r.Subject, Day: r.Day},
				Turns: r.Turns, Tokens: r.Tokens, NextAt: utc(r.NextAt)})
		}
	}
	w, refused := plan.Admit(rows, at)
	if len(refused) > 0 {
		return refused, nil
	}
	b := &pgx.Batch{}
	queueWrites(b, w)
	b.Queue("commit")
	return nil, c.SendBatch(ctx, b).Close()
}

func lockRows(ctx context.Context, c *pgx.Conn, made, names []quota.Name) (rows []quotaRow, err error) {
	b := &pgx.Batch{}
	b.Queue(makeQuotas, named(nameArgs(made)))
	b.Queue(lockQuotas, named(nameArgs(names))).Query(func(r pgx.Rows) error {
		rows, err = pgx.CollectRows(r, pgx.RowToStructByName[quotaRow])
		return err
	})
	err = c.SendBatch(ctx, b).Close()
	return rows, err
}

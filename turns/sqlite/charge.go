package sqlite

import (
	"database/sql"
	"time"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/quota"
)

const readShare = `SELECT tenant, subject, day, of_subject, of_tenant, turns, tokens, settled_before, open FROM quota_reservations
	WHERE conversation_key = @key AND turn_id = @turn AND generation = @generation`

// readSpent is what the calls of a turn and generation took, by the ledger.
const readSpent = `SELECT COALESCE(SUM(p.input_tokens + p.output_tokens), 0), COUNT(*) > 0
	FROM turns a JOIN provider_calls p ON p.conversation_key = a.conversation_key AND p.reply_id = a.id
	WHERE a.conversation_key = @key AND a.responds_to = @turn AND a.generation = @generation`

const readQuota = `SELECT turns, tokens, next_at FROM quotas WHERE tenant = @tenant AND subject = @subject AND day = @day`

const writeShare = `INSERT INTO quota_reservations (conversation_key, turn_id, generation, tenant, subject, day, of_subject, of_tenant, turns,
		tokens, settled_before, open, create_time)
	VALUES (@key, @turn, @generation, @tenant, @subject, @day, @of_subject, @of_tenant, @turns, @tokens, @before, @open, @now)
	ON CONFLICT (conversation_key, turn_id, generation) DO UPDATE SET subject = excluded.subject, day = excluded.day,
		of_subject = excluded.of_subject, of_tenant = excluded.of_tenant, turns = excluded.turns, tokens = excluded.tokens,
		settled_before = excluded.settled_before, open = excluded.open`

const makeQuota = `INSERT INTO quotas (tenant, subject, day) VALUES (@tenant, @subject, @day) ON CONFLICT DO NOTHING`

// A row of a day that was forgotten is not made again.
const moveQuota = `UPDATE quotas SET turns = MAX(turns + @turns, 0), tokens = MAX(tokens + @tokens, 0), next_at = COALESCE(@next_at, next_at)
	WHERE tenant = @tenant AND subject = @subject AND day = @day`

func reservationArgs(k turns.ReservationKey) []any {
	return []any{arg("key", k.Key[:]), blob("turn", k.Turn.UUID), arg("generation", k.Generation)}
}

func nameArgs(n quota.Name) []any {
	return []any{arg("tenant", string(n.Tenant)), arg("subject", n.Subject), arg("day", n.Day)}
}

// share reads a reservation, nil if there is none.
func (t *tx) share(key turns.ReservationKey) (*quota.Share, error) {
	s := quota.Share{ReservationKey: key}
	found, err := t.found(readShare, reservationArgs(key), &s.Tenant, &s.Subject, &s.Day, &s.OfSubject, &s.OfTenant, &s.Turns, &s.Tokens,
		&s.Before, &s.Open)
	if err != nil || !found {
		return nil, err
	}
	return &s, nil
}

// charge charges a reservation for what was written in this transaction. Where it meets a limit nothing is charged.
func (t *tx) charge(key turns.ReservationKey, tenant turns.Tenant, r *turns.Reservation) (*turns.LimitMet, error) {
	ask := quota.Ask{ReservationKey: key, Tenant: tenant, Reserve: *r}
	var err error
	if ask.Old, err = t.share(key); err != nil {
		return nil, err
	}
	var called bool
	if _, err := t.found(readSpent, reservationArgs(key), &ask.Spent, &called); err != nil {
		return nil, err
	}
	plan := quota.Plan([]quota.Ask{ask}, quota.DayOf(timeOf(t.now)))
	for _, n := range plan.Made() {
		if _, err := t.exec(makeQuota, nameArgs(n)...); err != nil {
			return nil, err
		}
	}
	var rows []quota.Row
	for _, n := range plan.Names() {
		row, err := t.quota(n)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	w, refused := plan.Admit(rows, timeOf(t.now))
	if len(refused) > 0 {
		return &refused[0].Met, nil
	}
	return nil, t.writeQuotas(w)
}

func (t *tx) quota(n quota.Name) (quota.Row, error) {
	row := quota.Row{Name: n}
	var next sql.NullInt64
	_, err := t.found(readQuota, nameArgs(n), &row.Turns, &row.Tokens, &next)
	if next.Valid {
		row.NextAt = timeOf(next.Int64)
	}
	return row, err
}

func (t *tx) writeQuotas(w quota.Writes) error {
	for _, s := range w.Shares {
		args := append(reservationArgs(s.ReservationKey), arg("tenant", string(s.Tenant)), arg("subject", s.Subject), arg("day", s.Day),
			arg("of_subject", s.OfSubject), arg("of_tenant", s.OfTenant), arg("turns", s.Turns), arg("tokens", s.Tokens),
			arg("before", s.Before), arg("open", s.Open), arg("now", t.now))
		if _, err := t.exec(writeShare, args...); err != nil {
			return err
		}
	}
	for _, m := range w.Moves {
		args := append(nameArgs(m.Name), arg("turns", m.Turns), arg("tokens", m.Tokens), arg("next_at", nullTime(m.NextAt)))
		if _, err := t.exec(moveQuota, args...); err != nil {
			return err
		}
	}
	return nil
}

func nullTime(at time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: at.UnixMicro(), Valid: !at.IsZero()}
}

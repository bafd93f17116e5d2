package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/turnd/turnd/turns"
)

// Live replies are counted beside those that run alone, by the index of a turn's attempts: the one that keeps a second from
// being live may be what is missing.
const readBacklog = `
SELECT (SELECT count(*) FROM (SELECT 1 FROM turns WHERE role = 'assistant' AND status = 'held' LIMIT @most) held) AS held,
	(SELECT count(*) FROM (SELECT 1 FROM turns WHERE role = 'user' AND waiting <> '' LIMIT @most) line) AS in_line,
	coalesce(extract(epoch FROM clock_timestamp() - (SELECT min(create_time) FROM turns
		WHERE role = 'assistant' AND status = 'in_flight')), 0)::float8 AS oldest,
	(SELECT count(DISTINCT (r.conversation_key, r.responds_to)) FROM (
		SELECT conversation_key, responds_to, id FROM turns WHERE role = 'assistant' AND status = 'in_flight' LIMIT @most) r
		WHERE EXISTS (SELECT 1 FROM turns o WHERE o.conversation_key = r.conversation_key AND o.responds_to = r.responds_to
			AND o.id <> r.id AND o.role = 'assistant' AND o.status <> 'abandoned')) AS doubled,
	clock_timestamp() AS now`

type backlogRow struct {
	Held, InLine, Doubled int
	Oldest                float64
	Now                   time.Time
}

// Backlog implements turns.Gauge.
func (s *Store) Backlog(ctx context.Context, most int) (turns.Backlog, error) {
	broken, err := s.brokenGuards(ctx)
	if err != nil {
		return turns.Backlog{}, err
	}
	row, _, err := one(ctx, s.pool, readBacklog, pgx.NamedArgs{"most": most}, pgx.RowToStructByName[backlogRow])
	if err != nil {
		return turns.Backlog{}, mapRead("read the backlog", err)
	}
	return turns.Backlog{Held: row.Held, InLine: row.InLine, Doubled: row.Doubled, GuardsBroken: len(broken), Now: row.Now.UTC(),
		OldestClaim: max(time.Duration(row.Oldest*float64(time.Second)), 0)}, nil
}

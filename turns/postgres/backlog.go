package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/turnd/turnd/turns"
)

const readBacklog = `
SELECT (SELECT count(*) FROM (SELECT 1 FROM turns WHERE role = 'assistant' AND status = 'held' LIMIT @most) held) AS held,
	coalesce(extract(epoch FROM clock_timestamp() - (SELECT min(create_time) FROM turns
		WHERE role = 'assistant' AND status = 'in_flight')), 0)::float8 AS oldest`

type backlogRow struct {
	Held   int
	Oldest float64
}

// Backlog implements turns.Gauge.
func (s *Store) Backlog(ctx context.Context, most int) (turns.Backlog, error) {
	row, _, err := one(ctx, s.pool, readBacklog, pgx.NamedArgs{"most": most}, pgx.RowToStructByName[backlogRow])
	if err != nil {
		return turns.Backlog{}, mapRead("read the backlog", err)
	}
	return turns.Backlog{Held: row.Held, OldestClaim: max(time.Duration(row.Oldest*float64(time.Second)), 0)}, nil
}

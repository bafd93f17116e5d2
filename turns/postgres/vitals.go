package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Vitals are what a person looks at first in a database that seems unwell.
type Vitals struct {
	// Version is the server's own.
	Version string
	// Ahead is how far its clock is before this process's: half of the time of asking is in doubt.
	Ahead time.Duration
	// Autovacuum says that dead rows are cleared away unasked.
	Autovacuum bool
	// Connections are those to this database, of Most that the server takes in all.
	Connections, Most int
	// OldestTransaction is how long the longest transaction of this database has been open: no dead row that is younger goes.
	OldestTransaction time.Duration
	// Tables are those in which rows change most.
	Tables []TableVitals
}

// TableVitals are the rows of a table by the server's estimate.
type TableVitals struct {
	Name       string
	Live, Dead int64
}

const (
	vitals = `
SELECT current_setting('server_version') AS version, clock_timestamp() AS now,
	current_setting('autovacuum') = 'on' AND current_setting('track_counts') = 'on' AS autovacuum,
	(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database())::int AS connections,
	current_setting('max_connections')::int AS most,
	COALESCE((SELECT (EXTRACT(EPOCH FROM max(clock_timestamp() - xact_start)) * 1000000)::bigint FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()), 0) AS oldest_us`

	tableVitals = `
SELECT t.name, s.n_live_tup AS live, s.n_dead_tup AS dead
FROM unnest(ARRAY['turns', 'reply_chunks', 'provider_calls', 'workers']) WITH ORDINALITY AS t (name, place)
JOIN pg_stat_all_tables s ON s.relid = to_regclass(t.name) ORDER BY t.place`
)

type vitalsRow struct {
	Version           string
	Now               time.Time
	Autovacuum        bool
	Connections, Most int
	OldestUs          int64
}

// Vitals asks the server how it is.
func (s *Store) Vitals(ctx context.Context) (Vitals, error) {
	begun := time.Now()
	row, _, err := one(ctx, s.pool, vitals, nil, pgx.RowToStructByName[vitalsRow])
	if err != nil {
		return Vitals{}, mapRead("ask how the database is", err)
	}
	here := begun.Add(time.Since(begun) / 2)
	tables, err := collect(ctx, s.pool, tableVitals, nil, pgx.RowToStructByName[TableVitals])
	if err != nil {
		return Vitals{}, mapRead("ask how the tables are", err)
	}
	return Vitals{Version: row.Version, Ahead: row.Now.Sub(here), Autovacuum: row.Autovacuum, Connections: row.Connections, Most: row.Most,
		OldestTransaction: microseconds(row.OldestUs), Tables: tables}, nil
}

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/turnd/turnd/internal/pgtest"
)

// database is the Postgres of a stage. Its settings are those of an installation but for the memory, which would be too little
// for any that is used, and the size of its log between checkpoints, which would make one fall into some windows only.
type database struct {
	server   *pgtest.Server
	settings string // those that the figures depend on, as it says itself
	made     []string
}

func startDatabase(ctx context.Context, dir string) (*database, error) {
	server, err := pgtest.Start(ctx, dir, pgtest.Fsync(),
		pgtest.Setting("shared_buffers", "512MB"), pgtest.Setting("max_wal_size", "4GB"), pgtest.Setting("max_connections", "300"),
		pgtest.Setting("shared_preload_libraries", "pg_stat_statements"))
	if err != nil {
		return nil, err
	}
	d := &database{server: server}
	if err := d.vouch(ctx); err != nil {
		_ = server.Stop()
		return nil, err
	}
	return d, nil
}

// vouch reads back what the figures depend on and prints it. A server that does not write through is not measured.
func (d *database) vouch(ctx context.Context) error {
	return d.with(ctx, "postgres", func(conn *pgx.Conn) error {
		var said []string
		for _, name := range []string{"server_version", "fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "shared_buffers"} {
			var value string
			if err := conn.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value); err != nil {
				return err
			}
			if (name == "fsync" || name == "synchronous_commit") && value != "on" {
				return fmt.Errorf("%s of Postgres is %s", name, value)
			}
			said = append(said, name+"="+value)
		}
		d.settings = strings.Join(said, " ")
		fmt.Println("postgres:", d.settings)
		return nil
	})
}

// create makes a database.
func (d *database) create(ctx context.Context, name string) (dsn string, err error) {
	d.made = append(d.made, name)
	return d.server.DSN(name), d.with(ctx, "postgres", func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
		return err
	})
}

// clone makes a database that is a copy of another one, to which nobody may be connected.
func (d *database) clone(ctx context.Context, name, from string) (dsn string, err error) {
	d.made = append(d.made, name)
	return d.server.DSN(name), d.with(ctx, "postgres", func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", pgx.Identifier{name}.Sanitize(), pgx.Identifier{from}.Sanitize()))
		return err
	})
}

// planning has the time that statements are planned counted with them, which costs each a little.
func (d *database) planning(ctx context.Context, name string) error {
	return d.with(ctx, "postgres", func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "ALTER DATABASE "+pgx.Identifier{name}.Sanitize()+" SET pg_stat_statements.track_planning = on")
		return err
	})
}

// spent is what statements had Postgres do.
type spent struct{ ms, pages, wal, rows float64 }

// each is what a call cost, of so many.
func (s spent) each(calls int, p50, cpu float64) callCost {
	n := float64(max(1, calls))
	return callCost{Calls: calls, MS: p50, CPU: cpu, Executed: s.ms / n, Pages: s.pages / n, WAL: s.wal / n, Rows: s.rows / n}
}

// spent is what the statements on a database since forget have done. Pages are those that were read or found in memory.
func (d *database) spent(ctx context.Context, name string) (s spent, err error) {
	err = d.with(ctx, "postgres", func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `
SELECT COALESCE(sum(total_exec_time + total_plan_time), 0), COALESCE(sum(shared_blks_hit + shared_blks_read), 0),
	COALESCE(sum(wal_bytes), 0)::float8, COALESCE(sum(rows), 0)
FROM pg_stat_statements JOIN pg_database d ON d.oid = dbid WHERE datname = $1`, name).Scan(&s.ms, &s.pages, &s.wal, &s.rows)
	})
	return s, err
}

// settle writes down what earlier loads have left dirty, so that each load pays for itself.
func (d *database) settle(ctx context.Context) error {
	return d.with(ctx, "postgres", func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "CHECKPOINT")
		return err
	})
}

// learn has Postgres look at all tables, as it does by itself where a database is in use for a minute. Before that it plans for
// tables that are empty, and figures would be of those plans.
func (d *database) learn(ctx context.Context) error {
	for _, name := range d.made {
		err := d.with(ctx, name, func(conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "VACUUM (ANALYZE)")
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *database) with(ctx context.Context, name string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, d.server.DSN(name))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return do(conn)
}

// forget begins the count of statements.
func (d *database) forget(ctx context.Context) error {
	return d.with(ctx, "postgres", func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "SELECT pg_stat_statements_reset()")
		return err
	})
}

// statements prints what the statements since forget have cost, so many of the dearest, and how often each ran a turn.
func (d *database) statements(ctx context.Context, turns, most int) error {
	return d.with(ctx, "postgres", func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `
SELECT calls, total_exec_time + total_plan_time, rows, shared_blks_hit, wal_bytes::bigint, left(regexp_replace(query, '\s+', ' ', 'g'), 110)
FROM pg_stat_statements ORDER BY 2 DESC LIMIT $1`, most)
		if err != nil {
			return err
		}
		defer rows.Close()
		fmt.Printf("--- statements: calls a turn, ms a turn, ms a call, rows, blocks and WAL bytes a call\n")
		for rows.Next() {
			var calls, rowCount, blocks, wal int64
			var ms float64
			var query string
			if err := rows.Scan(&calls, &ms, &rowCount, &blocks, &wal, &query); err != nil {
				return err
			}
			n := float64(calls)
			fmt.Printf("%7.2f %8.3f %8.3f %6.1f %6.0f %7.0f  %s\n", n/float64(turns), ms/float64(turns), ms/n, float64(rowCount)/n, float64(blocks)/n, float64(wal)/n, query)
		}
		return rows.Err()
	})
}

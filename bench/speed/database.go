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
type database struct{ server *pgtest.Server }

func startDatabase(ctx context.Context, dir string) (*database, error) {
	server, err := pgtest.Start(ctx, dir, pgtest.Fsync(),
		pgtest.Setting("shared_buffers", "512MB"), pgtest.Setting("max_wal_size", "4GB"))
	if err != nil {
		return nil, err
	}
	d := &database{server}
	if err := d.vouch(ctx); err != nil {
		_ = server.Stop()
		return nil, err
	}
	return d, nil
}

// vouch reads back what the figures depend on and prints it. A server that does not write through is not measured.
func (d *database) vouch(ctx context.Context) error {
	return d.with(ctx, func(conn *pgx.Conn) error {
		var said []string
		for _, name := range []string{"server_version", "fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "shared_buffers"} {
			var value string
			if err := conn.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value); err != nil {
				return err
			}
			if (name == "fsync" || name == "synchronous_commit") && value != "on" {
				return fmt.Errorf("Postgres runs with %s %s", name, value)
			}
			said = append(said, name+"="+value)
		}
		fmt.Println("postgres:", strings.Join(said, " "))
		return nil
	})
}

// create makes a database.
func (d *database) create(ctx context.Context, name string) (dsn string, err error) {
	return d.server.DSN(name), d.with(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
		return err
	})
}

// settle writes down what earlier loads have left dirty, so that each load pays for itself.
func (d *database) settle(ctx context.Context) error {
	return d.with(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "CHECKPOINT")
		return err
	})
}

func (d *database) with(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, d.server.DSN("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return do(conn)
}

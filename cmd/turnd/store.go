package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver that migrations use

	"github.com/turnd/turnd/internal/telemetry"
	"github.com/turnd/turnd/migrations"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/access"
	"github.com/turnd/turnd/turns/postgres"
	"github.com/turnd/turnd/turns/sqlite"
)

// errNoFile says that there is no SQLite file yet.
var errNoFile = errors.New("no database to look at")

// store is the opened database.
type store struct {
	turns.Store
	access access.Store
	// schemaVersion is the newest migration that the database has.
	schemaVersion func(context.Context) (int64, error)
	close         func() error
}

// ping asks the database for something that does not exist, which takes a real read.
func (s store) ping(ctx context.Context) error {
	_, err := s.Lookup(ctx, turns.LookupQuery{})
	return err
}

// openStore opens the database with a schema that can be served.
func openStore(ctx context.Context, cfg Config, at place, tel *telemetry.Telemetry, logger *slog.Logger) (store, error) {
	if at.engine == engineSQLite {
		return openSQLite(ctx, cfg, at)
	}
	return openPostgres(ctx, cfg, at, tel, logger)
}

func openSQLite(ctx context.Context, cfg Config, at place) (store, error) {
	s, err := lockSQLite(ctx, at, func(set *migrations.Set) error {
		return migrateAtStart(ctx, set, engineSQLite, cfg.Migrate)
	})
	if err != nil {
		return store{}, err
	}
	if err := s.CheckSchema(ctx); err != nil {
		return store{}, errors.Join(err, s.Close())
	}
	return store{Store: s, access: s, schemaVersion: s.SchemaVersion, close: s.Close}, nil
}

// lockSQLite opens the file for this process alone and runs do before anything else is done with it.
func lockSQLite(ctx context.Context, at place, do func(*migrations.Set) error) (*sqlite.Store, error) {
	// Only its owner can read the directory: conversations are in it.
	if err := os.MkdirAll(filepath.Dir(at.file), 0o700); err != nil {
		return nil, fmt.Errorf("make the database's directory: %w", err)
	}
	return sqlite.Open(ctx, sqlite.Config{Path: at.file, Migrate: func(_ context.Context, db *sql.DB) error {
		set, err := migrations.SQLite(db)
		if err != nil {
			return err
		}
		return do(set)
	}})
}

// alone runs do on a file that nobody serves meanwhile.
func alone(ctx context.Context, at place, do func(*migrations.Set) error) error {
	s, err := lockSQLite(ctx, at, do)
	if err != nil {
		return err
	}
	return s.Close()
}

// openPostgres connects first: whether the server takes writes must be known before it is migrated.
func openPostgres(ctx context.Context, cfg Config, at place, tel *telemetry.Telemetry, logger *slog.Logger) (store, error) {
	s, err := postgres.Open(ctx, postgres.Config{URL: at.url, MaxConns: cfg.DatabaseMaxConns, Pooled: at.direct != at.url,
		Tracer: tel.Statements()})
	if err != nil {
		return store{}, unreachable("--database-url", err)
	}
	if err = makeServable(ctx, cfg, at, s); err == nil {
		err = s.Pools(tel.WatchPool)
	}
	if err == nil {
		err = sayDurability(ctx, s, logger)
	}
	if err != nil {
		s.Close()
		return store{}, err
	}
	return store{Store: s, access: s, schemaVersion: s.SchemaVersion, close: func() error { s.Close(); return nil }}, nil
}

func makeServable(ctx context.Context, cfg Config, at place, s *postgres.Store) error {
	err := withPostgres(at, func(set *migrations.Set) error {
		return migrateAtStart(ctx, set, enginePostgres, cfg.Migrate)
	})
	if err != nil {
		return err
	}
	return s.CheckSchema(ctx)
}

// sayDurability says once what the server's settings mean for turns that were paid for.
func sayDurability(ctx context.Context, s *postgres.Store, logger *slog.Logger) error {
	d, err := s.Durability(ctx)
	switch {
	case err != nil:
		return err
	case !d.OnDisk:
		logger.WarnContext(ctx, "Postgres answers commits before they are on disk (synchronous_commit or fsync is off): "+
			"if it crashes, the last ones are lost, and a turn among them can be paid for twice")
	case !d.Replicated && d.Standbys > 0:
		logger.WarnContext(ctx, "Postgres answers commits before a standby has them: a failover can lose the last ones, "+
			"and a turn among them can be paid for twice; see synchronous_standby_names", "standbys", d.Standbys)
	case !d.Replicated:
		logger.InfoContext(ctx, "Postgres has no synchronous standby: what it has committed is as safe as its own disk")
	}
	return nil
}

// withSQLite looks at a file that may be served meanwhile. It makes none.
func withSQLite(at place, do func(*migrations.Set) error) error {
	if _, err := os.Stat(at.file); err != nil {
		return fmt.Errorf("%w: %w", errNoFile, err)
	}
	dsn := url.URL{Scheme: "file", Path: at.file, RawQuery: "mode=rw&_pragma=busy_timeout(5000)"}
	return withDB("sqlite", dsn.String(), migrations.SQLite, do)
}

func withPostgres(at place, do func(*migrations.Set) error) error {
	flag := "--database-url"
	if at.direct != at.url {
		flag = "--database-direct-url"
	}
	return unreachable(flag, withDB("pgx", at.direct, migrations.Postgres, do))
}

// unreachable turns the failure of a connection to Postgres into one that begins with what to look at and names the cause
// once: the driver tells it for every address and again with every retry. Other errors stay as they are.
func unreachable(flag string, err error) error {
	if errors.Is(err, postgres.ErrReadOnly) {
		return fmt.Errorf("check %s: %w: it is a standby or set to be read-only, and turnd needs the primary; name that, "+
			"or all servers, as in postgres://user@a:5432,b:5432/turnd", flag, postgres.ErrReadOnly)
	}
	var connect *pgconn.ConnectError
	if !errors.As(err, &connect) {
		return err
	}
	var refused *pgconn.PgError
	var dial *net.OpError
	switch {
	case errors.As(connect, &refused):
		return fmt.Errorf("check %s: Postgres refused the connection: %w", flag, refused)
	case errors.As(connect, &dial):
		return fmt.Errorf("check %s: Postgres can't be reached: %w", flag, dial)
	}
	return fmt.Errorf("check %s: Postgres can't be reached: %w", flag, errors.Unwrap(connect))
}

func withDB(driver, dsn string, open func(*sql.DB) (*migrations.Set, error), do func(*migrations.Set) error) (err error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	set, err := open(db)
	if err != nil {
		return err
	}
	return do(set)
}

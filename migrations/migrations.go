// Package migrations holds the schema of both engines and brings a database to it. The files have the same numbers, tables
// and columns on both; a released file never changes, so a later wish is a new file.
//
// Any number of processes may call Up at once: on Postgres an advisory lock of the session lets one of them work, which
// needs a direct connection and no transaction pooler. Check only reads, so that a process can refuse to serve on
// another schema than its own.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed postgres/*.sql sqlite/*.sql
var files embed.FS

// What Check finds wrong.
var (
	// ErrSchemaOld says that migrations of this build are missing in the database.
	ErrSchemaOld = errors.New("the database's schema is older than this build")
	// ErrSchemaNew says that the database was migrated by a later build.
	ErrSchemaNew = errors.New("the database's schema is newer than this build")
)

// lockSeconds is how long one Up waits for another, asking each second.
const lockSeconds = 300

// Set is the migrations of one database.
type Set struct {
	db       *sql.DB
	engine   engine
	provider *goose.Provider
}

// engine is what differs between the databases.
type engine struct {
	dialect goose.Dialect
	folder  string
	// hasTable asks whether goose's table exists.
	hasTable string
}

var postgresEngine = engine{
	dialect:  goose.DialectPostgres,
	folder:   "postgres",
	hasTable: `SELECT to_regclass('goose_db_version') IS NOT NULL`,
}

var sqliteEngine = engine{
	dialect:  goose.DialectSQLite3,
	folder:   "sqlite",
	hasTable: `SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'goose_db_version')`,
}

// Postgres is the migrations of a Postgres database, whose db stays the caller's to close. It must reach the server
// itself: a pooler that hands out a session for one transaction would lose the lock.
func Postgres(db *sql.DB) (*Set, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, lockSeconds))
	if err != nil {
		return nil, fmt.Errorf("make the lock of migrations: %w", err)
	}
	return newSet(db, postgresEngine, goose.WithSessionLocker(locker))
}

// SQLite is the migrations of a SQLite database, whose db stays the caller's to close.
func SQLite(db *sql.DB) (*Set, error) { return newSet(db, sqliteEngine) }

func newSet(db *sql.DB, e engine, options ...goose.ProviderOption) (*Set, error) {
	folder, err := fs.Sub(files, e.folder)
	if err != nil {
		return nil, fmt.Errorf("open the migrations: %w", err)
	}
	provider, err := goose.NewProvider(e.dialect, db, folder, append(options, goose.WithDisableGlobalRegistry(true))...)
	if err != nil {
		return nil, fmt.Errorf("open the migrations: %w", err)
	}
	return &Set{db: db, engine: e, provider: provider}, nil
}

// Up applies what is missing, each migration in a transaction of its own, and says how many that were.
func (s *Set) Up(ctx context.Context) (applied int, err error) {
	results, err := s.provider.Up(ctx)
	if err != nil {
		return len(results), fmt.Errorf("migrate: %w", err)
	}
	return len(results), nil
}

// DownTo takes back every migration after version; 0 leaves an empty database. All data of the dropped tables is lost.
func (s *Set) DownTo(ctx context.Context, version int64) error {
	if _, err := s.provider.DownTo(ctx, version); err != nil {
		return fmt.Errorf("migrate down to %d: %w", version, err)
	}
	return nil
}

// Status is one migration of this build and whether the database has it.
type Status struct {
	Version int64
	Name    string
	Applied bool
	// AppliedAt is zero unless Applied.
	AppliedAt time.Time
}

// Status lists the migrations of this build in order.
func (s *Set) Status(ctx context.Context) ([]Status, error) {
	found, err := s.provider.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the state of migrations: %w", err)
	}
	list := make([]Status, 0, len(found))
	for _, m := range found {
		list = append(list, Status{Version: m.Source.Version, Name: path.Base(m.Source.Path),
			Applied: m.State == goose.StateApplied, AppliedAt: m.AppliedAt})
	}
	return list, nil
}

// Latest is the version that this build needs, which is the same on both engines.
func Latest() int64 {
	var newest int64
	names, _ := fs.Glob(files, postgresEngine.folder+"/*.sql") // its error is about the pattern
	for _, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "_")
		if version, err := strconv.ParseInt(number, 10, 64); err == nil {
			newest = max(newest, version)
		}
	}
	return newest
}

// Latest is the version that this build needs.
func (s *Set) Latest() int64 {
	sources := s.provider.ListSources()
	return sources[len(sources)-1].Version
}

// Version is what the database is at; 0 if it was never migrated. It changes nothing.
func (s *Set) Version(ctx context.Context) (int64, error) {
	var has bool
	if err := s.db.QueryRowContext(ctx, s.engine.hasTable).Scan(&has); err != nil {
		return 0, fmt.Errorf("read the schema's version: %w", err)
	}
	if !has {
		return 0, nil
	}
	var version int64
	const newest = `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied`
	if err := s.db.QueryRowContext(ctx, newest).Scan(&version); err != nil {
		return 0, fmt.Errorf("read the schema's version: %w", err)
	}
	return version, nil
}

// Check compares the database with this build. It wraps ErrSchemaOld or ErrSchemaNew, with what to run.
func (s *Set) Check(ctx context.Context) error {
	version, err := s.Version(ctx)
	if err != nil {
		return err
	}
	switch latest := s.Latest(); {
	case version < latest:
		return fmt.Errorf("%w: it is at %d and must be at %d; run `turnd migrate up`", ErrSchemaOld, version, latest)
	case version > latest:
		return fmt.Errorf("%w: it is at %d and this build knows %d; run a build at least as new as the one that migrated it",
			ErrSchemaNew, version, latest)
	}
	return nil
}

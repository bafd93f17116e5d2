package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/turnd/turnd/migrations"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/postgres"
	"github.com/turnd/turnd/turns/sqlite"
)

// Where the doctor begins to mind.
const (
	clockMinds = time.Second
	// deadMinds is the share of dead rows of a table that has at least deadRows of them.
	deadMinds = 0.5
	deadRows  = 10_000
	oldMinds  = 10 * time.Minute
	fullMinds = 0.9
)

// patient is what either engine's store can be asked while others serve the database.
type patient interface {
	CheckSchema(context.Context) error
	ListWorkers(context.Context) ([]turns.WorkerView, error)
	Backlog(ctx context.Context, most int) (turns.Backlog, error)
}

func (d *doctor) database(ctx context.Context) {
	if d.at.engine == engineSQLite {
		d.sqlite(ctx)
		return
	}
	s, err := inTime(ctx, func(ctx context.Context) (*postgres.Store, error) {
		return postgres.Open(ctx, postgres.Config{URL: d.at.url, MaxConns: 4, Pooled: d.at.direct != d.at.url})
	})
	if err != nil {
		d.fail("database", "check --database-url, and that the server runs and lets this machine in", "%s", lineOf(unreachable("--database-url", err)))
		return
	}
	defer s.Close()
	v, err := inTime(ctx, s.Vitals)
	if err != nil {
		d.fail("database", "look into the server's log", "%s", lineOf(err))
		return
	}
	d.ok("database", "Postgres %s at %s takes writes", v.Version, redactURL(d.at.url))
	there := d.schema(ctx, withPostgres)
	d.durability(ctx, s)
	d.clock(v)
	if there {
		d.guards(ctx, s)
		d.vacuum(v)
		d.inUse(ctx, s)
	}
}

func (d *doctor) sqlite(ctx context.Context) {
	if errors.Is(withSQLite(d.at, func(*migrations.Set) error { return nil }), errNoFile) {
		d.warn("database", "`turnd serve` makes it", "SQLite file %s is not there yet", d.at.file)
		return
	}
	s, err := sqlite.OpenSnapshots(ctx, d.at.file)
	if err != nil {
		d.fail("database", "check that the file is turnd's and can be read; `turnd migrate up` brings its schema up", "SQLite file %s: %s", d.at.file, lineOf(err))
		return
	}
	defer func() { _ = s.Close() }() // it was only read
	d.ok("database", "SQLite file %s", d.at.file)
	d.ok("clock", "the database is a file and goes by this machine's clock")
	if d.schema(ctx, withSQLite) {
		d.guards(ctx, s)
		d.inUse(ctx, s)
	}
}

// schema compares the migrations that were applied with this build's. Before the first of them there is nothing to look at.
func (d *doctor) schema(ctx context.Context, with func(place, func(*migrations.Set) error) error) (there bool) {
	var version int64
	err := with(d.at, func(set *migrations.Set) (err error) {
		ctx, cancel := context.WithTimeout(ctx, doctorTime)
		defer cancel()
		if version, err = set.Version(ctx); err != nil {
			return err
		}
		return set.Check(ctx)
	})
	switch {
	case errors.Is(err, migrations.ErrSchemaOld):
		d.fail("schema", "run `turnd migrate up`", "it is at version %d, and this build needs %d", version, migrations.Latest())
	case errors.Is(err, migrations.ErrSchemaNew):
		d.fail("schema", "run a build at least as new as the one that migrated it", "it is at version %d, and this build knows %d", version, migrations.Latest())
	case err != nil:
		d.fail("schema", "the migrations' connection must reach the server itself, see --database-direct-url", "%s", lineOf(err))
	default:
		d.ok("schema", "version %d, which is this build's", version)
	}
	return version > 0 || !errors.Is(err, migrations.ErrSchemaOld)
}

// guards are the unique indexes that promises rest on.
func (d *doctor) guards(ctx context.Context, p patient) {
	_, err := inTime(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.CheckSchema(ctx) })
	if err == nil {
		d.ok("guards", "every unique index that a promise rests on is present, valid and unique")
		return
	}
	for line := range strings.Lines(err.Error()) {
		d.fail("guards", "until then let nothing serve this database", "%s", strings.TrimSpace(line))
	}
}

func (d *doctor) durability(ctx context.Context, s *postgres.Store) {
	v, err := inTime(ctx, s.Durability)
	switch {
	case err != nil:
		d.fail("durability", "look into the server's log", "%s", lineOf(err))
	case !v.OnDisk:
		d.warn("durability", "set synchronous_commit and fsync on", "commits are answered before they are on disk: a crash can lose turns that were paid for")
	case !v.Replicated && v.Standbys > 0:
		d.warn("durability", "see synchronous_standby_names", "commits are answered before a standby has them: a failover can lose the last ones")
	case v.Replicated:
		d.ok("durability", "commits wait for the disk and for a standby")
	default:
		d.ok("durability", "commits wait for the disk; there is no synchronous standby")
	}
}

func (d *doctor) clock(v postgres.Vitals) {
	if off := v.Ahead.Abs(); off > clockMinds {
		d.warn("clock", "let both machines keep time by NTP", "the database's clock and this machine's are %s apart; leases go by the database's, "+
			"and log lines of several machines are out of order", off.Round(time.Millisecond))
		return
	}
	d.ok("clock", "the database's clock is within %s of this machine's", clockMinds)
}

func (d *doctor) vacuum(v postgres.Vitals) {
	bloated := false
	for _, t := range v.Tables {
		if t.Dead >= deadRows && float64(t.Dead) > deadMinds*float64(t.Live+t.Dead) {
			bloated = true
			d.warn("vacuum", "VACUUM it now, and lower autovacuum_vacuum_scale_factor for it", "table %s has %d dead rows beside %d live ones", t.Name, t.Dead, t.Live)
		}
	}
	switch {
	case !v.Autovacuum:
		d.warn("vacuum", "set autovacuum and track_counts on", "autovacuum is off: each checkpoint of a reply leaves a dead row")
	case v.OldestTransaction > oldMinds:
		d.warn("vacuum", "find it in pg_stat_activity by xact_start", "a transaction has been open for %s, and no row that died since can be cleared away", v.OldestTransaction.Round(time.Second))
	case !bloated:
		d.ok("vacuum", "autovacuum is on, and no table has many dead rows")
	}
	if float64(v.Connections) > fullMinds*float64(v.Most) {
		d.warn("connections", "raise max_connections, lower --database-max-conns, or put a pooler between", "%d of the server's %d are in use", v.Connections, v.Most)
		return
	}
	d.ok("connections", "this database has fewer than nine tenths of what the server takes")
}

// inUse says who serves the database, and what waits for a person.
func (d *doctor) inUse(ctx context.Context, p patient) {
	workers, err := inTime(ctx, p.ListWorkers)
	alive := 0
	for _, w := range workers {
		if !w.Dead && time.Until(w.LeaseUntil) > 0 {
			alive++
		}
	}
	switch {
	case err != nil:
		d.fail("workers", "see the lines on the schema", "%s", lineOf(err))
	case alive == 0:
		d.warn("workers", "start one by `turnd serve`", "none is alive")
	default:
		d.ok("workers", "alive: %d", alive)
	}
	backlog, err := inTime(ctx, func(ctx context.Context) (turns.Backlog, error) { return p.Backlog(ctx, doctorHeld) })
	switch {
	case err != nil:
		d.fail("held", "see the lines on the schema", "%s", lineOf(err))
	case backlog.Held > 0:
		d.warn("held", "see `turnd held --tenant NAME`, which shows those of one tenant", "replies of unknown outcome: %d", backlog.Held)
	default:
		d.ok("held", "no reply is of unknown outcome")
	}
}

// lineOf is an error on one line.
func lineOf(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// silent is a log for what the doctor says itself.
func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

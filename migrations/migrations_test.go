package migrations_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"sort"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/turnd/turnd/internal/pgtest"
	"github.com/turnd/turnd/migrations"
)

// database is one empty database and its migrations.
type database struct {
	db  *sql.DB
	set *migrations.Set
	// columns lists table.column of every table but goose's own.
	columns string
	// uuid and moment make values of the engine's types.
	uuid   func(n int) any
	moment any
}

func emptyPostgres(t *testing.T) database {
	db, err := sql.Open("pgx", pgtest.Database(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	set, err := migrations.Postgres(db)
	require.NoError(t, err)
	return database{
		db: db, set: set, moment: time.Unix(1, 0),
		columns: `SELECT table_name || '.' || column_name FROM information_schema.columns
			WHERE table_schema = 'public' AND table_name NOT LIKE 'goose%'`,
		uuid: func(n int) any { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) },
	}
}

func emptySQLite(t *testing.T) database {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "turnd.db")+"?_pragma=foreign_keys(1)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	set, err := migrations.SQLite(db)
	require.NoError(t, err)
	return database{
		db: db, set: set, moment: 1_000_000,
		columns: `SELECT t.name || '.' || c.name FROM sqlite_master t, pragma_table_info(t.name) c
			WHERE t.type = 'table' AND t.name NOT LIKE 'goose%' AND t.name NOT LIKE 'sqlite%'`,
		uuid: func(n int) any { return fmt.Appendf(nil, "%016d", n) },
	}
}

var engines = map[string]func(*testing.T) database{"postgres": emptyPostgres, "sqlite": emptySQLite}

func eachEngine(t *testing.T, test func(t *testing.T, d database)) {
	for name, open := range engines {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func (d database) up(t *testing.T) {
	t.Helper()
	_, err := d.set.Up(t.Context())
	require.NoError(t, err)
}

func (d database) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	_, err := d.db.ExecContext(t.Context(), query, args...)
	require.NoError(t, err)
}

func (d database) schema(t *testing.T) []string {
	t.Helper()
	rows, err := d.db.QueryContext(t.Context(), d.columns)
	require.NoError(t, err)
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		names = append(names, name)
	}
	require.NoError(t, rows.Err())
	sort.Strings(names)
	return names
}

func TestUpDownAndUpAgainMakeTheSameSchema(t *testing.T) {
	eachEngine(t, func(t *testing.T, d database) {
		d.up(t)
		first := d.schema(t)
		require.NotEmpty(t, first)

		require.NoError(t, d.set.DownTo(t.Context(), 0))
		require.Empty(t, d.schema(t))

		d.up(t)
		require.Equal(t, first, d.schema(t))
	})
}

func TestUpOnAnUpToDateDatabaseAppliesNothing(t *testing.T) {
	eachEngine(t, func(t *testing.T, d database) {
		d.up(t)
		applied, err := d.set.Up(t.Context())
		require.NoError(t, err)
		require.Zero(t, applied)
	})
}

func TestBothEnginesHaveTheSameTablesAndColumns(t *testing.T) {
	p, s := emptyPostgres(t), emptySQLite(t)
	p.up(t)
	s.up(t)
	require.Equal(t, p.schema(t), s.schema(t))
	require.Equal(t, p.set.Latest(), s.set.Latest())
	require.Equal(t, migrations.Latest(), s.set.Latest(), "what the files say")
}

func TestOfFourUpsAtOnceOneApplies(t *testing.T) {
	dsn := pgtest.Database(t)
	var applied [4]int
	var failed [4]error
	var running sync.WaitGroup
	for i := range applied {
		db, err := sql.Open("pgx", dsn)
		require.NoError(t, err)
		defer db.Close()
		set, err := migrations.Postgres(db)
		require.NoError(t, err)
		running.Go(func() { applied[i], failed[i] = set.Up(t.Context()) })
	}
	running.Wait()

	total := 0
	for i := range applied {
		require.NoError(t, failed[i])
		total += applied[i]
	}
	require.Equal(t, 1, total)
}

func TestStatusNamesEachMigrationAndWhetherItIsApplied(t *testing.T) {
	eachEngine(t, func(t *testing.T, d database) {
		before, err := d.set.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, "00001_turns.sql", before[0].Name)
		require.False(t, before[0].Applied)

		d.up(t)
		after, err := d.set.Status(t.Context())
		require.NoError(t, err)
		require.Len(t, after, len(before))
		require.True(t, after[0].Applied)
		require.False(t, after[0].AppliedAt.IsZero())
		require.Equal(t, d.set.Latest(), after[len(after)-1].Version)
	})
}

func TestCheckTellsAnOldSchemaFromANewOneAndSaysWhatToRun(t *testing.T) {
	eachEngine(t, func(t *testing.T, d database) {
		err := d.set.Check(t.Context())
		require.ErrorIs(t, err, migrations.ErrSchemaOld)
		require.ErrorContains(t, err, "turnd migrate up")
		require.Empty(t, d.schema(t), "a check changes nothing")

		d.up(t)
		require.NoError(t, d.set.Check(t.Context()))

		d.exec(t, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`)
		require.ErrorIs(t, d.set.Check(t.Context()), migrations.ErrSchemaNew)
	})
}

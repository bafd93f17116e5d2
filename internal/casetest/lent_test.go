package casetest

import (
	"context"
	"database/sql"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/internal/pgtest"
	"github.com/turnd/turnd/turns/postgres"
)

// lent is a Postgres database with stores on it, lent to one case after another. Sessions that know the schema and have planned
// their statements answer several times as fast as new ones, and a case has dozens of them.
type lent struct {
	dsn    string
	db     *sql.DB
	stores []*postgres.Store
	used   int // of the stores, by the case that has them
}

// shelf are the databases that nobody has.
var shelf struct {
	sync.Mutex
	idle []*lent
}

// lend gives a case a database without rows. What a case that failed had is not lent again.
func lend(t *testing.T) *lent {
	t.Helper()
	d := takeLent()
	if d == nil {
		dsn := pgtest.Lasting(t, pgtest.Migrate)
		db, err := sql.Open("pgx", dsn)
		require.NoError(t, err)
		d = &lent{dsn: dsn, db: db}
	}
	t.Cleanup(func() {
		if t.Failed() {
			d.close()
			return
		}
		require.NoError(t, d.clear())
		d.used = 0
		shelf.Lock()
		defer shelf.Unlock()
		shelf.idle = append(shelf.idle, d)
	})
	return d
}

func takeLent() *lent {
	shelf.Lock()
	defer shelf.Unlock()
	last := len(shelf.idle) - 1
	if last < 0 {
		return nil
	}
	d := shelf.idle[last]
	shelf.idle = shelf.idle[:last]
	return d
}

// store is the next of the stores, for one worker of the case.
func (d *lent) store(t *testing.T) *postgres.Store {
	t.Helper()
	if d.used == len(d.stores) {
		s, err := postgres.Open(t.Context(), postgres.Config{URL: d.dsn, MaxConns: 8})
		require.NoError(t, err)
		d.stores = append(d.stores, s)
	}
	d.used++
	return d.stores[d.used-1]
}

// clear removes the rows of the case.
func (d *lent) clear() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Raw(func(c any) error { return pgtest.Clear(ctx, c.(*stdlib.Conn).Conn()) })
}

func (d *lent) close() {
	for _, s := range d.stores {
		s.Close()
	}
	_ = d.db.Close()
}

// lending runs the cases and then closes what was lent.
type lending struct{ *testing.M }

func (l lending) Run() int {
	defer func() {
		for d := takeLent(); d != nil; d = takeLent() {
			d.close()
		}
	}()
	return l.M.Run()
}

package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/internal/pgtest"
	"github.com/turnd/turnd/turns/storetest"
)

func TestConformance(t *testing.T) {
	l := &lender{t: t}
	storetest.Run(t, l.lend)
}

// lender lends the same stores again and again, each to one promise at a time. Sessions that know the schema and have planned
// their statements answer several times as fast as new ones.
type lender struct {
	t    *testing.T
	mu   sync.Mutex
	idle []database
}

// lend gives a store on a database without rows. One whose promise failed, or that was closed, is not lent again.
func (l *lender) lend(t testing.TB) storetest.Engine {
	d := l.take()
	var closed atomic.Bool
	t.Cleanup(func() {
		if closed.Load() || t.Failed() {
			return
		}
		require.NoError(t, d.clear())
		l.mu.Lock()
		defer l.mu.Unlock()
		l.idle = append(l.idle, d)
	})
	e := d.engine()
	e.Close = func() error {
		closed.Store(true)
		d.store.Close()
		return nil
	}
	return e
}

func (l *lender) take() database {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := len(l.idle) - 1; last >= 0 {
		d := l.idle[last]
		l.idle = l.idle[:last]
		return d
	}
	return open(l.t)
}

func (d database) clear() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return d.rows.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return pgtest.Clear(ctx, conn.Conn()) })
}

func TestTheStoreAgreesWithTheModel(t *testing.T) { storetest.RunModel(t, engine) }

func TestWhatMustHoldHoldsUnderACrowd(t *testing.T) { storetest.RunConcurrent(t, engine) }

// hold keeps all that writes turns waiting.
func (d database) hold(t testing.TB) (release func()) {
	return d.begin(t, `LOCK TABLE turns, provider_calls, conversations IN ACCESS EXCLUSIVE MODE`).commit
}

func engine(t testing.TB) storetest.Engine { return open(t).engine() }

func (d database) engine() storetest.Engine {
	return storetest.Engine{
		Store: d.store, Exec: d.exec, Query: d.query, ID: literal,
		Close: func() error { d.store.Close(); return nil },
		Hold:  d.hold, Pending: d.store.groups.pending, Commits: d.sent.Load,
	}
}

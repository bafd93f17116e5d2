package postgres

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/internal/pgtest"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/live"
	"github.com/turnd/turnd/turns/live/bustest"
)

func TestThePostgresBusKeepsTheContract(t *testing.T) {
	bustest.Run(t, func(t testing.TB, n int) []live.Bus {
		dsn := pgtest.Database(t)
		buses := make([]live.Bus, n)
		for i := range buses {
			buses[i] = NewBus(BusConfig{URL: dsn, Logger: slog.New(slog.DiscardHandler)})
		}
		return buses
	})
}

// listener counts what a bus delivers and whether it is connected.
type listener struct {
	taken     atomic.Int64
	connected atomic.Bool
}

func (l *listener) Take(hints []live.Hint) { l.taken.Add(int64(len(hints))) }

func (l *listener) Connected(yes bool) { l.connected.Store(yes) }

// listen runs a bus for as long as the test.
func listen(t *testing.T, dsn string) (*Bus, *listener) {
	bus, l := NewBus(BusConfig{URL: dsn, Logger: slog.New(slog.DiscardHandler)}), new(listener)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- bus.Run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return bus, l
}

func eventually(t *testing.T, yes func() bool) {
	t.Helper()
	require.Eventually(t, yes, 30*time.Second, 5*time.Millisecond)
}

func TestAListenerThatIsCutOffComesBack(t *testing.T) {
	dsn := pgtest.Database(t)
	_, ear := listen(t, dsn)
	mouth, other := listen(t, dsn)
	eventually(t, func() bool { return ear.connected.Load() && other.connected.Load() })
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	for range 2 {
		_, err = conn.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		require.NoError(t, err)
		before := ear.taken.Load()
		eventually(t, func() bool {
			_ = mouth.Publish(t.Context(), []live.Hint{{Length: 1}}) // fails until the connection is back
			return ear.taken.Load() > before
		})
	}
}

func TestGarbageInTheChannelIsPassedOver(t *testing.T) {
	dsn := pgtest.Database(t)
	_, ear := listen(t, dsn)
	mouth, _ := listen(t, dsn)
	eventually(t, ear.connected.Load)
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	for _, payload := range []string{"", "garbage", "AQ", "AQAAAAA", "echo 1", "//////////"} {
		_, err = conn.Exec(t.Context(), `SELECT pg_notify($1, $2)`, channel, payload)
		require.NoError(t, err)
	}
	eventually(t, func() bool {
		_ = mouth.Publish(t.Context(), []live.Hint{{Length: 1}})
		return ear.taken.Load() > 0
	})
	require.True(t, ear.connected.Load())
}

func TestManyHintsGoInNotificationsThatPostgresTakes(t *testing.T) {
	dsn := pgtest.Database(t)
	_, ear := listen(t, dsn)
	mouth, other := listen(t, dsn)
	eventually(t, func() bool { return ear.connected.Load() && other.connected.Load() })
	hints := make([]live.Hint, 5000)
	for i := range hints {
		hints[i] = live.Hint{Reply: turns.ReplyID{UUID: uuid.New()}, Epoch: 1 << 40, Length: 1 << 31}
	}
	require.NoError(t, mouth.Publish(t.Context(), hints))
	eventually(t, func() bool { return ear.taken.Load() == int64(len(hints)) })
	require.Zero(t, other.taken.Load(), "what a worker sends does not come back to it")
}

// TestAListenThatHasNoEffectIsNoticed takes the connection's ear away behind its back, as a pooler in transaction mode does
// by handing the session to somebody else.
func TestAListenThatHasNoEffectIsNoticed(t *testing.T) {
	dsn := pgtest.Database(t)
	l := new(listener)
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	e := ear{bus: NewBus(BusConfig{}), handler: l, conn: conn, word: "echo nobody"}
	for err == nil {
		err = e.turn(t.Context())
	}
	require.True(t, errors.Is(err, errDeaf), "%v", err)
	require.False(t, l.connected.Load())
}

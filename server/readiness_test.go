package server_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/turnd/turnd/server"
)

// flaky is a check that somebody switches.
type flaky struct {
	down  atomic.Bool
	asked atomic.Int64
}

var errDown = errors.New("down")

func (f *flaky) ready(context.Context) error {
	f.asked.Add(1)
	if f.down.Load() {
		return errDown
	}
	return nil
}

func TestAFloodOfProbesAsksTheDatabaseOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dear, cheap flaky
		slow := func(ctx context.Context) error {
			time.Sleep(100 * time.Millisecond)
			return dear.ready(ctx)
		}
		o := server.Ops{Readiness: server.NewReadiness(nil,
			server.Check{Name: "store", Costs: true, Ready: slow}, server.Check{Name: "serving", Ready: cheap.ready})}
		handler := o.Handler()
		flood := func() {
			var all sync.WaitGroup
			for range 1000 {
				all.Go(func() {
					code, _ := askHandler(handler, "/readyz")
					require.Equal(t, http.StatusOK, code)
				})
			}
			all.Wait()
		}
		flood()
		flood()
		require.EqualValues(t, 1, dear.asked.Load())
		require.EqualValues(t, 2000, cheap.asked.Load(), "what costs nothing is never old news")
		time.Sleep(time.Second)
		flood()
		require.EqualValues(t, 2, dear.asked.Load())
	})
}

func TestAProbeThatHangsUpLeavesTheAnswerToTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store flaky
		r := server.NewReadiness(nil, server.Check{Name: "store", Costs: true, Ready: func(ctx context.Context) error {
			time.Sleep(time.Second)
			return errors.Join(ctx.Err(), store.ready(ctx))
		}})
		ctx, hangUp := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { r.Ask(ctx) })
		synctest.Wait()
		hangUp()
		require.NoError(t, r.Ask(t.Context())[0].Err)
		all.Wait()
		require.EqualValues(t, 1, store.asked.Load())
	})
}

func TestACheckThatDoesNotAnswerIsNotReadyWithinItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := server.NewReadiness(nil, server.Check{Name: "store", Costs: true, Ready: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		begun := time.Now()
		require.ErrorIs(t, r.Ask(t.Context())[0].Err, context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, time.Since(begun))
	})
}

// healthOf watches a service and gives each status that it is told.
func healthOf(t *testing.T, conn *grpc.ClientConn, service string) (next func() string) {
	t.Helper()
	stream, err := grpc_health_v1.NewHealthClient(conn).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
	require.NoError(t, err)
	return func() string {
		answer, err := stream.Recv()
		require.NoError(t, err)
		return answer.GetStatus().String()
	}
}

func TestHealthOfEachServiceFollowsWhatTheServiceNeeds(t *testing.T) {
	var store, lease flaky
	readiness := server.NewReadiness(nil,
		server.Check{Name: "store", Costs: true, Ready: store.ready},
		server.Check{Name: "lease", Ready: lease.ready, Services: []string{"turns.v1.TurnService"}})
	h := start(t, newFake(), func(c *server.Config) { c.Readiness = readiness })
	watches := map[string]func() string{}
	for _, service := range []string{"", "turns.v1.TurnService", "turns.v1.ConversationService", "turns.v1.OperatorService"} {
		watches[service] = healthOf(t, h.Conn, service)
		for watches[service]() != "SERVING" {
			t.Log("not yet")
		}
	}
	lease.down.Store(true)
	readiness.Nudge()
	require.Equal(t, "NOT_SERVING", watches[""]())
	require.Equal(t, "NOT_SERVING", watches["turns.v1.TurnService"]())
	check, err := grpc_health_v1.NewHealthClient(h.Conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "turns.v1.ConversationService"})
	require.NoError(t, err)
	require.Equal(t, "SERVING", check.GetStatus().String(), "it starts no replies")
	lease.down.Store(false)
	readiness.Nudge()
	require.Equal(t, "SERVING", watches[""]())
	require.Equal(t, "SERVING", watches["turns.v1.TurnService"]())

	store.down.Store(true) // which is noticed within a second or so, without a nudge
	for service, next := range watches {
		require.Equal(t, "NOT_SERVING", next(), service)
	}
	store.down.Store(false)
	for service, next := range watches {
		require.Equal(t, "SERVING", next(), service)
	}
	h.Drain()
	for service, next := range watches {
		require.Equal(t, "NOT_SERVING", next(), service)
	}
}

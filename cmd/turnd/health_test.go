package main

import (
	"database/sql"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/turnd/turnd/migrations"
)

// watchHealth gives each status of the whole server that a client is told.
func watchHealth(t *testing.T, conn *grpc.ClientConn) (next func() string) {
	t.Helper()
	stream, err := grpc_health_v1.NewHealthClient(conn).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	return func() string {
		answer, err := stream.Recv()
		require.NoError(t, err)
		return answer.GetStatus().String()
	}
}

// checkAnswer is what a process says of one check.
type checkAnswer struct {
	Name  string
	Ready bool
	Asked time.Time
}

// readiness asks a process for its checks by name.
func readiness(t *testing.T, p *process) (ready bool, checks map[string]checkAnswer) {
	t.Helper()
	_, body := get(t, "http://"+p.ready.Ops+"/readyz?verbose")
	var answer struct {
		Ready  bool
		Checks []checkAnswer
	}
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	checks = map[string]checkAnswer{}
	for _, c := range answer.Checks {
		checks[c.Name] = c
	}
	return answer.Ready, checks
}

// missing are the names of the checks that do not hold, in order.
func missing(t *testing.T, p *process) (names []string) {
	t.Helper()
	_, checks := readiness(t, p)
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		if !checks[name].Ready {
			names = append(names, name)
		}
	}
	return names
}

func TestHealthFollowsTheDatabaseAwayAndBack(t *testing.T) {
	between := proxied(t, emptyDatabases[enginePostgres](t))
	p := serve(t, between.url, "--migrate", "on", "--lease", "3s")
	next := watchHealth(t, connect(t, p))
	for next() != "SERVING" {
		t.Log("it is just starting")
	}
	ready, checks := readiness(t, p)
	require.True(t, ready)
	require.Len(t, checks, 5)
	require.Empty(t, missing(t, p))

	between.cut()
	require.Equal(t, "NOT_SERVING", next())
	p.until(func() bool { return slices.Equal(missing(t, p), []string{"lease", "migrations", "store"}) })
	status, _ := get(t, "http://"+p.ready.Ops+"/healthz")
	require.Equal(t, http.StatusOK, status, "a new process would not have a database either")
	require.Contains(t, fails(t, 1, nil, "healthcheck", "--ops-listen", p.ready.Ops), "turnd: not healthy: store: not ready, migrations: not ready")
	prints(t, "healthcheck", "--ops-listen", p.ready.Ops, "--live")

	between.open()
	require.Equal(t, "SERVING", next())
	p.until(func() bool { return missing(t, p) == nil })
	prints(t, "healthcheck", "--ops-listen", p.ready.Ops)
}

func TestADatabaseWithAnOlderSchemaIsNotReadyAndOneWithANewerIs(t *testing.T) {
	onEachEngine(t, func(t *testing.T, url string) {
		p := serve(t, url, "--migrate", "on")
		p.until(func() bool { return missing(t, p) == nil })
		version := func(statement string) {
			pastTurnd(t, url, func(db *sql.DB) {
				_, err := db.ExecContext(t.Context(), statement)
				require.NoError(t, err)
			})
			changed := time.Now()
			p.until(func() bool {
				_, checks := readiness(t, p)
				return checks["migrations"].Asked.After(changed.Add(time.Second))
			})
		}
		version(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`)
		require.Empty(t, missing(t, p), "workers of the build before go on while an upgrade is under way")
		version(`DELETE FROM goose_db_version WHERE version_id > 0`)
		require.Equal(t, []string{"migrations"}, missing(t, p))
		p.until(func() bool { return strings.Contains(p.err.String(), "run `turnd migrate up`") })
	})
}

func TestDuringTheDrainsDelayTurnsAreTakenAndProbesSayNo(t *testing.T) {
	p := serve(t, emptyDatabases[engineSQLite](t), "--drain-delay", "10m")
	conn := connect(t, p)
	next := watchHealth(t, conn)
	for next() != "SERVING" {
		t.Log("it is just starting")
	}
	p.signal(syscall.SIGTERM)
	require.Equal(t, "NOT_SERVING", next())
	status, body := get(t, "http://"+p.ready.Ops+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "serving: not ready")
	status, _ = get(t, "http://"+p.ready.Ops+"/healthz")
	require.Equal(t, http.StatusOK, status)
	_, last := take(t, connect(t, p), uuid.NewString(), ignore)
	require.NotNil(t, last.GetCompleted(), "a balancer that has not heard yet loses nothing")

	p.signal(syscall.SIGTERM) // which cuts the delay short, and the grace
	require.Equal(t, 0, p.code())
	_, err := net.Dial("tcp", p.ready.Listen)
	require.Error(t, err)
	require.Regexp(t, `(?s)about to drain.*second signal.*draining.*drained`, p.err.String())
}

func TestWithoutADelayADrainBeginsWithTheSignal(t *testing.T) {
	p := serve(t, emptyDatabases[engineSQLite](t), "--drain-delay", "1ms")
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.code())
	require.NotContains(t, p.err.String(), "second signal")
}

func TestTheBuildIsTheSameWhereverItIsNamed(t *testing.T) {
	p := serve(t, emptyDatabases[engineSQLite](t))
	var this buildInfo
	require.NoError(t, json.Unmarshal([]byte(prints(t, "version", "--json")), &this))
	require.NotEmpty(t, this.Version)
	require.Equal(t, migrations.Latest(), this.Schema)
	require.Regexp(t, `^go1\.`, this.Go)
	require.Equal(t, "turnd "+this.Version+"\n", prints(t, "version"))
	var served buildInfo
	_, body := get(t, "http://"+p.ready.Ops+"/version")
	require.NoError(t, json.Unmarshal([]byte(body), &served))
	require.Equal(t, this, served)
	require.Equal(t, this.Version, p.ready.Version)
	require.Equal(t, this.Schema, p.ready.Schema)
	require.Contains(t, p.err.String(), this.Version)
	_, metrics := get(t, "http://"+p.ready.Ops+"/metrics")
	require.Regexp(t, `turnd_build_info\{[^}]*version="`+regexp.QuoteMeta(this.Version)+`"[^}]*\} 1\n`, metrics)
	require.Regexp(t, `target_info\{[^}]*service_version="`+regexp.QuoteMeta(this.Version)+`"`, metrics)
}

func TestWhatIsForOperatorsIsNotOnTheListenerForClients(t *testing.T) {
	p := serve(t, emptyDatabases[engineSQLite](t))
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/metrics", "/readyz", "/version"} {
		status, _ := get(t, "http://"+p.ready.Ops+path)
		require.Equal(t, http.StatusOK, status, path)
		status, body := get(t, "http://"+p.ready.Listen+path)
		require.Equal(t, http.StatusNotFound, status, path+body)
	}
}

func TestAskingForHealthSaysWhatIsWrong(t *testing.T) {
	require.Contains(t, fails(t, 2, nil, "healthcheck", "--ops-listen", "off"), "turnd: --ops-listen: it is off")
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := nobody.Addr().String()
	require.NoError(t, nobody.Close())
	require.Contains(t, fails(t, 1, []string{"TURND_OPS_LISTEN=" + address}, "healthcheck"), "turnd: ask for health: ")
	for given, want := range map[string]string{"0.0.0.0:9464": "127.0.0.1:9464", "[::]:9464": "[::1]:9464", "10.0.0.1:9464": "10.0.0.1:9464", "host:1": "host:1", "no": "no"} {
		require.Equal(t, want, reachable(given))
	}
}

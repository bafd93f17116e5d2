package casetest

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/stats"

	"github.com/turnd/turnd/internal/pgtest"
	"github.com/turnd/turnd/internal/telemetry"
	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/anthropic"
	"github.com/turnd/turnd/llm/gemini"
	"github.com/turnd/turnd/llm/gemini/interactions"
	"github.com/turnd/turnd/llm/openai"
	"github.com/turnd/turnd/llm/openai/responses"
	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/migrations"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/server/auth"
	"github.com/turnd/turnd/server/servertest"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/limiter"
	"github.com/turnd/turnd/turns/live"
	"github.com/turnd/turnd/turns/postgres"
	"github.com/turnd/turnd/turns/sqlite"
)

func TestMain(m *testing.M) { pgtest.Main(lending{m}) }

// patience bounds every wait of a test; nothing waits that long unless it fails.
const patience = 30 * time.Second

// world is a database, a provider and servers on it.
type world struct {
	t           *testing.T
	ctx         context.Context
	engine      string
	url         string // the database, as turnd is told
	db          *sql.DB
	store       func() turns.Store                          // the store of the next worker
	trace       func(ctx context.Context, statement string) // hears what the stores made from now on are asked; nil: nobody does
	provider    *scripted.Server
	settings    turns.Settings
	limits      turns.Limits
	spool       turns.Spool // of the next worker
	lets        limiter.Config
	suspensions turns.Suspensions
	logger      *slog.Logger // of the next worker; nil: the test's output
	caps        turns.Capabilities
	prices      turns.Prices
	pricesOfTwo turns.Prices // what "two" takes instead, if not zero
	key         llm.Secret   // of "anthropic" and "openai"
	bus         *live.Memory // what carries hints between the workers; nil: they only poll
	counters    *sdkmetric.ManualReader
	meter       metric.Meter
	tel         *telemetry.Telemetry                                              // what traces the next worker; nil: nothing does
	auth        string                                                            // how the next server's callers prove who they are; empty: not at all
	who         auth.Authenticator                                                // finds that out
	dial        func(ctx context.Context, network, addr string) (net.Conn, error) // nil: TCP
}

// onEachEngine plays a case on SQLite and on Postgres, beside another case: cases mostly wait.
func onEachEngine(t *testing.T, play func(*testing.T, *world)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { play(t, sqliteWorld(t)) })
	t.Run("postgres", func(t *testing.T) { play(t, postgresWorld(t)) })
}

func newWorld(t *testing.T, engine string) *world {
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	t.Cleanup(cancel)
	set := turns.DefaultSettings()
	set.Checkpoint, set.Backoff = 20*time.Millisecond, time.Millisecond
	counters := sdkmetric.NewManualReader()
	return &world{t: t, ctx: ctx, engine: engine, settings: set, limits: llm.DefaultLimits, counters: counters,
		meter: sdkmetric.NewMeterProvider(sdkmetric.WithReader(counters)).Meter("turnd"), spool: turns.NoSpool{},
		provider: scripted.Start(t, scripted.DefaultScript(0))}
}

func sqliteWorld(t *testing.T) *world {
	w := newWorld(t, "sqlite")
	path := filepath.Join(t.TempDir(), "turnd.db")
	w.url = "sqlite://" + path
	w.db = opened(t, "sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	var shared turns.Store // one process a file: all workers of the test share it
	w.store = func() turns.Store {
		if shared == nil {
			s, err := sqlite.Open(w.ctx, sqlite.Config{Path: path, Migrate: migrateSQLite, Unsynced: true, Trace: w.trace})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			shared = s
		}
		return shared
	}
	return w
}

func postgresWorld(t *testing.T) *world {
	d := lend(t)
	w := newWorld(t, "postgres")
	w.url, w.db = d.dsn, d.db
	w.store = func() turns.Store {
		if w.trace == nil {
			return d.store(t)
		}
		s, err := postgres.Open(w.ctx, postgres.Config{URL: d.dsn, MaxConns: 8, Trace: w.trace})
		require.NoError(t, err)
		t.Cleanup(s.Close)
		return s
	}
	return w
}

func opened(t *testing.T, driver, dsn string) *sql.DB {
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func migrateSQLite(ctx context.Context, db *sql.DB) error {
	set, err := migrations.SQLite(db)
	if err == nil {
		_, err = set.Up(ctx)
	}
	return err
}

// script replaces what the provider plays.
func (w *world) script(rules ...scripted.Rule) {
	require.NoError(w.t, w.provider.SetScript(scripted.Script{Rules: rules}))
}

// models are all wires on the scripted provider. "anthropic" and "openai" have the capabilities of the world; the others can
// be asked about lost calls, each in its way, but for "generate", which can't. "either" falls back from the first to the
// second.
func (w *world) models() llm.Config {
	at := w.provider.URL()
	resumes := turns.Capabilities{Resume: true, Cancel: true}
	pricesOfTwo := w.prices
	if w.pricesOfTwo != (turns.Prices{}) {
		pricesOfTwo = w.pricesOfTwo
	}
	c := llm.Config{DefaultModel: "anthropic", Endpoints: []llm.Endpoint{
		{Name: "one", Wire: llm.WireAnthropicMessages, BaseURL: at, Capabilities: w.caps, Prices: w.prices, Key: w.key},
		{Name: "two", Wire: llm.WireOpenAIChat, BaseURL: at, Capabilities: w.caps, Prices: pricesOfTwo, Key: w.key},
		{Name: "background", Wire: llm.WireOpenAIResponses, BaseURL: at, Capabilities: resumes},
		{Name: "conversation", Wire: llm.WireOpenAIResponses, BaseURL: at, Capabilities: turns.Capabilities{Lookup: true, Fence: true}},
		{Name: "stored", Wire: llm.WireOpenAIChat, BaseURL: at, Capabilities: turns.Capabilities{Lookup: true}},
		{Name: "interactions", Wire: llm.WireGeminiInteractions, BaseURL: at, Capabilities: resumes},
		{Name: "generate", Wire: llm.WireGeminiGenerate, BaseURL: at, Capabilities: turns.Capabilities{UsageOnAbort: true}},
	}}
	for _, m := range [][]string{{"anthropic", "one"}, {"openai", "two"}, {"either", "one", "two"}, {"background"}, {"conversation"}, {"stored"},
		{"interactions"}, {"generate"}} {
		model := llm.Model{Name: m[0]}
		for _, endpoint := range m[min(1, len(m)-1):] {
			model.Route = append(model.Route, llm.Target{Endpoint: endpoint, Model: "demo"})
		}
		c.Models = append(c.Models, model)
	}
	return c
}

// adapters are the wires that are spoken.
var adapters = []llm.Adapter{anthropic.Adapter(), openai.Adapter(), responses.Adapter(), gemini.Adapter(), interactions.Adapter()}

// worker is one server inside the test, with a client.
type worker struct {
	*world
	service *turns.Service
	turns   turnsv1.TurnServiceClient
	convs   turnsv1.ConversationServiceClient
	harness *servertest.Harness
	hub     *live.Hub
	router  *llm.Router
}

// serve starts a worker; it is drained and stopped at the test's end.
func (w *world) serve() *worker { return w.serveOn(w.store()) }

func (w *world) serveOn(store turns.Store) *worker {
	t := w.t
	logger := w.logger
	if logger == nil {
		logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	router, err := llm.New(w.models(), llm.Options{Adapters: adapters,
		Limits: w.limits, Logger: logger, Dial: w.dial})
	require.NoError(t, err)
	var service *turns.Service
	cfg := live.Config{Store: store, Logger: logger, Tick: w.settings.Checkpoint, Heartbeat: 15 * time.Second, Patience: w.settings.Lease,
		OnStop: func(id turns.ReplyID) { service.Nudge(id) }}
	if w.bus != nil {
		cfg.Bus = w.bus.End()
	}
	hub := live.New(cfg)
	limits, err := limiter.New(w.lets)
	require.NoError(t, err)
	var tracer trace.Tracer
	var calls stats.Handler
	if w.tel != nil {
		tracer, calls = w.tel.Tracer, w.tel.Calls()
	}
	service, err = turns.New(turns.Config{Store: store, Generator: router, Logs: hub, Spool: w.spool, Logger: logger,
		Limiter: limits, Suspensions: w.suspensions,
		Meter: w.meter, Tracer: tracer, WorkerName: "test", Settings: w.settings})
	require.NoError(t, err)
	require.NoError(t, service.Start(w.ctx))
	loops, stopLoops := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = service.Run(loops) })
	running.Go(func() { _ = hub.Run(loops) })
	h := servertest.Start(t, server.Config{Service: service, Follower: hub, Logger: logger, Grace: time.Second,
		Auth: w.auth, Authenticator: w.who, Stats: calls})
	t.Cleanup(func() {
		_ = h.Conn.Close()
		ended, cancel := context.WithCancel(context.Background())
		cancel() // what still runs is abandoned at once
		require.NoError(t, service.Drain(ended, patience))
		require.NoError(t, h.Stop())
		stopLoops()
		running.Wait()
		router.Close()
	})
	return &worker{world: w, service: service, turns: turnsv1.NewTurnServiceClient(h.Conn),
		convs: turnsv1.NewConversationServiceClient(h.Conn), harness: h, hub: hub, router: router}
}

// number asks the database.
func (w *world) number(query string) int {
	w.t.Helper()
	var n int
	require.NoError(w.t, w.db.QueryRowContext(w.ctx, query).Scan(&n))
	return n
}

const (
	qLive     = `SELECT count(*) FROM turns WHERE role = 'assistant' AND status <> 'abandoned'`
	qReplies  = `SELECT count(*) FROM turns WHERE role = 'assistant'`
	qUsers    = `SELECT count(*) FROM turns WHERE role = 'user'`
	qInFlight = `SELECT count(*) FROM turns WHERE status = 'in_flight'`
	qLedger   = `SELECT count(*) FROM provider_calls`
	qOpen     = `SELECT count(*) FROM provider_calls WHERE class = ''`
	qWasted   = `SELECT coalesce(sum(wasted_tokens), 0) FROM provider_calls`
	qReported = `SELECT coalesce(sum(input_tokens + output_tokens), 0) FROM provider_calls WHERE token_source = 'reported'`
	qConvs    = `SELECT count(*) FROM conversations`
)

// stands demands what is stored, as query and number.
func (w *world) stands(want map[string]int) {
	w.t.Helper()
	for query, n := range want {
		require.Equal(w.t, n, w.number(query), query)
	}
}

// paid demands what the provider counted.
func (w *world) paid(requests, generations int) {
	w.t.Helper()
	c := w.provider.Counts()
	require.Equal(w.t, requests, c.Requests, "requests by the provider's count")
	require.Equal(w.t, generations, c.Generations, "generations by the provider's count")
}

// counted is the sum of a counter over all workers of the test, of the points that have the label.
func (w *world) counted(name, key, value string) (sum int64) {
	w.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(w.t, w.counters.Collect(w.ctx, &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			points, ok := m.Data.(metricdata.Sum[int64])
			if m.Name != name || !ok {
				continue
			}
			for _, p := range points.DataPoints {
				if v, _ := p.Attributes.Value(attribute.Key(key)); v.AsString() == value {
					sum += p.Value
				}
			}
		}
	}
	return sum
}

// eventually asks until the answer is yes.
func (w *world) eventually(ask func() bool) {
	w.t.Helper()
	require.Eventually(w.t, ask, patience, 5*time.Millisecond)
}

func newID() string { return uuid.NewString() }

// ask is a turn with text.
func ask(conversation, turn, text string) *turnsv1.TurnInput {
	return &turnsv1.TurnInput{ConversationId: conversation, TurnId: turn,
		Content: []*turnsv1.Block{{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: text}}}}}
}

// gate is a rule whose reply waits at a gate.
func gate(text, name string, deltas, at int) scripted.Rule {
	return scripted.Rule{Name: name, Match: scripted.Match{Text: text}, Plan: scripted.Plan{
		Reply: &scripted.Reply{Deltas: deltas, Seed: 1},
		Steps: []scripted.Step{{At: scripted.AfterDelta(at), Do: scripted.DoWait, Gate: name}}}}
}

// plain is a rule whose reply just comes.
func plain(deltas int) scripted.Rule {
	return scripted.Rule{Name: "plain", Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: deltas, Seed: 2}}}
}

// failing is a rule that fails at a point.
func failing(times int, steps ...scripted.Step) scripted.Rule {
	return scripted.Rule{Name: "failing", Times: times, Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: 64, Seed: 3}, Steps: steps}}
}

func (w *world) String() string { return fmt.Sprintf("world on %s", w.engine) }

package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// connect makes a client's connection to a running turnd.
func connect(t *testing.T, p *process) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+p.ready.Listen,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func hello(turnID string) *turnsv1.TurnRequest {
	return &turnsv1.TurnRequest{Input: &turnsv1.TurnInput{TurnId: turnID,
		Content: []*turnsv1.Block{{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: "hello"}}}}}}
}

// take sends a turn and reads its stream to the end; got is told of each event.
func take(t *testing.T, conn *grpc.ClientConn, turnID string, got func(*turnsv1.Event)) (text string, last *turnsv1.Event) {
	t.Helper()
	stream, err := turnsv1.NewTurnServiceClient(conn).Turn(t.Context(), hello(turnID))
	require.NoError(t, err)
	for {
		m, err := stream.Recv()
		if err == io.EOF {
			return text, last
		}
		require.NoError(t, err)
		last = m.GetEvent()
		text += last.GetDelta().GetText()
		got(last)
	}
}

func ignore(*turnsv1.Event) {}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(raw)
}

// fast is a models file with a scripted provider of the test's own behind it.
func fast(t *testing.T, script scripted.Script) (*scripted.Server, string) {
	t.Helper()
	provider := scripted.Start(t, script)
	file := filepath.Join(t.TempDir(), "models.yaml")
	require.NoError(t, os.WriteFile(file, []byte("version: 1\nendpoints:\n  e: {wire: anthropic.messages, base_url: "+provider.URL()+"}\n"+
		"models:\n  m: {route: [{endpoint: e, model: demo}]}\n"), 0o600))
	return provider, file
}

// serveModels serves a models file on free ports.
func serveModels(t *testing.T, url, file string, args ...string) *process {
	t.Helper()
	return serve(t, url, append([]string{"--demo=false", "--models", file, "--migrate", "on"}, args...)...)
}

func TestTheDemoAnswersATurnAndEndsCleanly(t *testing.T) {
	onEachEngine(t, func(t *testing.T, url string) {
		p := serve(t, url, "--migrate", "on")
		turn := uuid.NewString()
		text, last := take(t, connect(t, p), turn, ignore)
		require.NotNil(t, last.GetCompleted())
		require.Contains(t, text, "No model is running here")
		again, _ := take(t, connect(t, p), turn, ignore)
		require.Equal(t, text, again)

		p.signal(syscall.SIGTERM)
		require.Equal(t, 0, p.code())
		require.NoFileExists(t, p.file)
		require.NotContains(t, p.err.String(), "No model is running", "nothing of a turn is logged")
	})
}

func TestTheReadyFileAndTheReadyLineSayWhatIsServed(t *testing.T) {
	p := serve(t, emptyDatabases[engineSQLite](t))
	require.Equal(t, p.cmd.Process.Pid, p.ready.PID)
	require.Equal(t, engineSQLite, p.ready.Store)
	require.Equal(t, []string{"demo"}, p.ready.Models)
	require.NoError(t, uuid.Validate(p.ready.WorkerID))
	p.until(func() bool { return p.out.String() != "" })
	require.Equal(t, "turnd ready listen="+p.ready.Listen+" ops="+p.ready.Ops+" store=sqlite models=demo\n", p.out.String())
	for _, address := range []string{p.ready.Listen, p.ready.Ops} {
		require.Regexp(t, `^127\.0\.0\.1:[1-9]\d*$`, address)
	}
}

func TestWithoutAnOpsListenerTheReadyLineHasADash(t *testing.T) {
	p := serve(t, emptyDatabases[engineSQLite](t), "--ops-listen", "off")
	p.until(func() bool { return strings.Contains(p.out.String(), " ops=- ") })
	require.Empty(t, p.ready.Ops)
}

func TestTheDemoSaysThatItIsOneAndWhatToPaste(t *testing.T) {
	p := serve(t, emptyDatabases[engineSQLite](t))
	p.until(func() bool { return strings.Contains(p.err.String(), "turns.v1.TurnService/Turn") })
	text := p.err.String()
	require.Contains(t, text, "WRN this is a demo")
	require.Contains(t, text, `-m "hello"`)
	line := regexp.MustCompile(`grpcurl -plaintext -d '(.*)' ` + regexp.QuoteMeta(p.ready.Listen)).FindStringSubmatch(text)
	require.Len(t, line, 2)
	var request turnsv1.TurnRequest
	require.NoError(t, protojson.Unmarshal([]byte(line[1]), &request))
	require.NoError(t, uuid.Validate(request.GetInput().GetTurnId()))
	require.Equal(t, "hello", request.GetInput().GetContent()[0].GetText().GetText())

	pasted := regexp.MustCompile(`chat( --server \S+ -m "hello")`).FindStringSubmatch(text)
	require.Len(t, pasted, 2)
	chat := launch(t, []string{"HOME=" + t.TempDir()}, "chat", "--server", p.ready.Listen, "-m", "hello")
	require.Equal(t, 0, chat.code(), chat.err.String())
	require.Contains(t, chat.out.String(), "No model is running here")
}

func TestScrapersSeeTheSixCountersAndTheGauges(t *testing.T) {
	onEachEngine(t, func(t *testing.T, url string) {
		// The first call fails in the provider's own words and the second is cut after it was answered: a retry, and
		// tokens that were paid for in vain.
		provider, file := fast(t, scripted.Script{Rules: []scripted.Rule{
			{Times: 1, Plan: scripted.Plan{Steps: []scripted.Step{{At: "request_read", Do: "status", Status: 529, Error: "overloaded_error"}}}},
			{Times: 1, Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: 8}, Steps: []scripted.Step{{At: "delta:4", Do: "close"}}}},
			{Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: 8}}},
		}})
		p := serveModels(t, url, file, "--backoff", "1ms")
		conn, turn := connect(t, p), uuid.NewString()
		_, last := take(t, conn, turn, ignore)
		require.NotNil(t, last.GetAbandoned())
		_, last = take(t, conn, turn, ignore)
		require.NotNil(t, last.GetCompleted())
		_, last = take(t, conn, turn, ignore)
		require.NotNil(t, last.GetCompleted())
		require.Equal(t, 3, provider.Counts().Requests)

		status, text := 0, ""
		p.until(func() bool { // the store may have been looked at in the middle of a reply
			status, text = get(t, "http://"+p.ready.Ops+"/metrics")
			return strings.Contains(text, "\nturnd_oldest_claim_seconds 0\n")
		})
		require.Equal(t, 200, status)
		for _, line := range []string{
			`turnd_submissions_total{result="new"} 1`,
			`turnd_submissions_total{result="retried"} 1`,
			`turnd_submissions_total{result="replayed"} 1`,
			`turnd_duplicates_total{layer="client"} 2`,
			`turnd_provider_calls_total{class="transient",model="m",provider="anthropic",try="first"} 1`,
			`turnd_provider_calls_total{class="ok",model="m",provider="anthropic",try="retry"} 1`,
			`turnd_replies_total{reason="",status="complete"} 1`,
			`turnd_replies_total{reason="ambiguous",status="abandoned"} 1`,
			`turnd_in_flight 0`,
			`turnd_held 0`,
			`turnd_oldest_claim_seconds 0`,
			`turnd_breaker_state{endpoint="e",model="demo"} 0`,
		} {
			require.Contains(t, text, "\n"+line+"\n")
		}
		require.Regexp(t, `\nturnd_provider_tokens_total\{direction="output",model="m",provider="anthropic",source="reported",try="retry"\} 8\n`, text)
		require.Regexp(t, `\nturnd_tokens_wasted_total\{cause="[a-z_]+"\} [1-9]\d*\n`, text)
		require.Regexp(t, `provider call failed class=transient action=retry attempt=2/5 in=[\d.]+m?s turn_id=`+turn, p.err.String())
	})
}

func TestOpsAnswersHealthReadinessAndProfiles(t *testing.T) {
	p := serve(t, emptyDatabases[engineSQLite](t))
	for path, want := range map[string]string{
		"/healthz": "ok\n", "/readyz": "store: ok\nmigrations: ok\nlease: ok\nlisteners: ok\nserving: ok\n", "/debug/pprof/cmdline": "serve",
	} {
		status, text := get(t, "http://"+p.ready.Ops+path)
		require.Equal(t, 200, status, path)
		require.Contains(t, text, want, path)
	}
}

func TestASecondProcessOnOneFileIsRefused(t *testing.T) {
	url := emptyDatabases[engineSQLite](t)
	serve(t, url)
	text := fails(t, 1, nil, "serve", "--demo", "--listen", ":0", "--database-url", url)
	require.Contains(t, text, "in use by another turnd")
	require.Contains(t, fails(t, 1, nil, "migrate", "up", "--database-url", url), "in use by another turnd")
	require.Contains(t, prints(t, "migrate", "status", "--database-url", url), "APPLIED", "looking is allowed")
}

func TestARunningReplyFinishesWithinTheGraceAndItsFollowerSeesTheEnd(t *testing.T) {
	onEachEngine(t, func(t *testing.T, url string) {
		provider, file := fast(t, gated())
		p := serveModels(t, url, file)
		conn := connect(t, p)
		text, last := take(t, conn, uuid.NewString(), atFirstDelta(func() {
			p.signal(syscall.SIGTERM)
			p.until(func() bool { return strings.Contains(p.err.String(), "draining") })
			require.NoError(t, provider.OpenGate("mid"))
		}))
		require.NotNil(t, last.GetCompleted())
		require.NotEmpty(t, text)
		require.Equal(t, 0, p.code())
	})
}

// atFirstDelta is a watcher of events that acts once, when the reply's first bytes are here.
func atFirstDelta(act func()) func(*turnsv1.Event) {
	once := sync.OnceFunc(act)
	return func(e *turnsv1.Event) {
		if e.GetDelta() != nil {
			once()
		}
	}
}

// gated holds each reply in its middle.
func gated() scripted.Script {
	return scripted.Script{Rules: []scripted.Rule{{Plan: scripted.Plan{
		Reply: &scripted.Reply{Deltas: 8}, Steps: []scripted.Step{{At: "delta:4", Do: "wait", Gate: "mid"}}}}}}
}

func TestAReplyThatOutlastsTheGraceIsAbandonedAsShutdown(t *testing.T) {
	onEachEngine(t, func(t *testing.T, url string) {
		_, file := fast(t, gated())
		p := serveModels(t, url, file, "--grace", "100ms")
		turn := uuid.NewString()
		_, last := take(t, connect(t, p), turn, atFirstDelta(func() { p.signal(syscall.SIGTERM) }))
		require.Equal(t, turnsv1.AbandonReason_ABANDON_REASON_SHUTDOWN, last.GetAbandoned().GetReason())
		require.Equal(t, 0, p.code(), "it is a clean drain all the same")
		require.NotContains(t, p.err.String(), "declared dead")
	})
}

func TestWhileItDrainsItIsNotReady(t *testing.T) {
	provider, file := fast(t, gated())
	p := serveModels(t, emptyDatabases[engineSQLite](t), file)
	conn := connect(t, p)
	watch, err := grpc_health_v1.NewHealthClient(conn).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	for status := (*grpc_health_v1.HealthCheckResponse)(nil); status.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING; {
		status, err = watch.Recv() // what it says first may be from before its checks were asked
		require.NoError(t, err)
	}
	_, last := take(t, conn, uuid.NewString(), atFirstDelta(func() {
		p.signal(syscall.SIGTERM)
		status, err := watch.Recv()
		require.NoError(t, err)
		require.Equal(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING, status.GetStatus())
		p.until(func() bool { code, _ := get(t, "http://"+p.ready.Ops+"/readyz"); return code == 503 })
		require.NoError(t, provider.OpenGate("mid"))
	}))
	require.NotNil(t, last.GetCompleted())
	require.Equal(t, 0, p.code())
}

func TestASecondSignalOnlyEndsTheGrace(t *testing.T) {
	onEachEngine(t, func(t *testing.T, url string) {
		_, file := fast(t, gated())
		p := serveModels(t, url, file, "--grace", "10m")
		_, last := take(t, connect(t, p), uuid.NewString(), atFirstDelta(func() {
			p.signal(syscall.SIGINT)
			p.until(func() bool { return strings.Contains(p.err.String(), "draining") })
			p.signal(syscall.SIGTERM)
		}))
		require.Equal(t, turnsv1.AbandonReason_ABANDON_REASON_SHUTDOWN, last.GetAbandoned().GetReason())
		require.Equal(t, 0, p.code(), "it is a clean drain all the same")
	})
}

func TestAPortInUseIsAnErrorThatNamesTheFlag(t *testing.T) {
	p := serve(t, emptyDatabases[engineSQLite](t))
	text := fails(t, 1, nil, "serve", "--demo", "--listen", p.ready.Listen, "--database-url", emptyDatabases[engineSQLite](t))
	require.Contains(t, text, "turnd: --listen: ")
}

func TestADatabaseThatCannotBeReachedIsAnErrorWithoutItsPassword(t *testing.T) {
	text := fails(t, 1, nil, "serve", "--demo", "--listen", ":0", "--database-url", "postgres://user:hidden@127.0.0.1:1/turnd")
	require.NotContains(t, text, "hidden")
	require.Contains(t, text, "turnd: check --database-url: Postgres can't be reached: dial tcp 127.0.0.1:1")
	require.Equal(t, 1, strings.Count(text, "connection refused"))
}

func TestABadModelsFileIsAnErrorWithALineForEachProblem(t *testing.T) {
	file := filepath.Join(t.TempDir(), "models.yaml")
	require.NoError(t, os.WriteFile(file, []byte("version: 1\nendpoints:\n  e: {wire: telegraph}\nmodels: {}\n"), 0o600))
	text := fails(t, 1, nil, "serve", "--listen", ":0", "--models", file, "--database-url", emptyDatabases[engineSQLite](t))
	require.Contains(t, text, "endpoints.e.wire")
	require.Contains(t, text, "\nturnd: ")
}

func TestAnOpsListenerOffLoopbackIsAllowedAndSaid(t *testing.T) {
	p := serve(t, emptyDatabases[engineSQLite](t), "--ops-listen", "0.0.0.0:0")
	require.Contains(t, p.err.String(), "WRN the ops listener is not on loopback")
}

func TestKeysOfVendorsMakeTheirModels(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ready.json")
	p := launch(t, []string{"ANTHROPIC_API_KEY=sk-hidden"}, "serve", "--listen", ":0", "--ready-file", file, "--log-level", "debug",
		"--database-url", emptyDatabases[engineSQLite](t))
	p.until(func() bool { return strings.Contains(p.out.String(), "turnd ready") })
	require.Contains(t, p.out.String(), "models=claude-")
	require.NotContains(t, p.out.String(), "demo")
	require.NotContains(t, p.err.String(), "hidden")
}

func TestTheScriptedProviderRunsAsAProcessOfItsOwn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ready.json")
	p := launch(t, nil, "scripted-provider", "--ready-file", file)
	p.until(func() bool { return strings.Contains(p.out.String(), "ready listen=127.0.0.1:") })
	require.FileExists(t, file)
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.code())
	require.NoFileExists(t, file)
}

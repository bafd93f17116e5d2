package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// dayBed is a service with a turn that failed once, was answered, and came again.
func dayBed(t *testing.T) (p *process, conversation, turn string) {
	t.Helper()
	_, file := fast(t, scripted.Script{Rules: []scripted.Rule{
		{Match: scripted.Match{Nth: 1}, Plan: scripted.Plan{Steps: []scripted.Step{{At: "request_read", Do: "status", Status: 503}}}},
		{Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: 8}}}}})
	p = serveModels(t, emptyDatabases[engineSQLite](t), file, "--sweep", "50ms", "--backoff", "10ms", "--worker-name", "blue")
	turn = uuid.NewString()
	for range 2 {
		_, last := take(t, connect(t, p), turn, func(e *turnsv1.Event) {
			if a := e.GetAccepted(); a != nil {
				conversation = a.GetTurn().GetConversationId()
			}
		})
		require.NotNil(t, last.GetCompleted())
	}
	p.until(func() bool {
		return strings.Contains(prints(t, p.asks("ledger", "--sum")...), "repeated deliveries: 1 (client)")
	})
	return p, conversation, turn
}

// asks is a command that asks a process.
func (p *process) asks(args ...string) []string { return append(args, "--server", p.ready.Listen) }

func TestATurnIsExplainedByWhateverNamesIt(t *testing.T) {
	p, conversation, turn := dayBed(t)
	story := prints(t, p.asks("explain", turn)...)
	for _, want := range []string{"delivered  ", "delivered again x1  by client", "epoch 1, by blue (", "HTTP 503", "call 2", "complete",
		"in all: 2 deliveries, 1 reply, 0 takeovers; 2 calls (1 first, 1 retry) under 1 idempotency key"} {
		require.Contains(t, story, want)
	}
	require.NotContains(t, story, "hello", "nothing that was said")
	require.Equal(t, story, prints(t, p.asks("explain", conversation+"/"+turn)...))
	require.Equal(t, story, prints(t, p.asks("explain", "http://x/v1/conversations/"+conversation+"/turns/"+turn)...))
	require.Equal(t, story, prints(t, p.asks("explain", "--conversation", conversation, turn)...))
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(prints(t, p.asks("explain", "--json", turn)...)), &got))
	require.Equal(t, turn, got["turnId"])
	require.Contains(t, fails(t, 1, nil, p.asks("explain", uuid.NewString())...), "name its conversation too")
	require.Contains(t, fails(t, 1, nil, p.asks("explain", conversation+"/"+uuid.NewString())...), "NOT_FOUND")
	require.Contains(t, fails(t, 1, nil, p.asks("explain", "--tenant", "other", conversation+"/"+turn)...), "NOT_FOUND")
	fails(t, 2, nil, "explain", "x")
	fails(t, 2, nil, "explain", "--conversation", "x", turn)
	fails(t, 2, nil, "explain", "--conversation", uuid.NewString(), conversation+"/"+turn)
}

func TestTheLedgerIsListedSummedAndWrittenAsCSV(t *testing.T) {
	p, conversation, turn := dayBed(t)
	require.Len(t, strings.Split(strings.TrimSpace(prints(t, p.asks("ledger")...)), "\n"), 3)
	for flags, want := range map[string]int{"--try retry": 1, "--layer first": 1, "--class transient": 1, "--class ok --try first": 0, "--endpoint e": 2,
		"--endpoint other": 0, "--open": 0, "--wasted": 0, "--since 1h": 2, "--before 1h": 0, "--conversation " + conversation + " --turn " + turn: 2} {
		got := strings.Split(strings.TrimSpace(prints(t, p.asks(append([]string{"ledger"}, strings.Fields(flags)...)...)...)), "\n")
		require.Len(t, got, 1+want, flags)
	}
	sums := prints(t, p.asks("ledger", "--sum")...)
	require.Contains(t, sums, "retry rate: 50.00 % of calls")
	raw := prints(t, p.asks("ledger", "--csv")...)
	require.Equal(t, 3, strings.Count(raw, "\r\n"))
	lines, err := csv.NewReader(strings.NewReader(raw)).ReadAll()
	require.NoError(t, err)
	require.Equal(t, csvColumns, lines[0])
	require.Len(t, lines, 3)
	cut := launch(t, nil, p.asks("ledger", "--csv", "--limit", "1")...)
	require.Equal(t, 0, cut.code())
	require.Contains(t, cut.err.String(), "CUT after 1 calls")
	for _, args := range [][]string{{"--limit", "0"}, {"--class", "odd"}, {"--try", "third"}, {"--layer", "x"}, {"--turn", turn}, {"--since", "soon"}, {"--since", "24h", "--before", "48h"}, {"--tenant", "\x1b[31m"}, {"--csv", "--sum"}} {
		fails(t, 2, nil, append([]string{"ledger"}, args...)...)
	}
}

func TestWorkersAndASweepAreShown(t *testing.T) {
	p, _, _ := dayBed(t)
	lines := strings.Split(strings.TrimSpace(prints(t, p.asks("workers")...)), "\n")
	require.Len(t, lines, 2)
	require.Equal(t, []string{"blue", "alive"}, strings.Fields(lines[1])[1:3])
	require.Contains(t, prints(t, p.asks("sweep")...), "nothing is stale")
	require.Equal(t, "{}\n", prints(t, p.asks("sweep", "--json")...))
}

func TestTheDoctorTellsWhatIsWrongAndNoSecret(t *testing.T) {
	onEachEngine(t, func(t *testing.T, url string) {
		_, file := fast(t, scripted.DefaultScript(0))
		dir := t.TempDir()
		if strings.HasPrefix(url, "postgres") {
			bare := launch(t, nil, "doctor", "--database-url", url, "--models", file, "--data-dir", dir)
			require.Equal(t, 1, bare.code())
			require.Equal(t, 1, strings.Count(bare.out.String(), "\n"+levelFAIL), "before the schema is there, only that it is not: %s", bare.out.String())
			require.Regexp(t, `(?m)^FAIL +schema .*turnd migrate up`, bare.out.String())
		}
		flags := []string{"doctor", "--database-url", url, "--models", file, "--data-dir", dir}
		serveModels(t, url, file, "--data-dir", dir)
		well := prints(t, flags...)
		for _, line := range []string{"database", "schema", "guards", "clock", "workers", "held", "bus", "models", "endpoint e", "spool"} {
			require.Regexp(t, `(?m)^ok +`+line+` `, well)
		}
		require.NotContains(t, well, levelFAIL)
		waits := filepath.Join(dir, "spool", uuid.NewString())
		require.NoError(t, os.MkdirAll(waits, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(waits, "a-1.json.bad"), nil, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(waits, "b-1.json.bad"), nil, 0o600))
		require.Regexp(t, `(?m)^warn +spool .* holds 2 files that could not be read, and 0 finished`, prints(t, flags...))
		require.NoError(t, os.RemoveAll(waits))
		var got struct{ Findings []finding }
		require.NoError(t, json.Unmarshal([]byte(prints(t, append(flags, "--json")...)), &got))
		require.Greater(t, len(got.Findings), 9)
	})
	models := filepath.Join(t.TempDir(), "models.yaml")
	require.NoError(t, os.WriteFile(models, []byte("version: 1\nendpoints:\n  gone: {wire: anthropic.messages, base_url: http://127.0.0.1:1}\n"+
		"models:\n  m: {route: [{endpoint: gone, model: demo}]}\n"), 0o600))
	ill := launch(t, nil, "doctor", "--database-url", "postgres://u:secret@127.0.0.1:1/x", "--models", models, "--data-dir", t.TempDir())
	require.Equal(t, 1, ill.code())
	require.Regexp(t, `(?m)^FAIL +database `, ill.out.String())
	require.Regexp(t, `(?m)^FAIL +endpoint gone `, ill.out.String())
	require.NotRegexp(t, `(?m)pooler|--database-direct-url|LISTEN`, ill.out.String(), "what is away is no pooler")
	require.NotContains(t, ill.out.String()+ill.err.String(), "secret")
	fails(t, 2, nil, "doctor", "--lease", "1ns")
}

package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// heldBed is a service with the policy hold and a provider that breaks off each reply after some text.
func heldBed(t *testing.T) *process {
	t.Helper()
	_, file := fast(t, scripted.Script{Rules: []scripted.Rule{
		{Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: 8}, Steps: []scripted.Step{{At: "delta:4", Do: "close"}}}}}})
	return serveModels(t, emptyDatabases[engineSQLite](t), file, "--on-ambiguous", "hold", "--sweep", "50ms")
}

// holds makes a held reply and gives it with its text.
func holds(t *testing.T, p *process) (r *turnsv1.Reply, text string) {
	t.Helper()
	conn, turn := connect(t, p), uuid.NewString()
	var conversation string
	text, last := take(t, conn, turn, func(e *turnsv1.Event) {
		if a := e.GetAccepted(); a != nil {
			conversation = a.GetTurn().GetConversationId()
		}
	})
	require.NotNil(t, last.GetHeld())
	got, err := turnsv1.NewTurnServiceClient(conn).GetTurn(t.Context(), &turnsv1.GetTurnRequest{
		ConversationId: conversation, Target: &turnsv1.GetTurnRequest_TurnId{TurnId: turn}})
	require.NoError(t, err)
	return got.GetReplies()[0], text
}

func TestHeldRepliesAreListedReleasedAndCompletedFromACommandLine(t *testing.T) {
	p := heldBed(t)
	first, _ := holds(t, p)
	second, shown := holds(t, p)
	held := func(args ...string) []string {
		return append([]string{"held"}, append(args, "--server", p.ready.Listen)...)
	}
	of := func(r *turnsv1.Reply, epoch int64) []string {
		return []string{r.GetConversationId(), r.GetReplyId(), "--epoch", strconv.FormatInt(epoch, 10)}
	}

	lines := strings.Split(strings.TrimSpace(prints(t, held("--json")...)), "\n")
	require.Len(t, lines, 2)
	var earliest map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &earliest))
	require.Equal(t, first.GetReplyId(), earliest["replyId"], "as REST names it")
	calls := prints(t, "ledger", "--csv", "--open", "--server", p.ready.Listen)
	require.Equal(t, 2, strings.Count(calls, ",body,200,"), "how far a held call came is known before it is resolved: %s", calls)
	for _, args := range [][]string{held(), held("list")} {
		lines := strings.Split(strings.TrimSpace(prints(t, args...)), "\n")
		require.Len(t, lines, 3)
		require.Equal(t, []string{"CONVERSATION", "REPLY", "EPOCH", "AGE", "MODEL", "PROVIDER", "CALLS", "OPEN"}, strings.Fields(lines[0]))
		fields := strings.Fields(lines[1])
		require.Equal(t, []string{first.GetConversationId(), first.GetReplyId(), "1"}, fields[:3])
		require.Equal(t, []string{"m", "anthropic", "1"}, fields[4:])
	}
	require.Len(t, strings.Split(strings.TrimSpace(prints(t, held("--tenant", "other")...)), "\n"), 1, "another tenant has none")
	limited := launch(t, nil, held("--limit", "1")...)
	require.Equal(t, 0, limited.code())
	require.Contains(t, limited.err.String(), "raise --limit")
	p.until(func() bool {
		_, text := get(t, "http://"+p.ready.Ops+"/metrics")
		return strings.Contains(text, "\nturnd_held 2\n") && strings.Contains(text, "\nturnd_oldest_claim_seconds 0\n")
	})

	require.Contains(t, fails(t, 1, nil, held(append([]string{"release"}, of(first, 2)...)...)...), "STALE_EPOCH")
	for range 2 {
		require.Equal(t, "reply "+first.GetReplyId()+" is abandoned (held_released)\n", prints(t, held(append([]string{"release"}, of(first, 1)...)...)...))
	}

	file := filepath.Join(t.TempDir(), "text")
	notText := filepath.Join(t.TempDir(), "latin1")
	require.NoError(t, os.WriteFile(notText, []byte("\xe9"), 0o600))
	require.Contains(t, fails(t, 2, nil, held(append([]string{"complete", "--text-file", notText}, of(second, 1)...)...)...), "--text-file: must be UTF-8")
	complete := append([]string{"complete", "--text-file", file}, of(second, 1)...)
	require.Contains(t, fails(t, 1, nil, held(complete...)...), "--text-file")
	require.NoError(t, os.WriteFile(file, []byte("another text"), 0o600))
	require.Contains(t, fails(t, 1, nil, held(complete...)...), "WRONG_STATE: content: does not begin with what is stored")
	require.NoError(t, os.WriteFile(file, []byte(shown+" and the rest\n"), 0o600))
	require.Equal(t, "reply "+second.GetReplyId()+" is complete\n", prints(t, held(complete...)...))
	require.Contains(t, fails(t, 1, nil, held(append([]string{"release"}, of(second, 1)...)...)...), "(it is complete)")
	require.Len(t, strings.Split(strings.TrimSpace(prints(t, held()...)), "\n"), 1)
}

func TestADecisionThatIsMistypedIsAMistakeInFlags(t *testing.T) {
	id := uuid.NewString()
	for _, args := range [][]string{
		{"release", id, id}, {"release", id}, {"release", "x", id, "--epoch", "1"}, {"release", id, id, "--epoch", "0"},
		{"complete", id, id, "--epoch", "1"}, {"list", "--limit", "0"}, {"list", "--server", "nowhere"},
	} {
		fails(t, 2, nil, append([]string{"held"}, args...)...)
	}
	require.Contains(t, fails(t, 1, nil, "held", "--server", "127.0.0.1:1"), "no answer from 127.0.0.1:1")
}

func TestAWebhookIsTakenBySignatureOnItsOwnListener(t *testing.T) {
	key := []byte("a key of a vendor's own making!!")
	provider := scripted.Start(t, scripted.DefaultScript(0))
	models := filepath.Join(t.TempDir(), "models.yaml")
	require.NoError(t, os.WriteFile(models, []byte("version: 1\nendpoints:\n  gpt:\n    wire: openai.responses\n    base_url: "+provider.URL()+
		"\n    webhook: {secret: {env: HOOK_SECRET}}\n    capabilities: {resume: true}\nmodels:\n  m: {route: [{endpoint: gpt, model: demo}]}\n"), 0o600))
	p := serveIn(t, []string{"HOOK_SECRET=whsec_" + base64.StdEncoding.EncodeToString(key)}, emptyDatabases[engineSQLite](t),
		"--demo=false", "--models", models, "--migrate", "on", "--webhook-listen", ":0")
	send := func(path, id string, key []byte) int {
		const body = `{"type":"response.completed","data":{"id":"resp_of_somebody_else"}}`
		now := strconv.FormatInt(time.Now().Unix(), 10)
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, now, body)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.ready.Webhooks+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("webhook-id", id)
		r.Header.Set("webhook-timestamp", now)
		r.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode
	}
	require.Equal(t, http.StatusUnauthorized, send("/v1/webhooks/gpt", "m1", []byte("another")))
	require.Equal(t, http.StatusNotFound, send("/v1/webhooks/other", "m1", key))
	require.Equal(t, http.StatusOK, send("/v1/webhooks/gpt", "m1", key))
	require.NotContains(t, p.err.String(), base64.StdEncoding.EncodeToString(key))
	var ready map[string]any
	raw, err := os.ReadFile(p.file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &ready))
	require.NotEmpty(t, ready["webhooks"])
}

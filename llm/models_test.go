package llm_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/turns"
)

const fullFile = `version: 1
default_model: demo
endpoints:
  local:
    wire: anthropic.messages
    base_url: http://127.0.0.1:9090
    capabilities: {idempotency: enforced, retention: 24h, scope: key, resume: false, lookup: false,
                   cancel: false, fence: false, usage_on_abort: true, disconnect_stops: unknown}
    limits: {first_byte: 2m, idle: 5m, total: 30m, window_tokens: 200000, max_output_tokens: 4096}
    on_ambiguous: abandon
    on_partial: discard
    prices: {input: 3.00, output: 15.00, cache_read: 0.30, cache_write: 3.75}
  cloud:
    wire: openai.chat
    key: {env: CLOUD_KEY}
    dialect: compatible
    base_url: https://models.example.com/v1
  third:
    wire: openai.responses
    key: {file: third.key}
    webhook: {secret: {env: HOOK_SECRET}}
    capabilities: {resume: true, cancel: true}
    on_ambiguous: hold
    on_partial: continue
models:
  demo: {route: [{endpoint: local, model: demo-1}]}
  big:
    route:
      - {endpoint: cloud, model: big-1}
      - {endpoint: third, model: big-2}
      - {endpoint: cloud, model: big-2}
`

func load(t *testing.T, file string) (llm.Config, error) {
	t.Helper()
	t.Setenv("CLOUD_KEY", "sk-cloud")
	t.Setenv("HOOK_SECRET", "whsec_sk-hook")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "third.key"), []byte(" sk-third\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "empty.key"), nil, 0o600))
	path := filepath.Join(dir, "models.yaml")
	require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	return llm.Load(path)
}

func TestAModelsFileIsReadWhole(t *testing.T) {
	c, err := load(t, fullFile)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(llm.Config{
		DefaultModel: "demo",
		Endpoints: []llm.Endpoint{
			{
				Name: "local", Wire: llm.WireAnthropicMessages, BaseURL: "http://127.0.0.1:9090",
				Capabilities: turns.Capabilities{Idempotency: turns.IdempotencyEnforced, Retention: 24 * time.Hour, UsageOnAbort: true},
				KeyScope:     "key", DisconnectStops: "unknown",
				Limits:      turns.Limits{FirstByte: 2 * time.Minute, Idle: 5 * time.Minute, Total: 30 * time.Minute, WindowTokens: 200000, MaxOutputTokens: 4096},
				OnAmbiguous: "abandon", OnPartial: "discard",
				Prices: llm.Prices{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75},
			},
			{Name: "cloud", Wire: llm.WireOpenAIChat, BaseURL: "https://models.example.com/v1", Key: "sk-cloud", Dialect: llm.DialectCompatible},
			{
				Name: "third", Wire: llm.WireOpenAIResponses, Key: "sk-third", WebhookSecret: "whsec_sk-hook",
				Capabilities: turns.Capabilities{Resume: true, Cancel: true},
				OnAmbiguous:  turns.OnAmbiguousHold, OnPartial: turns.OnPartialContinue,
			},
		},
		Models: []llm.Model{
			{Name: "demo", Route: []llm.Target{{Endpoint: "local", Model: "demo-1"}}},
			{Name: "big", Route: []llm.Target{{Endpoint: "cloud", Model: "big-1"}, {Endpoint: "third", Model: "big-2"}, {Endpoint: "cloud", Model: "big-2"}}},
		},
	}, c))
}

func TestEveryProblemNamesItsLineAndEntry(t *testing.T) {
	const ok = "version: 1\nendpoints:\n  local:\n    wire: anthropic.messages\n    base_url: http://127.0.0.1:1\n%s" +
		"models:\n  demo: {route: [{endpoint: local, model: m}]}\n"
	with := func(lines string) string { return strings.Replace(ok, "%s", lines, 1) }
	for _, tt := range []struct {
		name, file string
		want       []string // in the error's text
	}{
		{"empty", "", []string{"version", "empty"}},
		{"no YAML", "version: [", []string{"line"}},
		{"two documents", with("") + "---\nversion: 1\n", []string{"second document"}},
		{"a list", "- a\n", []string{"line 1", "must be a mapping"}},
		{"no version", strings.TrimPrefix(with(""), "version: 1\n"), []string{"version", "version 1"}},
		{"version 2", strings.Replace(with(""), "version: 1", "version: 2", 1), []string{"version", "version 1"}},
		{"unknown key", with("    wires: x\n"), []string{"line 6: endpoints.local.wires: unknown key", "base_url"}},
		{"unknown key above", "version: 1\nendpoint: {}\n", []string{"line 2: endpoint: unknown key"}},
		{"unknown key below", with("    limits: {first: 2m}\n"), []string{"line 6: endpoints.local.limits.first", "first_byte"}},
		{"a key twice", with("    on_partial: discard\n    on_partial: discard\n"), []string{"line 7: endpoints.local.on_partial"}},
		{"an alias", with("    on_partial: &a discard\n    on_ambiguous: *a\n"), []string{"line 7: endpoints.local.on_ambiguous"}},
		{"not a duration", with("    limits: {idle: 5}\n"), []string{"line 6: endpoints.local.limits.idle", "30s"}},
		{"a negative duration", with("    limits: {idle: -5s}\n"), []string{"line 6: endpoints.local.limits.idle: negative"}},
		{"not a number", with("    prices: {input: dear}\n"), []string{"line 6: endpoints.local.prices.input: must be a number"}},
		{"not a price", with("    prices: {input: .nan}\n"), []string{"line 6: endpoints.local.prices.input"}},
		{"not true or false", with("    capabilities: {resume: 7}\n"), []string{"line 6: endpoints.local.capabilities.resume: must be true or false"}},
		{"not whole", with("    limits: {window_tokens: 1.5}\n"), []string{"line 6: endpoints.local.limits.window_tokens: must be a whole number"}},
		{"null", with("    on_partial:\n"), []string{"line 6: endpoints.local.on_partial: must be text"}},
		{"unknown policy", with("    on_ambiguous: shrug\n"), []string{"line 6: endpoints.local.on_ambiguous", "abandon, retry, hold"}},
		{"another scope", with("    capabilities: {scope: world}\n"), []string{"line 6: endpoints.local.capabilities.scope", "key"}},
		{"enforced for no time", with("    capabilities: {idempotency: enforced}\n"), []string{"line 6: endpoints.local.capabilities.retention: missing"}},
		{"what the wire can't have", with("    capabilities:\n      idempotency: none\n      fence: true\n"), []string{"line 8: endpoints.local.capabilities.fence: anthropic.messages can't have it"}},
		{"a webhook elsewhere", with("    webhook: {secret: {env: CLOUD_KEY}}\n"), []string{"line 6: endpoints.local.webhook: only for openai.responses"}},
		{"a webhook without secret", with("    webhook: {}\n"), []string{"line 6: endpoints.local.webhook: must have a secret"}},
		{"the secret itself", with("    webhook: {secret: sk-oops}\n"), []string{"line 6: endpoints.local.webhook.secret: must be {env: NAME}"}},
		{"unknown capability", with("    capabilities: {idempotency: maybe}\n"), []string{"line 6: endpoints.local.capabilities.idempotency", "enforced"}},
		{"a dialect elsewhere", with("    dialect: openai\n"), []string{"line 6: endpoints.local.dialect", "openai.chat"}},
		{"an unknown wire", strings.Replace(with(""), "anthropic.messages", "smoke", 1), []string{"line 4: endpoints.local.wire: unknown wire", "gemini.interactions"}},
		{"no URL", strings.Replace(with(""), "http://127.0.0.1:1", "127.0.0.1", 1), []string{"line 5: endpoints.local.base_url"}},
		{"a user in the URL", strings.Replace(with(""), "http://", "http://me:sk-oops@", 1), []string{"line 5: endpoints.local.base_url"}},
		{"no key", strings.Replace(with(""), "127.0.0.1:1", "models.example.com", 1), []string{"endpoints.local.key: missing"}},
		{"the key itself", with("    key: sk-oops\n"), []string{"line 6: endpoints.local.key", "{env: NAME}"}},
		{"two places of a key", with("    key: {env: A, file: b}\n"), []string{"line 6: endpoints.local.key", "exactly one"}},
		{"no such variable", with("    key: {env: TURND_TEST_NO_SUCH}\n"), []string{"line 6: endpoints.local.key", "TURND_TEST_NO_SUCH is not set"}},
		{"no such file", with("    key: {file: none.key}\n"), []string{"line 6: endpoints.local.key: can't read"}},
		{"the key as a variable", with("    key: {env: sk-oops}\n"), []string{"line 6: endpoints.local.key: env must be the name"}},
		{"the key as a file", with("    key: {file: sk-oops}\n"), []string{"line 6: endpoints.local.key: can't read"}},
		{"an empty file", with("    key: {file: empty.key}\n"), []string{"line 6: endpoints.local.key", "empty"}},
		{"a file that is no key", with("    key: {file: models.yaml}\n"), []string{"line 6: endpoints.local.key: holds a character"}},
		{"no models", "version: 1\n", []string{"models: none"}},
		{"no route", with("") + "  x: {route: []}\n", []string{"line 8: models.x.route: empty"}},
		{"a route with a repeat", with("") + "  x: {route: [{endpoint: local, model: a}, {endpoint: local, model: a}]}\n", []string{"line 8: models.x.route: names the same model"}},
		{"a route that is no list", with("") + "  x: {route: {endpoint: local}}\n", []string{"line 8: models.x.route: must be a list"}},
		{"no such endpoint", with("") + "  x: {route: [{endpoint: nowhere, model: a}]}\n", []string{"line 8: models.x.route.endpoint: no endpoint"}},
		{"no model there", with("") + "  x: {route: [{endpoint: local}]}\n", []string{"line 8: models.x.route.model: missing"}},
		{"no default of two", with("") + "  x: {route: [{endpoint: local, model: a}]}\n", []string{"default_model: missing"}},
		{"no such default", "default_model: y\n" + with(""), []string{"line 1: default_model: no model"}},
		{"several", with("    wires: x\n    limits: {idle: 5}\n"), []string{"line 6", "line 7"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, tt.file)
			require.Error(t, err)
			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
			require.NotContains(t, err.Error(), "sk-")
			require.NotContains(t, err.Error(), "oops")
		})
	}
	_, err := llm.Load(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = load(t, "version: 1 #"+strings.Repeat("x", 1<<20))
	require.ErrorContains(t, err, "larger than")
}

func TestACapabilityThatTheWireCannotHaveIsRefusedWithAReason(t *testing.T) {
	type caps = turns.Capabilities
	all := caps{Resume: true, Lookup: true, Cancel: true, Fence: true}
	for wire, tt := range map[llm.Wire]struct {
		good   []caps
		bad    []string // of all four
		beside map[string]caps
	}{
		llm.WireAnthropicMessages:  {bad: []string{"resume", "lookup", "cancel", "fence"}},
		llm.WireOpenAIChat:         {good: []caps{{Lookup: true}}, bad: []string{"resume", "cancel", "fence"}},
		llm.WireGeminiGenerate:     {bad: []string{"resume", "lookup", "cancel", "fence"}},
		llm.WireGeminiInteractions: {good: []caps{{Resume: true}, {Resume: true, Cancel: true}}, bad: []string{"lookup", "fence"}, beside: map[string]caps{"cancel": {Cancel: true}}},
		llm.WireOpenAIResponses: {
			good:   []caps{{Resume: true}, {Resume: true, Cancel: true}, {Lookup: true}, {Fence: true}, {Lookup: true, Fence: true}},
			bad:    []string{"resume"},
			beside: map[string]caps{"cancel": {Cancel: true, Lookup: true}, "resume": {Resume: true, Fence: true}},
		},
	} {
		t.Run(string(wire), func(t *testing.T) {
			refused := func(c caps) (paths []string) {
				config := llm.Demo("http://127.0.0.1:1")
				config.Endpoints[0].Wire, config.Endpoints[0].Capabilities = wire, c
				err := config.Validate()
				if err == nil {
					return nil
				}
				for _, p := range llm.Problems(err) {
					require.NotEmpty(t, p.Text)
					paths = append(paths, strings.TrimPrefix(p.Path, "endpoints.demo.capabilities."))
				}
				return paths
			}
			require.Equal(t, tt.bad, refused(all))
			for _, c := range append(tt.good, caps{UsageOnAbort: true, Idempotency: turns.IdempotencyEnforced, Retention: time.Hour}) {
				require.Empty(t, refused(c), "%+v", c)
			}
			for path, c := range tt.beside {
				require.Equal(t, []string{path}, refused(c))
			}
		})
	}
}

func TestAConfigShowsNoKey(t *testing.T) {
	c, err := load(t, fullFile)
	require.NoError(t, err)
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("models", "config", c)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("models", "config", c, "endpoint", c.Endpoints[1])
	require.NotContains(t, out.String(), "sk-")
	require.Contains(t, out.String(), "cloud/big-1")
	require.Contains(t, out.String(), "[redacted]")
}

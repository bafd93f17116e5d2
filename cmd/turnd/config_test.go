package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/limiter"
)

// defaults are the settings of a serve without flags.
func defaults(t *testing.T) Config {
	t.Helper()
	t.Setenv("HOME", "/home/someone")
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv(anthropicKey, "")
	t.Setenv(openAIKey, "")
	var c cli
	parser, err := newParser(&c)
	require.NoError(t, err)
	_, err = parser.Parse([]string{"serve"})
	require.NoError(t, err)
	return c.Serve.Config
}

func TestDefaultsAreThoseOfTheService(t *testing.T) {
	require.Equal(t, turns.DefaultSettings(), defaults(t).settings())
}

func TestBadSettingsAreRefusedByFlag(t *testing.T) {
	for _, row := range []struct {
		why   string
		spoil func(*Config)
	}{
		{`--listen: "8080" is not host:port, for example 127.0.0.1:8080`, func(c *Config) { c.Listen = "8080" }},
		{`--listen: "localhost:http" is not host:port, for example 127.0.0.1:8080`, func(c *Config) { c.Listen = "localhost:http" }},
		{`--auth none is refused on "0.0.0.0:80", which is not loopback: anyone who reaches it could name any tenant`, func(c *Config) { c.Listen = "0.0.0.0:80" }},
		{`--auth none is refused on "turnd.example:80", which is not loopback: anyone who reaches it could name any tenant`, func(c *Config) { c.Listen = "turnd.example:80" }},
		{`--auth none can't go with another mode: it believes everybody`, func(c *Config) { c.Auth = "keys,none" }},
		{`--auth-cache: -1ns is too little, the least is 0s`, func(c *Config) { c.AuthCache = -1 }},
		{`--auth names keys twice`, func(c *Config) { c.Auth = "keys,keys" }},
		{`--oidc-tenant: must have no blanks before or behind it`, func(c *Config) { c.withOIDC().OIDCTenant = "acme " }},
		{`--auth must be one of none, keys, oidc, or keys,oidc`, func(c *Config) { c.Auth = "basic" }},
		{`--oidc-issuer: goes with --auth oidc`, func(c *Config) { c.OIDC.OIDCIssuer, c.Auth = "https://issuer.example.com", "keys" }},
		{`--oidc-audience: goes with --auth oidc`, func(c *Config) { c.OIDC.OIDCAudience = "turnd" }},
		{`--oidc-issuer: must be set`, func(c *Config) { c.withOIDC().OIDCIssuer = "" }},
		{`--oidc-issuer: must be https; http is for loopback alone`, func(c *Config) { c.withOIDC().OIDCIssuer = "http://issuer.example.com" }},
		{`--oidc-jwks-url: must have neither a user nor a fragment`, func(c *Config) { c.withOIDC().OIDCJWKSURL = "https://u:hidden@h" }},
		{`--oidc-audience: must name whom tokens are for, or those made for others would be good here`, func(c *Config) { c.withOIDC().OIDCAudience = "" }},
		{`--oidc-audience: has an empty value`, func(c *Config) { c.withOIDC().OIDCAudience = "turnd," }},
		{`--oidc-tenant-claim: must name the claim with the tenant, unless one tenant is set for all`, func(c *Config) { c.withOIDC().OIDCTenantClaim = "" }},
		{`--oidc-tenant: must be 1 to 128 printable ASCII characters`, func(c *Config) { c.withOIDC().OIDCTenant = "a\n" }},
		{`--oidc-keys-lifetime: 0s is too little, the least is 1m0s`, func(c *Config) { c.withOIDC().OIDCKeysLifetime = 0 }},
		{`--oidc-keys-lifetime: -1ns is too little, the least is 1m0s`, func(c *Config) { c.withOIDC().OIDCKeysLifetime = -1 }},
		{`--oidc-keys-grace: 0s is too little, the least is 1m0s`, func(c *Config) { c.withOIDC().OIDCKeysGrace = 0 }},
		{`--oidc-keys-grace: must be between the keys' lifetime and 168h0m0s`, func(c *Config) { c.withOIDC().OIDCKeysGrace = -1 }},
		{`--webhook-listen: "hook" is not host:port, for example 127.0.0.1:8080`, func(c *Config) { c.WebhookListen = "hook" }},
		{`--ops-listen: "9464" is not host:port, for example 127.0.0.1:8080`, func(c *Config) { c.OpsListen = "9464" }},
		{`--cors-origins: "chat.example.com" is no origin; write it as a browser does, such as https://chat.example.com`,
			func(c *Config) { c.CORSOrigins = "https://a.example, chat.example.com" }},
		{`--cors-origins: origin "*" is refused with auth none: every page in a browser on this machine could read and send; name the origins`,
			func(c *Config) { c.CORSOrigins = "*" }},
		{`--cors-origins: origin "*" stands for all; leave out the others`,
			func(c *Config) { c.Auth, c.CORSOrigins = "keys", "*,https://a.example" }},
		{`--web-listen: goes with --tls-cert; without TLS the web is served on --listen`, func(c *Config) { c.WebListen = ":1" }},
		{`--web-listen: "8443" is not host:port, for example 127.0.0.1:8080`, func(c *Config) { c.withTLS().WebListen = "8443" }},
		{`--web-listen: auth none is refused on "0.0.0.0:1", which is not loopback: anyone who reaches it could name any tenant`,
			func(c *Config) { c.withTLS().WebListen = "0.0.0.0:1" }},
		{`--tls-cert, --tls-key: one goes with the other`, func(c *Config) { c.TLS.TLSCert = "cert.pem" }},
		{`--tls-cert, --tls-key: one goes with the other`, func(c *Config) { c.TLS.TLSKey = "key.pem" }},
		{`--tls-client-ca: goes with --tls-cert and --tls-key`, func(c *Config) { c.TLS.TLSClientCA = "ca.pem" }},
		{`--tls-min-version: "1.1" is not one of 1.2, 1.3`, func(c *Config) { c.TLS.TLSMinVersion = "1.1" }},
		{`--nats-url: goes with --bus nats`, func(c *Config) { c.NATSURL = "nats://u:hidden@h" }},
		{`--nats-url: must be set for --bus nats`, func(c *Config) { c.Bus = "nats" }},
		{`--nats-url: must be nats:// or tls:// URLs, with commas between them`, func(c *Config) {
			c.Bus, c.NATSURL = "nats", "nats://a,http://u:hidden@h"
		}},
		{`--max-queue: -1 is too little, the least is 0`, func(c *Config) { c.MaxQueue = -1 }},
		{`--max-waiting: 0 is too little, the least is 1`, func(c *Config) { c.MaxWaiting = 0 }},
		{`--on-ambiguous: "pray" is not one of abandon, retry, hold`, func(c *Config) { c.OnAmbiguous = "pray" }},
		{`--on-partial: "keep" is not one of discard, continue`, func(c *Config) { c.OnPartial = "keep" }},
		{`--bus: postgres needs a Postgres database; use auto`, func(c *Config) { c.Bus = "postgres" }},
		{`--bus: "smoke" is not one of auto, memory, poll, postgres, nats`, func(c *Config) { c.Bus = "smoke" }},
		{`--bus: memory can't reach the other workers of a Postgres database; use auto`, func(c *Config) {
			c.Bus, c.Database.DatabaseURL = "memory", "postgres://h/d"
		}},
		{`--migrate: "never" is not one of on, off, sqlite`, func(c *Config) { c.Migrate = "never" }},
		{`--database-max-conns: 0 is too little, the least is 1`, func(c *Config) { c.DatabaseMaxConns = 0 }},
		{`--demo: it can't be served together with --models; leave one out`, func(c *Config) { c.Models, c.Demo = "m.yaml", true }},
		{`--anthropic-base-url, --openai-base-url: with --models write base_url into the models file instead`, func(c *Config) {
			c.Models, c.OpenAIBaseURL = "m.yaml", "http://127.0.0.1:1"
		}},
		{`--openai-base-url: must be an http:// or https:// URL`, func(c *Config) { c.OpenAIBaseURL, c.Demo = "ftp://u:hidden@h", true }},
		{`--openai-base-url: goes with OPENAI_API_KEY, which is not set; a server that needs no key is named in a models file`, func(c *Config) {
			c.OpenAIBaseURL = "http://127.0.0.1:1"
		}},
		{`--first-byte-timeout: 0s is too little, the least is 10ms`, func(c *Config) { c.FirstByteTimeout = 0 }},
		{`--max-content-bytes: 16777216 is too much, the most is 15728640`, func(c *Config) { c.MaxContentBytes = 16 << 20 }},
		{`--max-calls: 1001 is too much, the most is 1000`, func(c *Config) { c.MaxCalls = 1001 }},
		{`--database-max-conns: 10001 is too much, the most is 10000`, func(c *Config) { c.DatabaseMaxConns = 10_001 }},
		{`--max-in-flight: 1000001 is too much, the most is 1000000`, func(c *Config) { c.MaxInFlight = 1_000_001 }},
		{`--max-queue: 1000001 is too much, the most is 1000000`, func(c *Config) { c.MaxQueue = 1_000_001 }},
		{`--max-output-bytes: 4294967296 is too much, the most is 4294967295`, func(c *Config) { c.MaxOutputBytes = 1 << 32 }},
		{`--max-tenant-tokens: -1 is too little, the least is 0`, func(c *Config) { c.Caps.MaxTenantTokens = -1 }},
		{`--max-conversation-time: 1ns is too little, the least is 1ms`, func(c *Config) { c.Caps.MaxConversationTime = 1 }},
		{`--submissions-per-minute: -1 is too little, the least is 0`, func(c *Config) { c.Limits.SubmissionsPerMinute = new(int64(-1)) }},
		{`--lookups-per-minute: 100000001 is too much, the most is 100000000`, func(c *Config) { c.Limits.LookupsPerMinute = new(int64(100_000_001)) }},
		{`--subject-turns-per-day: -1 is too little, the least is 0`, func(c *Config) { c.Limits.SubjectTurnsPerDay = new(int64(-1)) }},
		{`--tenant-tokens-per-day: -1 is too little, the least is 0`, func(c *Config) { c.Limits.TenantTokensPerDay = new(int64(-1)) }},
		{`--max-subject-in-flight: -1 is too little, the least is 0`, func(c *Config) { c.Limits.MaxSubjectInFlight = new(int64(-1)) }},
		{`--checkpoint: 16s must not be longer than --lease, 15s`, func(c *Config) { c.Checkpoint = 16e9 }},
		{`--traces: "on" is not one of auto, off, otlp`, func(c *Config) { c.Telemetry.Traces = "on" }},
		{`--metrics: "statsd" is not one of auto, prometheus, otlp`, func(c *Config) { c.Telemetry.Metrics = "statsd" }},
		{`--trace-sample: 1.5 is no share, from 0 to 1`, func(c *Config) { c.Telemetry.TraceSample = new(1.5) }},
		{`--trace-sample: NaN is no share, from 0 to 1`, func(c *Config) { c.Telemetry.TraceSample = new(math.NaN()) }},
		{`--log-format: "xml" is not one of text, json`, func(c *Config) { c.LogFormat = "xml" }},
	} {
		c := defaults(t)
		row.spoil(&c)
		require.EqualError(t, c.Validate(), row.why)
	}
}

func (c *Config) withOIDC() *OIDC {
	c.Auth, c.OIDC.OIDCIssuer, c.OIDC.OIDCAudience = "oidc", "https://issuer.example.com", "turnd"
	return &c.OIDC
}

func (c *Config) withTLS() *Config {
	c.TLS.TLSCert, c.TLS.TLSKey = "cert.pem", "key.pem"
	return c
}

func TestSettingsThatKeepTheirPromiseAreTaken(t *testing.T) {
	for _, change := range []func(*Config){
		func(*Config) {},
		func(c *Config) { c.Listen, c.OpsListen = ":0", ":0" },
		func(c *Config) { c.Listen = "[::1]:0" },
		func(c *Config) { c.Listen = "localhost:0" },
		func(c *Config) { c.OpsListen = "0.0.0.0:9464" },
		func(c *Config) { c.Bus = "memory" },
		func(c *Config) { c.SpoolDir = "/spool" },
		func(c *Config) { c.Bus, c.Database.DatabaseURL = "poll", "postgresql://h/d" },
		func(c *Config) { c.Bus, c.Database.DatabaseURL = "postgres", "postgresql://h/d" },
		func(c *Config) { c.Bus, c.NATSURL = "nats", "nats://user:word@a:4222, tls://b" },
		func(c *Config) { c.MaxQueue = 7 },
		func(c *Config) { c.withOIDC().OIDCTenantClaim, c.Listen = "org.id", "0.0.0.0:80" },
		func(c *Config) { c.withOIDC().OIDCIssuer, c.Auth = "http://127.0.0.1:9/realms/one", "keys,oidc" },
		func(c *Config) { c.withOIDC().OIDCTenant, c.OIDC.OIDCTenantClaim = "home", "" },
		func(c *Config) { c.withTLS().WebListen = ":0" },
		func(c *Config) { c.CORSOrigins = "https://a.example, http://localhost:5173" },
		func(c *Config) { c.Auth, c.CORSOrigins = "keys", "*" },
		func(c *Config) { c.withTLS().TLS.TLSClientCA = "ca.pem" },
		func(c *Config) { c.MaxQueue, c.Grace, c.MaxWait = 0, 0, 0 },
		func(c *Config) { c.AnthropicBaseURL, c.Demo = "http://127.0.0.1:1", true },
	} {
		c := defaults(t)
		change(&c)
		require.NoError(t, c.Validate())
	}
	c := defaults(t)
	c.AnthropicBaseURL = "https://proxy.example"
	t.Setenv(anthropicKey, "sk")
	require.NoError(t, c.Validate())
}

func TestABadVariableOfTelemetryIsRefusedByItsName(t *testing.T) {
	c := defaults(t)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "hidden")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "hidden")
	err := c.Validate()
	require.ErrorContains(t, err, "OTEL_EXPORTER_OTLP_HEADERS: must be key=value pairs")
	require.ErrorContains(t, err, "OTEL_RESOURCE_ATTRIBUTES")
	require.NotContains(t, err.Error(), "hidden")
	require.ErrorAs(t, err, new(usageError))
}

func TestTracesAreSentWhereAFlagOrTheVariablesSayIt(t *testing.T) {
	sent := func(c Config) (traces, metrics bool) {
		cfg, err := c.Telemetry.config()
		require.NoError(t, err)
		return cfg.Traces, cfg.PushMetrics
	}
	traces, metrics := sent(defaults(t))
	require.False(t, traces || metrics, "nobody asked for it")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
	traces, metrics = sent(defaults(t))
	require.True(t, traces)
	require.False(t, metrics, "they are scraped")
	c := defaults(t)
	c.Telemetry.Traces, c.Telemetry.Metrics = "off", "otlp"
	traces, metrics = sent(c)
	require.False(t, traces, "a flag wins")
	require.True(t, metrics)
	c = defaults(t)
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	t.Setenv("OTEL_METRICS_EXPORTER", "otlp,prometheus")
	traces, metrics = sent(c)
	require.False(t, traces)
	require.True(t, metrics)
}

func TestUnsetLimitsAreThoseOfAProductWhereCallersAreToldApart(t *testing.T) {
	c := defaults(t)
	require.Zero(t, c.settings().Submissions, "without authentication all callers may be one subject")
	require.Zero(t, c.settings().MaxSubjectInFlight)
	require.Zero(t, c.limiter().Lookups)
	for _, auth := range []string{"keys", "oidc"} {
		c.Auth = auth
		require.Equal(t, turns.SubmissionLimits{PerMinute: 60, SubjectTurns: 1000, SubjectTokens: 5_000_000}, c.settings().Submissions)
		require.Equal(t, 16, c.settings().MaxSubjectInFlight)
		require.Equal(t, limiter.Config{Submissions: 60, Lookups: 6000}, c.limiter())
	}
}

func TestALimitThatIsSetIsInForceWhoeverCalls(t *testing.T) {
	for _, auth := range []string{"none", "keys"} {
		c := defaults(t)
		c.Auth = auth
		c.Limits = Limits{SubmissionsPerMinute: new(int64(1)), LookupsPerMinute: new(int64(2)), SubjectTurnsPerDay: new(int64(3)),
			SubjectTokensPerDay: new(int64(4)), TenantTurnsPerDay: new(int64(5)), TenantTokensPerDay: new(int64(6)), MaxSubjectInFlight: new(int64(7))}
		require.NoError(t, c.Limits.check())
		require.Equal(t, turns.SubmissionLimits{PerMinute: 1, SubjectTurns: 3, SubjectTokens: 4, TenantTurns: 5, TenantTokens: 6}, c.settings().Submissions)
		require.Equal(t, 7, c.settings().MaxSubjectInFlight)
		require.Equal(t, limiter.Config{Submissions: 1, Lookups: 2}, c.limiter())
	}
	c := defaults(t)
	c.Auth = "keys"
	zero := new(int64(0))
	c.Limits = Limits{zero, zero, zero, zero, zero, zero, zero}
	require.NoError(t, c.Limits.check())
	require.Zero(t, c.settings().Submissions, "0 is no limit")
	require.Zero(t, c.limiter())
}

func TestAnAddressWithoutAHostIsLoopback(t *testing.T) {
	require.Equal(t, "127.0.0.1:80", localAddress(":80"))
	require.Equal(t, "0.0.0.0:80", localAddress("0.0.0.0:80"))
	require.True(t, isLoopback("[::1]:80"))
	require.False(t, isLoopback("[::]:80"))
	require.False(t, isLoopback("10.0.0.1:80"))
	require.False(t, isLoopback("80"))
}

func TestNoPasswordIsLogged(t *testing.T) {
	c := defaults(t)
	c.Database.DatabaseURL = "postgres://user:hidden@db.example/turnd?password=hidden"
	c.Database.DatabaseDirectURL = "postgres://user:hid%zz@direct.example/turnd"
	c.NATSURL = "nats://hidden@nats.example,tls://user:hidden@second.example"
	c.AnthropicBaseURL = "https://user:hidden@model.example/v1"
	for _, format := range []string{logText, logJSON} {
		var out bytes.Buffer
		newLogger(&out, format, levelInfo).Info("configured", "config", c)
		require.NotContains(t, out.String(), "hidden")
		require.NotContains(t, out.String(), "hid%zz")
		require.Contains(t, out.String(), "postgres://db.example/turnd")
		require.Contains(t, out.String(), "https://model.example/v1")
		require.Contains(t, out.String(), "nats://nats.example,tls://second.example")
		require.Contains(t, out.String(), "unreadable")
	}
}

func TestADatabaseURLIsReadWithoutRepeatingIt(t *testing.T) {
	for url, want := range map[string]place{
		"postgres://u:p@h/d":         {engine: enginePostgres, url: "postgres://u:p@h/d", direct: "postgres://u:p@h/d"},
		"postgresql://h/d":           {engine: enginePostgres, url: "postgresql://h/d", direct: "postgresql://h/d"},
		"sqlite:///var/lib/t.db":     {engine: engineSQLite, file: "/var/lib/t.db"},
		"sqlite:///a/../b%20c%23.db": {engine: engineSQLite, file: "/b c#.db"},
	} {
		at, err := Database{DatabaseURL: url}.place()
		require.NoError(t, err)
		require.Equal(t, want, at)
	}
	for _, url := range []string{
		"postgres://u:hid%zz@h/d", "mysql://u:hidden@h/d", "sqlite://hidden.db", "sqlite:hidden.db", "sqlite:///hidden.db?mode=ro", "sqlite:///a#hidden.db", "hidden",
	} {
		_, err := Database{DatabaseURL: url}.place()
		require.ErrorContains(t, err, "--database-url: ")
		require.NotContains(t, err.Error(), "hid")
	}
}

func TestTheDirectURLIsForPostgresAlone(t *testing.T) {
	at, err := Database{DatabaseURL: "postgres://pooler/d", DatabaseDirectURL: "postgres://direct/d"}.place()
	require.NoError(t, err)
	require.Equal(t, "postgres://direct/d", at.direct)
	_, err = Database{DatabaseURL: "postgres://pooler/d", DatabaseDirectURL: "sqlite:///d"}.place()
	require.EqualError(t, err, "--database-direct-url: must begin with postgres://")
	_, err = Database{DatabaseURL: "sqlite:///d", DatabaseDirectURL: "postgres://direct/d"}.place()
	require.EqualError(t, err, "--database-direct-url: there is no pooler before a SQLite file; leave it unset")
}

func TestTheDataDirFollowsTheBaseDirectoryRules(t *testing.T) {
	file := func(d Database) string {
		at, err := d.place()
		require.NoError(t, err)
		require.Equal(t, engineSQLite, at.engine)
		return at.file
	}
	t.Setenv("HOME", "/home/someone")
	t.Setenv("XDG_DATA_HOME", "")
	require.Equal(t, "/home/someone/.local/share/turnd/turnd.db", file(Database{}))
	t.Setenv("XDG_DATA_HOME", "relative")
	require.Equal(t, "/home/someone/.local/share/turnd/turnd.db", file(Database{}))
	t.Setenv("XDG_DATA_HOME", "/data")
	require.Equal(t, "/data/turnd/turnd.db", file(Database{}))
	require.Equal(t, "/mine/turnd.db", file(Database{DataDir: "/mine"}))
	here, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(here, "mine/turnd.db"), file(Database{DataDir: "mine"}))
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("HOME", "")
	_, err = Database{}.place()
	require.ErrorContains(t, err, "--data-dir: there is no home directory")
}

func TestAWorkerIsNamedAfterItsHostUnlessSaidOtherwise(t *testing.T) {
	c := defaults(t)
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, host, c.workerName())
	c.WorkerName = "mine"
	require.Equal(t, "mine", c.workerName())
}

package main

import (
	"log/slog"
	"net/url"
	"time"
)

// Config is everything that can be set about serving. The tags are the only place of names, variables and defaults.
type Config struct {
	Listen        string `env:"TURND_LISTEN" default:"127.0.0.1:8080" placeholder:"ADDRESS" group:"listen" help:"gRPC and HTTP/1.1. Without a host it is loopback; port 0 picks one."`
	WebListen     string `env:"TURND_WEB_LISTEN" default:"off" placeholder:"ADDRESS" group:"listen" help:"Second listener, with TLS, for the web alone: HTTP/1.1 and HTTP/2. Without a host it is loopback."`
	OpsListen     string `env:"TURND_OPS_LISTEN" default:"off" placeholder:"ADDRESS" group:"listen" help:"/metrics, /healthz, /readyz, /version and /debug/pprof, without authentication. Without a host it is loopback."`
	WebhookListen string `env:"TURND_WEBHOOK_LISTEN" default:"off" placeholder:"ADDRESS" group:"listen" help:"POST /v1/webhooks/{endpoint}, by which vendors say that a response is over: plain HTTP, for a proxy with TLS before it, authenticated by the signature. Without a host it is loopback."`
	CORSOrigins   string `name:"cors-origins" env:"TURND_CORS_ORIGINS" placeholder:"ORIGINS" group:"listen" help:"Origins whose pages may call from a browser, such as https://chat.example.com, with commas between them; * is all, and not for --auth none. Pages of turnd's own may anyway."`
	ReadyFile     string `env:"TURND_READY_FILE" placeholder:"FILE" group:"listen" help:"JSON file written once serving, removed at exit."`

	Auth      string        `env:"TURND_AUTH" default:"none" placeholder:"MODES" group:"identity" help:"How callers prove who they are: none, which is refused off loopback; keys, oidc, or keys,oidc."`
	AuthCache time.Duration `env:"TURND_AUTH_CACHE" default:"10s" placeholder:"TIME" group:"identity" help:"How long a key, and whether a subject is suspended, is taken as it was when last read: a revoked key is refused within it. 0 reads it with each call."`
	OIDC      OIDC          `embed:"" group:"identity"`

	TLS TLS `embed:"" group:"listen"`

	Database         Database `embed:"" group:"store"`
	DatabaseMaxConns int      `env:"TURND_DATABASE_MAX_CONNS" default:"16" placeholder:"N" group:"store" help:"Connections of this process to Postgres."`
	Migrate          string   `env:"TURND_MIGRATE" default:"sqlite" placeholder:"WHEN" group:"store" help:"Migrate at start: on, off, or sqlite for only there."`
	SpoolDir         string   `env:"TURND_SPOOL_DIR" placeholder:"DIR" group:"store" help:"Finished replies the database has not taken; default spool in the data dir."`

	Models           string        `env:"TURND_MODELS" placeholder:"FILE" group:"models" help:"Models file, read again at SIGHUP. Unset, ANTHROPIC_API_KEY and OPENAI_API_KEY make endpoints; without them it is the demo."`
	Demo             bool          `env:"TURND_DEMO" group:"models" help:"Serve the scripted demo whatever keys are set."`
	AnthropicBaseURL string        `name:"anthropic-base-url" env:"TURND_ANTHROPIC_BASE_URL" placeholder:"URL" group:"models" help:"Instead of the vendor's, without a models file."`
	OpenAIBaseURL    string        `name:"openai-base-url" env:"TURND_OPENAI_BASE_URL" placeholder:"URL" group:"models" help:"Instead of the vendor's, without a models file."`
	FirstByteTimeout time.Duration `env:"TURND_FIRST_BYTE_TIMEOUT" default:"2m" placeholder:"TIME" group:"models" help:"Longest wait for a provider's response to begin."`
	IdleTimeout      time.Duration `env:"TURND_IDLE_TIMEOUT" default:"5m" placeholder:"TIME" group:"models" help:"Longest silence inside a response."`
	TotalTimeout     time.Duration `env:"TURND_TOTAL_TIMEOUT" default:"30m" placeholder:"TIME" group:"models" help:"Longest provider call."`
	OnAmbiguous      string        `env:"TURND_ON_AMBIGUOUS" default:"abandon" placeholder:"POLICY" group:"models" help:"When a call's outcome is unknown and nobody can be asked: abandon, retry or hold; an endpoint or a turn may say otherwise."`
	OnPartial        string        `env:"TURND_ON_PARTIAL" default:"discard" placeholder:"POLICY" group:"models" help:"When a call fails inside a reply: discard or continue; an endpoint or a turn may say otherwise."`

	WorkerName      string        `env:"TURND_WORKER_NAME" placeholder:"NAME" group:"worker" help:"A label for people; default is the host's name."`
	Lease           time.Duration `env:"TURND_LEASE" default:"15s" placeholder:"TIME" group:"worker" help:"How long this worker's claims hold without a renewal; renewed each third."`
	Sweep           time.Duration `env:"TURND_SWEEP" default:"5s" placeholder:"TIME" group:"worker" help:"How often claims of dead workers are looked for."`
	Checkpoint      time.Duration `env:"TURND_CHECKPOINT" default:"250ms" placeholder:"TIME" group:"worker" help:"How often running replies are stored and stops are heard of."`
	Heartbeat       time.Duration `env:"TURND_HEARTBEAT" default:"15s" placeholder:"TIME" group:"worker" help:"Silence on a stream before a heartbeat."`
	Grace           time.Duration `env:"TURND_GRACE" default:"30s" placeholder:"TIME" group:"worker" help:"How long replies may go on after SIGTERM."`
	DrainDelay      time.Duration `env:"TURND_DRAIN_DELAY" default:"0s" placeholder:"TIME" group:"worker" help:"How long after SIGTERM everything is still taken, though /readyz and health say no: time for load balancers to hear of it."`
	MaxCalls        int           `env:"TURND_MAX_CALLS" default:"5" placeholder:"N" group:"worker" help:"Provider calls a turn and generation, over all attempts."`
	MaxWait         time.Duration `env:"TURND_MAX_WAIT" default:"30s" placeholder:"TIME" group:"worker" help:"Waiting between those calls, in all."`
	Backoff         time.Duration `env:"TURND_BACKOFF" default:"1s" placeholder:"TIME" group:"worker" help:"Bound of the first wait; it doubles with each call."`
	MaxContentBytes int           `env:"TURND_MAX_CONTENT_BYTES" default:"4194304" placeholder:"BYTES" group:"worker" help:"Largest content of a user turn."`
	MaxOutputBytes  int           `env:"TURND_MAX_OUTPUT_BYTES" default:"8388608" placeholder:"BYTES" group:"worker" help:"Largest reply; it is cut there."`
	MaxInFlight     int           `env:"TURND_MAX_IN_FLIGHT" default:"1024" placeholder:"N" group:"worker" help:"Replies that run here at once."`
	MaxQueue        int           `env:"TURND_MAX_QUEUE" default:"1024" placeholder:"N" group:"worker" help:"Turns that wait for a place past --max-in-flight; 0 refuses them at once."`
	MaxWaiting      int           `env:"TURND_MAX_WAITING" default:"32" placeholder:"N" group:"worker" help:"Turns of one conversation that wait in line behind its reply; one more is refused."`
	Caps            Caps          `embed:"" group:"caps"`
	Limits          Limits        `embed:"" group:"limits"`
	Bus             string        `env:"TURND_BUS" default:"auto" placeholder:"KIND" group:"worker" help:"How workers tell each other of news: memory, poll, postgres or nats; auto is memory on SQLite and postgres on Postgres."`
	NATSURL         string        `name:"nats-url" env:"TURND_NATS_URL" placeholder:"URL" group:"worker" help:"NATS servers of --bus nats, with commas between them. They carry text of replies."`

	Telemetry Telemetry `embed:"" group:"telemetry"`

	LogFormat string `env:"TURND_LOG_FORMAT" default:"text" placeholder:"FORMAT" group:"log" help:"text or json, on stderr."`
	LogLevel  string `env:"TURND_LOG_LEVEL" default:"info" placeholder:"LEVEL" group:"log" help:"debug, info, warn or error."`
}

// Caps bound what may be spent in all; 0 is no bound.
type Caps struct {
	MaxConversationTurns  int64         `env:"TURND_MAX_CONVERSATION_TURNS" default:"0" placeholder:"N" help:"Most turns of a conversation, a regenerate being one; 0 is no cap."`
	MaxConversationTokens int64         `env:"TURND_MAX_CONVERSATION_TOKENS" default:"0" placeholder:"N" help:"Most tokens of a conversation, input and output together; 0 is no cap."`
	MaxConversationCost   int64         `env:"TURND_MAX_CONVERSATION_COST" default:"0" placeholder:"MICROS" help:"Highest cost of a conversation, in millionths of the price table's currency; 0 is no cap."`
	MaxConversationTime   time.Duration `env:"TURND_MAX_CONVERSATION_TIME" default:"0s" placeholder:"TIME" help:"Longest time of all provider calls of a conversation together; 0 is no cap."`
	MaxTenantTurns        int64         `env:"TURND_MAX_TENANT_TURNS" default:"0" placeholder:"N" help:"Most turns of a tenant, a regenerate being one; 0 is no cap."`
	MaxTenantTokens       int64         `env:"TURND_MAX_TENANT_TOKENS" default:"0" placeholder:"N" help:"Most tokens of a tenant, input and output together; 0 is no cap."`
	MaxTenantCost         int64         `env:"TURND_MAX_TENANT_COST" default:"0" placeholder:"MICROS" help:"Highest cost of a tenant, in millionths of the price table's currency; 0 is no cap."`
	MaxTenantTime         time.Duration `env:"TURND_MAX_TENANT_TIME" default:"0s" placeholder:"TIME" help:"Longest time of all provider calls of a tenant together; 0 is no cap."`
}

// Database says where the database is. Serving and migrating share it.
type Database struct {
	DataDir           string `env:"TURND_DATA_DIR" placeholder:"DIR" help:"Where turnd keeps its files; default $XDG_DATA_HOME/turnd, or ~/.local/share/turnd."`
	DatabaseURL       string `name:"database-url" env:"TURND_DATABASE_URL" placeholder:"URL" help:"postgres://... or sqlite:///abs/file.db; default turnd.db in the data dir."`
	DatabaseDirectURL string `name:"database-direct-url" env:"TURND_DATABASE_DIRECT_URL" placeholder:"URL" help:"The same Postgres past a pooler, for migrations and the bus; default the database URL."`
}

// LogValue shows what is not at its default's mercy when reading a log: where things are, without passwords.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("listen", c.Listen), slog.String("ops_listen", c.OpsListen), slog.String("webhook_listen", c.WebhookListen),
		slog.String("web_listen", c.WebListen), slog.String("tls_cert", c.TLS.TLSCert), slog.String("tls_client_ca", c.TLS.TLSClientCA),
		slog.String("tls_min_version", c.TLS.TLSMinVersion), slog.String("cors_origins", c.CORSOrigins),
		slog.String("database_url", redactURL(c.Database.DatabaseURL)),
		slog.String("database_direct_url", redactURL(c.Database.DatabaseDirectURL)),
		slog.String("data_dir", c.Database.DataDir), slog.String("migrate", c.Migrate),
		slog.String("models", c.Models), slog.Bool("demo", c.Demo),
		slog.String("on_ambiguous", c.OnAmbiguous), slog.String("on_partial", c.OnPartial),
		slog.String("anthropic_base_url", redactURL(c.AnthropicBaseURL)), slog.String("openai_base_url", redactURL(c.OpenAIBaseURL)),
		slog.String("nats_url", redactURLs(c.NATSURL)), slog.String("bus", c.Bus), slog.String("auth", c.Auth), slog.Duration("auth_cache", c.AuthCache),
		slog.String("oidc_issuer", redactURL(c.OIDC.OIDCIssuer)), slog.String("oidc_audience", c.OIDC.OIDCAudience), slog.String("oidc_jwks_url", redactURL(c.OIDC.OIDCJWKSURL)),
		slog.Duration("lease", c.Lease), slog.Duration("sweep", c.Sweep), slog.Duration("checkpoint", c.Checkpoint),
		slog.Duration("grace", c.Grace), slog.Duration("drain_delay", c.DrainDelay), slog.Int("max_in_flight", c.MaxInFlight), slog.Int("max_queue", c.MaxQueue), slog.Int("max_waiting", c.MaxWaiting),
		slog.String("spool_dir", c.SpoolDir), slog.String("traces", c.Telemetry.Traces), slog.String("metrics", c.Telemetry.Metrics),
	)
}

// redactURL keeps what tells one place from another: scheme, host and path. A password may also hide in the query, and
// in a text that can't be read as a URL.
func redactURL(raw string) string {
	if raw == "" {
		return ""
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" {
		return "unreadable"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

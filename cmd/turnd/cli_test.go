package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// serveFlags are the flags of serve: name, default as it is written, and two other values. The variable of each follows
// from its name. Others start turnd by these, so a change here is a change of what was promised.
var serveFlags = []struct{ name, def, variable, flag string }{
	{"listen", "127.0.0.1:8080", "127.0.0.1:1", "127.0.0.1:2"},
	{"web-listen", "off", "127.0.0.1:1", "127.0.0.1:2"},
	{"tls-cert", "", "/a", "/b"},
	{"tls-key", "", "/a", "/b"},
	{"tls-client-ca", "", "/a", "/b"},
	{"tls-min-version", "1.2", "1.3", "1.1"},
	{"ops-listen", "off", "127.0.0.1:1", "127.0.0.1:2"},
	{"webhook-listen", "off", "0.0.0.0:1", "127.0.0.1:2"},
	{"cors-origins", "", "https://a.example", "https://b.example"},
	{"ready-file", "", "/a", "/b"},
	{"data-dir", "", "/a", "/b"},
	{"database-url", "", "sqlite:///a", "sqlite:///b"},
	{"database-direct-url", "", "postgres://a", "postgres://b"},
	{"database-max-conns", "16", "17", "18"},
	{"migrate", "sqlite", "on", "off"},
	{"models", "", "/a", "/b"},
	{"demo", "false", "true", "true"},
	{"anthropic-base-url", "", "http://a", "http://b"},
	{"openai-base-url", "", "http://a", "http://b"},
	{"worker-name", "", "a", "b"},
	{"lease", "15s", "16s", "17s"},
	{"sweep", "5s", "6s", "7s"},
	{"checkpoint", "250ms", "260ms", "270ms"},
	{"heartbeat", "15s", "16s", "17s"},
	{"grace", "30s", "31s", "32s"},
	{"drain-delay", "0s", "1s", "2s"},
	{"spool-dir", "", "/a", "/b"},
	{"first-byte-timeout", "2m", "3m0s", "4m0s"},
	{"idle-timeout", "5m", "6m0s", "7m0s"},
	{"total-timeout", "30m", "31m0s", "32m0s"},
	{"max-calls", "5", "6", "7"},
	{"max-wait", "30s", "31s", "32s"},
	{"backoff", "1s", "2s", "3s"},
	{"on-ambiguous", "abandon", "retry", "hold"},
	{"on-partial", "discard", "continue", "x"},
	{"max-content-bytes", "4194304", "1", "2"},
	{"max-output-bytes", "8388608", "1", "2"},
	{"max-in-flight", "1024", "1", "2"},
	{"max-queue", "1024", "0", "2"},
	{"max-waiting", "32", "1", "2"},
	{"max-conversation-turns", "0", "1", "2"},
	{"max-conversation-tokens", "0", "1", "2"},
	{"max-conversation-cost", "0", "1", "2"},
	{"max-conversation-time", "0s", "1s", "2s"},
	{"max-tenant-turns", "0", "1", "2"},
	{"max-tenant-tokens", "0", "1", "2"},
	{"max-tenant-cost", "0", "1", "2"},
	{"max-tenant-time", "0s", "1s", "2s"},
	{"submissions-per-minute", "", "1", "2"},
	{"lookups-per-minute", "", "1", "2"},
	{"subject-turns-per-day", "", "1", "2"},
	{"subject-tokens-per-day", "", "1", "2"},
	{"tenant-turns-per-day", "", "1", "2"},
	{"tenant-tokens-per-day", "", "1", "2"},
	{"max-subject-in-flight", "", "1", "2"},
	{"bus", "auto", "memory", "poll"},
	{"nats-url", "", "nats://a", "nats://b"},
	{"auth", "none", "keys", "oidc"},
	{"auth-cache", "10s", "1s", "2s"},
	{"oidc-issuer", "", "https://a", "https://b"},
	{"oidc-audience", "", "a", "b"},
	{"oidc-jwks-url", "", "https://a", "https://b"},
	{"oidc-tenant", "", "a", "b"},
	{"oidc-tenant-claim", "tenant", "org", "tid"},
	{"oidc-subject-claim", "sub", "oid", "email"},
	{"oidc-scope-claim", "scope", "scp,roles", "roles"},
	{"oidc-scope-prefix", "", "turnd:", "turnd."},
	{"oidc-keys-lifetime", "10m", "1m0s", "2m0s"},
	{"oidc-keys-grace", "1h", "2h0m0s", "3h0m0s"},
	{"traces", "auto", "otlp", "off"},
	{"metrics", "auto", "otlp", "prometheus"},
	{"trace-sample", "", "0.5", "0.25"},
	{"log-format", "text", "json", "x"},
	{"log-level", "info", "debug", "warn"},
}

func variableOf(flag string) string {
	return "TURND_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func serveModel(t *testing.T, c *cli) (*kong.Kong, map[string]*kong.Flag) {
	t.Helper()
	parser, err := newParser(c)
	require.NoError(t, err)
	flags := map[string]*kong.Flag{}
	for _, node := range parser.Model.Children {
		if node.Name == "serve" {
			for _, f := range node.Flags {
				flags[f.Name] = f
			}
		}
	}
	return parser, flags
}

func TestServeHasTheseFlagsAndNoOthers(t *testing.T) {
	_, flags := serveModel(t, &cli{})
	for _, want := range serveFlags {
		f := flags[want.name]
		require.NotNil(t, f, want.name)
		require.Equal(t, []string{variableOf(want.name)}, f.Tag.Envs, want.name)
		require.NotEmpty(t, f.Help, want.name)
		def := f.Default
		if f.IsBool() && def == "" {
			def = "false"
		}
		require.Equal(t, want.def, def, want.name)
		delete(flags, want.name)
	}
	delete(flags, "help")
	require.Empty(t, flags)
}

func TestAFlagWinsOverItsVariableAndThatOverTheDefault(t *testing.T) {
	for _, row := range serveFlags {
		t.Run(row.name, func(t *testing.T) {
			// A value that is refused was read all the same, which is what counts here.
			read := func(args ...string) string {
				var c cli
				parser, flags := serveModel(t, &c)
				_, err := parser.Parse(append([]string{"serve"}, args...))
				if err != nil {
					require.ErrorAs(t, err, new(usageError))
				}
				return fmt.Sprint(reflect.Indirect(flags[row.name].Target)) // one that may be unset is a pointer
			}
			unset := read()
			t.Setenv(variableOf(row.name), row.variable)
			require.Equal(t, row.variable, read())
			require.NotEqual(t, unset, row.variable)
			require.Equal(t, row.flag, read("--"+row.name+"="+row.flag))
		})
	}
}

func TestTheConfigHasAFlagForEachField(t *testing.T) {
	_, flags := serveModel(t, &cli{})
	groups := []reflect.Type{
		reflect.TypeFor[Database](),
		reflect.TypeFor[Caps](),
		reflect.TypeFor[Limits](),
		reflect.TypeFor[TLS](),
		reflect.TypeFor[OIDC](),
		reflect.TypeFor[Telemetry](),
	}
	fields := reflect.TypeFor[Config]().NumField() - len(groups)
	for _, typ := range groups {
		fields += typ.NumField()
	}
	require.Len(t, flags, fields)
}

func TestCommandsForTestsTakeNoVariables(t *testing.T) {
	t.Setenv("TURND_LISTEN", "127.0.0.1:1")
	var c cli
	parser, err := newParser(&c)
	require.NoError(t, err)
	_, err = parser.Parse([]string{"scripted-provider"})
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:0", c.Scripted.Listen)
}

func TestAnUnknownVariableIsNamedWithTheNearestKnownOne(t *testing.T) {
	_, err := parse([]string{"version"}, []string{"TURND_LISTN=127.0.0.1:1", "TURND_DATABASE_URI=postgres://u:secret@h/d", "PATH=/bin"})
	require.ErrorAs(t, err, new(usageError))
	require.Equal(t, "unknown variable TURND_LISTN; did you mean TURND_LISTEN?\n"+
		"unknown variable TURND_DATABASE_URI; did you mean TURND_DATABASE_URL?", err.Error())
}

func TestVariablesOfOtherCommandsAndOfTestsAreKnown(t *testing.T) {
	_, err := parse([]string{"version"}, []string{"TURND_LEASE=1s", "TURND_TEST_DATABASE_URL=postgres://h/d", "TURND_TEST_ANY=1"})
	require.NoError(t, err)
}

func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	_, err := parse([]string{"serve", "--max-calls=0", "--log-level=loud", "--bus=nats"}, []string{"TURND_MAXCALLS=1"})
	require.Equal(t, []string{
		"--max-calls: 0 is too little, the least is 1",
		`--nats-url: must be set for --bus nats`,
		`--log-level: "loud" is not one of debug, info, warn, error`,
		"unknown variable TURND_MAXCALLS; did you mean TURND_MAX_CALLS?",
	}, strings.Split(err.Error(), "\n"))
}

func TestEditsCountInsertionsRemovalsAndReplacements(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "xabc", 1}, {"kitten", "sitting", 3},
	} {
		require.Equal(t, c.want, edits(c.a, c.b), "%s %s", c.a, c.b)
	}
}

func TestBadFlagsExitWith2AndOneLineEach(t *testing.T) {
	text := fails(t, 2, []string{"TURND_LEASEE=1s"}, "serve", "--lease=1ms", "--grace=-1s")
	require.ElementsMatch(t, []string{
		"turnd: --lease: 1ms is too little, the least is 100ms",
		"turnd: --checkpoint: 250ms must not be longer than --lease, 1ms",
		"turnd: --grace: -1s is too little, the least is 0s",
		"turnd: --data-dir: there is no home directory to keep files in; set this or --database-url",
		"turnd: unknown variable TURND_LEASEE; did you mean TURND_LEASE?",
		"turnd: see turnd serve --help",
	}, strings.Split(strings.TrimSpace(text), "\n"))
	require.Contains(t, fails(t, 2, nil, "serve", "--no-such-flag"), "turnd: unknown flag --no-such-flag")
	require.Contains(t, fails(t, 2, nil, "dance"), "turnd: unexpected argument dance")
	for help, args := range map[string][]string{
		"turnd --help":            {"dance"},
		"turnd chat --help":       {"chat", "--server", "here"},
		"turnd migrate up --help": {"migrate", "up", "--database-url", "mysql://h/d"},
	} {
		require.Contains(t, fails(t, 2, nil, args...), "turnd: see "+help+"\n")
	}
	require.Contains(t, fails(t, 2, []string{"TURND_LEASE=soon"}, "serve"), `TURND_LEASE="soon"`)
}

func TestHelpAndVersionExitWith0(t *testing.T) {
	require.Contains(t, prints(t, "--help"), "scripted-provider")
	require.Contains(t, prints(t), "scripted-provider", "no command is a question for help")
	require.Equal(t, prints(t, "--help"), prints(t, "help"))
	help := prints(t, "help", "serve")
	require.Equal(t, prints(t, "serve", "--help"), help)
	for _, row := range serveFlags {
		require.Contains(t, help, "--"+row.name)
	}
	require.True(t, strings.HasPrefix(prints(t, "version"), "turnd "))
}

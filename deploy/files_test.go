package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

const (
	unitFile     = "systemd/turnd.service"
	poolerFile   = "pgbouncer/pgbouncer.ini"
	natsFile     = "nats/nats.conf"
	commandFiles = "../cmd/turnd/*.go"
	// lastEndings is what a worker takes after its grace.
	lastEndings = 5 * time.Second
)

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(raw)
}

// setting finds "name = value" or "name=value" in a file.
func setting(t *testing.T, text, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^(?:Environment=)?` + regexp.QuoteMeta(name) + ` ?= ?(.*)$`).FindStringSubmatch(text)
	require.NotNil(t, m, "%s is not set", name)
	return m[1]
}

func duration(t *testing.T, text, name string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(setting(t, text, name))
	require.NoError(t, err)
	return d
}

func TestTheUnitLeavesAWorkerTheTimeToDrain(t *testing.T) {
	unit := read(t, unitFile)
	require.Greater(t, duration(t, unit, "TimeoutStopSec"), duration(t, unit, "TURND_GRACE")+lastEndings)
}

func TestTheUnitKeepsTheSpoolWhereItOutlivesTheProcess(t *testing.T) {
	unit := read(t, unitFile)
	state := "/var/lib/" + setting(t, unit, "StateDirectory")
	require.True(t, strings.HasPrefix(setting(t, unit, "TURND_SPOOL_DIR"), state+"/"))
	require.True(t, strings.HasPrefix(setting(t, unit, "TURND_DATA_DIR"), state))
}

func TestEverySettingThatTheFilesNameIsOneOfTheCommand(t *testing.T) {
	var command strings.Builder
	files, err := filepath.Glob(commandFiles)
	require.NoError(t, err)
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			command.WriteString(read(t, file))
		}
	}
	for _, file := range []string{unitFile, poolerFile, natsFile, "README.md", "../docs/scaling.md"} {
		for _, name := range regexp.MustCompile(`TURND_[A-Z_]+`).FindAllString(read(t, file), -1) {
			if name == natsToken {
				continue
			}
			require.Contains(t, command.String(), `env:"`+name+`"`, "%s names %s", file, name)
		}
	}
}

// directives are what the unit may say, by section, and the form of each value, as the manual of systemd has them.
var directives = map[string]map[string]string{
	"Unit": {"Description": `\S.*`, "After": units, "Wants": units},
	"Service": {
		"ExecStart": `/usr/local/bin/turnd serve`, "Environment": `[A-Z_]+=\S+`, "EnvironmentFile": `/\S+`,
		"KillSignal": `SIGTERM`, "TimeoutStopSec": seconds, "Restart": `always|on-failure`, "RestartSec": seconds, "LimitNOFILE": `\d+`,
		"DynamicUser": yesNo, "StateDirectory": `[a-z]+`, "StateDirectoryMode": `0[0-7]{3}`,
		"NoNewPrivileges": yesNo, "ProtectSystem": `yes|no|full|strict`, "ProtectHome": yesNo, "PrivateTmp": yesNo,
	},
	"Install": {"WantedBy": units},
}

const (
	units   = `[a-z-]+\.(?:target|service)`
	seconds = `\d+s`
	yesNo   = `yes|no`
)

func TestEachLineOfTheUnitIsADirectiveOfItsSection(t *testing.T) {
	section, set := "", map[string]bool{}
	for line := range strings.Lines(read(t, unitFile)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if title, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSuffix(title, "]")
			require.Contains(t, directives, section)
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		require.Contains(t, directives[section], name, "section %s", section)
		require.Regexp(t, `^(?:`+directives[section][name]+`)$`, value, name)
		require.False(t, set[name] && name != "Environment", "%s is set twice", name)
		set[name] = true
	}
	require.True(t, set["ExecStart"])
	require.True(t, set["WantedBy"])
}

func TestThePoolerHandsOutServersForOneTransaction(t *testing.T) {
	ini := read(t, poolerFile)
	require.Equal(t, "transaction", setting(t, ini, "pool_mode"))
	require.NotContains(t, ini, "server_reset_query_always", "sessions are not ours to reset between transactions")
	require.Contains(t, ini, "TURND_DATABASE_DIRECT_URL")
	wait, err := strconv.Atoi(setting(t, ini, "query_wait_timeout"))
	require.NoError(t, err)
	require.Less(t, time.Duration(wait)*time.Second, turns.DefaultSettings().Lease/3)
	known := regexp.MustCompile(`^(\[(databases|pgbouncer)\]|;.*|[a-z_]+ = \S.*|)$`)
	for line := range strings.Lines(ini) {
		require.Regexp(t, known, strings.TrimSuffix(line, "\n"))
	}
}

// natsToken is read by the NATS server and not by turnd.
const natsToken = "TURND_NATS_TOKEN"

// largestHint is what turnd cuts its messages to.
const largestHint = 768 << 10

func TestTheBrokersFileIsOneThatItReadsAndThatTakesTheLargestHint(t *testing.T) {
	t.Setenv(natsToken, "any")
	options, err := server.ProcessConfigFile(natsFile)
	require.NoError(t, err)
	require.Equal(t, "any", options.Authorization)
	require.Equal(t, "127.0.0.1", options.Host)
	require.GreaterOrEqual(t, options.MaxPayload, int32(largestHint))
	require.False(t, options.JetStream)
}

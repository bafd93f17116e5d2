package main

import (
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

// hangup sends SIGHUP and waits for a line of the log that was not there before.
func (p *process) hangup(line string) {
	p.t.Helper()
	before := strings.Count(p.err.String(), line)
	p.signal(syscall.SIGHUP)
	p.until(func() bool { return strings.Count(p.err.String(), line) > before })
}

// writeModels is a models file of one model, m, and others of the same route.
func writeModels(t *testing.T, file, url string, others ...string) {
	t.Helper()
	text := "version: 1\ndefault_model: m\nendpoints:\n  e: {wire: anthropic.messages, base_url: " + url + ", key: {file: e.key}}\nmodels:\n"
	for _, m := range append([]string{"m"}, others...) {
		text += "  " + m + ": {route: [{endpoint: e, model: demo}]}\n"
	}
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

func TestAHangupPutsTheModelsFileInForce(t *testing.T) {
	one, two := scripted.Start(t, scripted.Script{}), scripted.Start(t, scripted.Script{})
	file := filepath.Join(t.TempDir(), "models.yaml")
	keyFile := filepath.Join(filepath.Dir(file), "e.key")
	require.NoError(t, os.WriteFile(keyFile, []byte("sk-one"), 0o600))
	writeModels(t, file, one.URL())
	p := serveModels(t, emptyDatabases[engineSQLite](t), file)
	conn := connect(t, p)
	_, last := take(t, conn, uuid.NewString(), ignore)
	require.NotNil(t, last.GetCompleted())

	writeModels(t, file, two.URL(), "n")
	p.hangup("models file is in force")
	_, last = take(t, conn, uuid.NewString(), ignore)
	require.NotNil(t, last.GetCompleted())
	require.Equal(t, 1, one.Counts().Requests)
	require.Equal(t, 1, two.Counts().Requests)
	p.until(func() bool {
		var now ready
		raw, err := os.ReadFile(p.file)
		return err == nil && json.Unmarshal(raw, &now) == nil && len(now.Models) == 2 && now.Models[1] == "n"
	})

	const refused = "models file is refused, the one before stays in force"
	for name, spoil := range map[string]func() (line string){
		"a wire that there is not": func() string {
			require.NoError(t, os.WriteFile(file, []byte("version: 1\nendpoints:\n  e:\n    wire: smoke\n    base_url: http://127.0.0.1:1\n"+
				"models:\n  m: {route: [{endpoint: e, model: demo}]}\n"), 0o600))
			return "line=4 entry=endpoints.e.wire"
		},
		"no YAML": func() string {
			require.NoError(t, os.WriteFile(file, []byte("version: ["), 0o600))
			return "yaml: line"
		},
		"a key that is gone": func() string {
			writeModels(t, file, one.URL())
			require.NoError(t, os.WriteFile(keyFile, nil, 0o600))
			return "line=4 entry=endpoints.e.key"
		},
	} {
		line := spoil()
		p.hangup(refused)
		require.Contains(t, p.err.String(), line, name)
		_, last = take(t, conn, uuid.NewString(), ignore)
		require.NotNil(t, last.GetCompleted(), name)
	}
	require.Equal(t, 1, one.Counts().Requests)
	require.Equal(t, 4, two.Counts().Requests)
	require.NotContains(t, p.err.String(), "sk-one")

	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.code())
	require.NoFileExists(t, p.file)
}

func TestWithoutAModelsFileAHangupEndsTheProcess(t *testing.T) {
	// A process that was started with hangups ignored hands that down, but not what it does about them itself.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	p := serve(t, emptyDatabases[engineSQLite](t))
	p.signal(syscall.SIGHUP)
	require.NotEqual(t, 0, p.code())
}

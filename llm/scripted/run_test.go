package scripted_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

func TestTheProcessSaysWhereItListensAndCleansUp(t *testing.T) {
	dir := t.TempDir()
	file, readyFile := filepath.Join(dir, "script.json"), filepath.Join(dir, "ready.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"rules":[{"plan":{"blocks":[{"text":"from a file"}]}}]}`), 0o600))
	out, stdout := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- scripted.Run(ctx, scripted.RunOptions{
			Listen: "127.0.0.1:0", ReadyFile: readyFile, ScriptFile: file, Stdout: stdout,
		})
		_ = stdout.Close()
	}()

	buffer := make([]byte, 200)
	n, err := out.Read(buffer)
	require.NoError(t, err)
	address, found := strings.CutPrefix(string(buffer[:n]), "turnd scripted-provider ready listen=")
	require.True(t, found)
	address = strings.TrimSuffix(address, "\n")
	raw, err := os.ReadFile(readyFile)
	require.NoError(t, err)
	require.Equal(t, address, at(t, string(raw), "listen"))
	require.EqualValues(t, os.Getpid(), at(t, string(raw), "pid"))

	request, err := http.NewRequestWithContext(limit(t), "POST", "http://"+address+messages, strings.NewReader(anthropicBody))
	require.NoError(t, err)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, "from a file", said(t, string(body)))

	stop()
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	require.Empty(t, rest, "one line is printed")
	require.NoError(t, <-done)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "only the script is left")
}

func TestTheProcessListensOnLoopbackOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:80", "127.0.0.1"} {
		err := scripted.Run(t.Context(), scripted.RunOptions{Listen: address, Stdout: io.Discard})
		require.ErrorContains(t, err, address)
	}
}

func TestTheProcessRefusesABadScriptFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "script.json")
	options := scripted.RunOptions{Listen: "127.0.0.1:0", ScriptFile: file, Stdout: io.Discard}
	require.ErrorIs(t, scripted.Run(t.Context(), options), os.ErrNotExist)
	require.NoError(t, os.WriteFile(file, []byte(`{"rules":[{"times":-1}]}`), 0o600))
	require.ErrorContains(t, scripted.Run(t.Context(), options), "rules[0].times")
}

func TestAReadyFileThatCannotBeWrittenEndsTheProcess(t *testing.T) {
	err := scripted.Run(t.Context(), scripted.RunOptions{
		Listen: "localhost:0", ReadyFile: filepath.Join(t.TempDir(), "none", "ready"), Stdout: io.Discard,
	})
	require.ErrorIs(t, err, os.ErrNotExist)
}

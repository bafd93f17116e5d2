package manifests

import (
	"context"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/stretchr/testify/require"
)

const (
	dockerfile   = root + "/deploy/docker/Dockerfile"
	dockerignore = dockerfile + ".dockerignore"
	// nobody is the user of the image.
	nobody   = 65532
	patience = 30 * time.Second
)

// stages are those of a Dockerfile, by the parser that builds it.
func stages(text string) ([]instructions.Stage, error) {
	tree, err := parser.Parse(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	found, _, err := instructions.Parse(tree.AST, nil)
	return found, err
}

// image is the stage that becomes the image.
func image(t *testing.T) instructions.Stage {
	t.Helper()
	all, err := stages(read(t, dockerfile))
	require.NoError(t, err)
	return all[len(all)-1]
}

// commandsOf are the instructions of a kind.
func commandsOf[T instructions.Command](s instructions.Stage) (found []T) {
	for _, c := range s.Commands {
		if c, ok := c.(T); ok {
			found = append(found, c)
		}
	}
	return found
}

func TestAMistakeInTheDockerfileIsNoticed(t *testing.T) {
	whole := read(t, dockerfile)
	mistakes := map[string]string{
		"ENTRYPOINT": "ENTRYPOIN", "--chown=65532:65532": "--chwon=65532:65532", "FROM scratch": "FROM", "--interval=10s": "--interval=10",
	}
	for old, planted := range mistakes {
		require.Contains(t, whole, old)
		_, err := stages(strings.Replace(whole, old, planted, 1))
		require.Error(t, err, planted)
	}
	t.Logf("noticed %d planted mistakes", len(mistakes))
}

func TestTheImageIsNobodysAndHasNothingButTurnd(t *testing.T) {
	s := image(t)
	require.Equal(t, "scratch", s.BaseName)
	require.Empty(t, commandsOf[*instructions.RunCommand](s), "there is no shell to run it")
	require.Equal(t, "65532:65532", commandsOf[*instructions.UserCommand](s)[0].User)
	require.Equal(t, []string{"/usr/local/bin/turnd"}, []string(commandsOf[*instructions.EntrypointCommand](s)[0].CmdLine))
	require.Equal(t, []string{"serve"}, []string(commandsOf[*instructions.CmdCommand](s)[0].CmdLine))
	require.Equal(t, []string{"8080", "9464"}, commandsOf[*instructions.ExposeCommand](s)[0].Ports)
	check := commandsOf[*instructions.HealthCheckCommand](s)[0].Health
	require.Equal(t, []string{"CMD", "/usr/local/bin/turnd", "healthcheck"}, check.Test)
	require.True(t, commands(t)["healthcheck"])
	require.Greater(t, check.Timeout, 3*time.Second, "which is how long the command waits")
	env := imageEnv(t)
	variables, _ := settings(t)
	for name := range env {
		require.True(t, variables[name], name)
	}
	require.Equal(t, []string{env["TURND_DATA_DIR"]}, commandsOf[*instructions.VolumeCommand](s)[0].Volumes)
	labels := map[string]string{}
	for _, l := range commandsOf[*instructions.LabelCommand](s)[0].Labels {
		labels[l.Key] = l.Value
	}
	for _, name := range []string{"title", "description", "source", "licenses", "version", "revision"} {
		require.NotEmpty(t, labels["org.opencontainers.image."+name], name)
	}
}

func imageEnv(t *testing.T) map[string]string {
	t.Helper()
	env := map[string]string{}
	for _, e := range commandsOf[*instructions.EnvCommand](image(t))[0].Env {
		env[e.Key] = e.Value
	}
	return env
}

// buildLine is what the Dockerfile builds turnd with.
func buildLine(t *testing.T) string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^\s+(CGO_ENABLED=0 .*go build .*)$`).FindStringSubmatch(read(t, dockerfile))
	require.NotNil(t, line)
	return line[1]
}

// buildContext copies what a build gets to see of the tree.
func buildContext(t *testing.T) string {
	t.Helper()
	file, err := os.Open(dockerignore)
	require.NoError(t, err)
	patterns, err := ignorefile.ReadAll(file)
	require.NoError(t, errors.Join(err, file.Close()))
	ignored, err := patternmatcher.New(patterns)
	require.NoError(t, err)
	into := t.TempDir()
	tree, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	require.NoError(t, err)
	for name := range strings.SplitSeq(strings.TrimRight(string(tree), "\x00"), "\x00") {
		out, err := ignored.MatchesOrParentMatches(name)
		require.NoError(t, err)
		if out {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(into, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(into, name), text, 0o600))
	}
	return into
}

func TestTheContextOfTheBuildHasNoSecretsAndNoTests(t *testing.T) {
	file, err := os.Open(dockerignore)
	require.NoError(t, err)
	patterns, err := ignorefile.ReadAll(file)
	require.NoError(t, errors.Join(err, file.Close()))
	ignored, err := patternmatcher.New(patterns)
	require.NoError(t, err)
	for _, name := range []string{".env", ".git/config", "deploy/compose/.env", "turnd.db", "secret.key", "server/ops_test.go", "bin/turnd",
		"web/node_modules/x/y.js", "migrations/testdata/checksums", "bench/chaos/main.go"} {
		out, err := ignored.MatchesOrParentMatches(name)
		require.NoError(t, err)
		require.True(t, out, name)
	}
}

// TestTheBuildOfTheImageMakesAStaticProgramThatServesAsNobody builds by the line of the Dockerfile in what the build would see, and
// runs the program as the image and the manifests do: as another user, who can write below the data dir alone.
func TestTheBuildOfTheImageMakesAStaticProgramThatServesAsNobody(t *testing.T) {
	out := t.TempDir()
	require.NoError(t, os.Chmod(out, 0o755))
	program := filepath.Join(out, "turnd")
	line := strings.ReplaceAll(buildLine(t), "/out/turnd", program)
	build := exec.CommandContext(t.Context(), "sh", "-c", line)
	build.Dir = buildContext(t)
	build.Env = append(os.Environ(), "VERSION=v1.2.3", "COMMIT=0123abc", "TARGETOS=linux", "TARGETARCH=", "GOFLAGS=-mod=readonly")
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)

	binary, err := elf.Open(program)
	require.NoError(t, err)
	require.False(t, slices.ContainsFunc(binary.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }), "it needs a loader")
	libraries, err := binary.ImportedLibraries()
	require.NoError(t, errors.Join(err, binary.Close()))
	require.Empty(t, libraries)
	info, err := buildinfo.ReadFile(program)
	require.NoError(t, err)
	require.Equal(t, "github.com/turnd/turnd", info.Main.Path)

	p := runAsNobody(t, program)
	base := "http://" + p.Ops
	for name, probe := range probes(t) {
		require.Equal(t, http.StatusOK, status(t, base+probe), name)
	}
	var about struct{ Version, Commit string }
	getJSON(t, base+"/version", &about)
	require.Equal(t, "v1.2.3", about.Version)
	require.Equal(t, "0123abc", about.Commit)
	check := exec.CommandContext(t.Context(), program, "healthcheck")
	check.Env = []string{"TURND_OPS_LISTEN=" + p.Ops}
	text, err = check.CombinedOutput()
	require.NoError(t, err, "%s", text)
}

// probes are the paths that the manifests ask.
func probes(t *testing.T) map[string]string {
	t.Helper()
	c := worker(t)
	return map[string]string{"startup": c.StartupProbe.HTTPGet.Path, "liveness": c.LivenessProbe.HTTPGet.Path,
		"readiness": c.ReadinessProbe.HTTPGet.Path, "metrics": "/metrics"}
}

// served is the ready file.
type served struct {
	Ops     string
	Version string
}

// runAsNobody serves the demo on SQLite with the environment of the image and free ports.
func runAsNobody(t *testing.T, program string) (s served) {
	t.Helper()
	data := t.TempDir()
	for dir := data; dir != filepath.Dir(dir) && strings.HasPrefix(dir, os.TempDir()) && dir != os.TempDir(); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755)) // others may pass through to it
	}
	cmd := exec.Command(program, "serve", "--demo", "--ready-file", filepath.Join(data, "ready.json"))
	cmd.Dir = "/"
	for name, value := range imageEnv(t) {
		switch {
		case strings.HasSuffix(name, "LISTEN"):
			value = "127.0.0.1:0"
		case strings.HasSuffix(name, "DIR"):
			value = data + strings.TrimPrefix(value, imageEnv(t)["TURND_DATA_DIR"])
		}
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(data, nobody, nobody))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	var said strings.Builder
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait(), said.String())
		_, err := os.Stat(filepath.Join(data, "turnd.db"))
		require.NoError(t, err, "what it wrote is in the data dir")
	})
	require.Eventually(t, func() bool {
		raw, err := os.ReadFile(filepath.Join(data, "ready.json"))
		return err == nil && json.Unmarshal(raw, &s) == nil
	}, patience, 20*time.Millisecond)
	require.Eventually(t, func() bool { return status(t, "http://"+s.Ops+"/readyz") == http.StatusOK }, patience, 20*time.Millisecond)
	return s
}

func status(t *testing.T, url string) int {
	t.Helper()
	return getJSON(t, url, nil)
}

func getJSON(t *testing.T, url string, into any) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	if into != nil {
		require.NoError(t, json.NewDecoder(answer.Body).Decode(into))
	}
	return answer.StatusCode
}

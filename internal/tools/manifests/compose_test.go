package manifests

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const composeDir = root + "/deploy/compose"

// project reads a compose file by its schema, with a value for what must be set.
func project(text string) (*types.Project, error) {
	dir, err := filepath.Abs(composeDir)
	if err != nil {
		return nil, err
	}
	return loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: []byte(text)}},
		Environment: types.Mapping{"POSTGRES_PASSWORD": "secret"},
	})
}

func TestAMistakeInTheComposeFileIsNoticed(t *testing.T) {
	whole := read(t, composeDir+"/compose.yaml")
	mistakes := map[string]string{
		"stop_grace_period: 60s": "stop_grace: 60s", "cap_drop: [ALL]": "cap_drop: ALL", "condition: service_healthy": "condition: healthy",
		"stop_grace_period: 60":       "stop_grace_period: [60",
		"volumes: [worker-1:":         "volumes: [worker-7:",
		"migrate: {condition":         "migration: {condition",
		"    restart: unless-stopped": "    restart: unless-stopped\n    restart: always",
	}
	for old, planted := range mistakes {
		require.Contains(t, whole, old)
		_, err := project(strings.Replace(whole, old, planted, 1))
		require.Error(t, err, planted)
	}
	t.Logf("noticed %d planted mistakes", len(mistakes))
}

func TestTheComposeFileServesTwoWorkersThatDrain(t *testing.T) {
	p, err := project(read(t, composeDir+"/compose.yaml"))
	require.NoError(t, err)
	variables, _ := settings(t)
	known := commands(t)
	spools := map[string]bool{}
	for _, name := range []string{"turnd-1", "turnd-2", "migrate"} {
		s := p.Services[name]
		require.True(t, known[strings.Join(s.Command, " ")], s.Command)
		require.True(t, s.ReadOnly)
		require.Equal(t, "deploy/docker/Dockerfile", s.Build.Dockerfile)
		_, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile))
		require.NoError(t, err)
		for variable := range s.Environment {
			if strings.HasPrefix(variable, "TURND_") {
				require.True(t, variables[variable], variable)
			}
		}
		if name == "migrate" {
			continue
		}
		delay, grace := duration(t, *s.Environment["TURND_DRAIN_DELAY"]), duration(t, *s.Environment["TURND_GRACE"])
		require.Greater(t, duration(t, s.StopGracePeriod.String()), delay+grace+endings)
		require.Equal(t, "keys", *s.Environment["TURND_AUTH"], "it does not listen on loopback")
		require.Equal(t, imageEnv(t)["TURND_DATA_DIR"], s.Volumes[0].Target)
		spools[s.Volumes[0].Source] = true
		require.Equal(t, "127.0.0.1", s.Ports[0].HostIP)
		require.Equal(t, uint32(8080), s.Ports[0].Target)
	}
	require.Len(t, spools, 2, "each worker keeps its own spool")
}

func TestWhatTheComposeFileMountsIsThere(t *testing.T) {
	p, err := project(read(t, composeDir+"/compose.yaml"))
	require.NoError(t, err)
	for name, s := range p.Services {
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				_, err := os.Stat(v.Source)
				require.NoError(t, err, "%s mounts %s", name, v.Source)
			}
		}
	}
}

func TestPrometheusAndGrafanaOfTheComposeFileFindEachOther(t *testing.T) {
	var scrapes struct {
		Global    map[string]string `json:"global"`
		RuleFiles []string          `json:"rule_files"`
		Scrapes   []struct {
			Job    string `json:"job_name"`
			Static []struct {
				Targets []string `json:"targets"`
			} `json:"static_configs"`
		} `json:"scrape_configs"`
	}
	require.NoError(t, yaml.UnmarshalStrict([]byte(read(t, composeDir+"/prometheus.yml")), &scrapes))
	p, err := project(read(t, composeDir+"/compose.yaml"))
	require.NoError(t, err)
	for _, target := range scrapes.Scrapes[0].Static[0].Targets {
		name, port, _ := strings.Cut(target, ":")
		require.Contains(t, p.Services, name)
		require.True(t, strings.HasSuffix(imageEnv(t)["TURND_OPS_LISTEN"], ":"+port))
	}
	var sources struct {
		APIVersion  int `json:"apiVersion"`
		Datasources []struct {
			Name      string         `json:"name"`
			UID       string         `json:"uid"`
			Type      string         `json:"type"`
			Access    string         `json:"access"`
			URL       string         `json:"url"`
			IsDefault bool           `json:"isDefault"`
			JSONData  map[string]any `json:"jsonData"`
		} `json:"datasources"`
	}
	require.NoError(t, yaml.UnmarshalStrict([]byte(read(t, composeDir+"/grafana/datasources.yaml")), &sources))
	require.Equal(t, "http://prometheus:9090", sources.Datasources[0].URL)
	require.Contains(t, p.Services, "prometheus")
	var providers struct {
		APIVersion int `json:"apiVersion"`
		Providers  []struct {
			Name            string            `json:"name"`
			Folder          string            `json:"folder"`
			Type            string            `json:"type"`
			DisableDeletion bool              `json:"disableDeletion"`
			AllowUIUpdates  bool              `json:"allowUiUpdates"`
			Options         map[string]string `json:"options"`
		} `json:"providers"`
	}
	require.NoError(t, yaml.UnmarshalStrict([]byte(read(t, composeDir+"/grafana/dashboards.yaml")), &providers))
	mounted := map[string]bool{}
	for _, v := range p.Services["grafana"].Volumes {
		mounted[v.Target] = true
	}
	require.True(t, mounted[providers.Providers[0].Options["path"]])
}

package manifests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const collectorFile = root + "/deploy/otel/collector.yaml"

// collectorConfig is what the sample may say: parts of the collector's own settings, since its code is not built here.
type collectorConfig struct {
	Receivers struct {
		OTLP struct {
			Protocols struct {
				GRPC endpoint `json:"grpc"`
				HTTP endpoint `json:"http"`
			} `json:"protocols"`
		} `json:"otlp"`
	} `json:"receivers"`
	Processors struct {
		MemoryLimiter struct {
			CheckInterval string `json:"check_interval"`
			Limit         int    `json:"limit_mib"`
			Spike         int    `json:"spike_limit_mib"`
		} `json:"memory_limiter"`
		Batch struct {
			Size    int    `json:"send_batch_size"`
			MaxSize int    `json:"send_batch_max_size"`
			Timeout string `json:"timeout"`
		} `json:"batch"`
	} `json:"processors"`
	Exporters struct {
		Debug struct {
			Verbosity string `json:"verbosity"`
		} `json:"debug"`
	} `json:"exporters"`
	Extensions struct {
		HealthCheck endpoint `json:"health_check"`
	} `json:"extensions"`
	Service struct {
		Extensions []string            `json:"extensions"`
		Pipelines  map[string]pipeline `json:"pipelines"`
	} `json:"service"`
}

type endpoint struct {
	Endpoint string `json:"endpoint"`
}

type pipeline struct {
	Receivers  []string `json:"receivers"`
	Processors []string `json:"processors"`
	Exporters  []string `json:"exporters"`
}

func collector(text string) (c collectorConfig, err error) {
	return c, yaml.UnmarshalStrict([]byte(text), &c)
}

func TestAMistakeInTheCollectorsFileIsNoticed(t *testing.T) {
	whole := read(t, collectorFile)
	mistakes := map[string]string{
		"limit_mib: 400": "limit_mb: 400", "send_batch_size: 1024": "send_batch_size: many", "        endpoint: 0.0.0.0:4317": "        endpoint: a\n        endpoint: b",
	}
	for old, planted := range mistakes {
		require.Contains(t, whole, old)
		_, err := collector(strings.Replace(whole, old, planted, 1))
		require.Error(t, err, planted)
	}
	t.Logf("noticed %d planted mistakes", len(mistakes))
}

func TestTheCollectorTakesWhatTurndIsToldToSendAndLimitsItsMemoryFirst(t *testing.T) {
	c, err := collector(read(t, collectorFile))
	require.NoError(t, err)
	require.Equal(t, "0.0.0.0:4317", c.Receivers.OTLP.Protocols.GRPC.Endpoint)
	require.Equal(t, "grpc", value(t, "OTEL_EXPORTER_OTLP_PROTOCOL"))
	require.True(t, strings.HasSuffix(value(t, "OTEL_EXPORTER_OTLP_ENDPOINT"), ":4317"))
	p, err := project(read(t, composeDir+"/compose.yaml"))
	require.NoError(t, err)
	require.Contains(t, p.Services, "otel")
	require.Equal(t, "http://otel:4317", *p.Services["turnd-1"].Environment["OTEL_EXPORTER_OTLP_ENDPOINT"])
	require.Len(t, c.Service.Pipelines, 2)
	for name, line := range c.Service.Pipelines {
		require.Equal(t, pipeline{[]string{"otlp"}, []string{"memory_limiter", "batch"}, []string{"debug"}}, line, name)
	}
	require.Less(t, c.Processors.MemoryLimiter.Spike, c.Processors.MemoryLimiter.Limit)
	require.GreaterOrEqual(t, c.Processors.Batch.MaxSize, c.Processors.Batch.Size)
	require.Equal(t, []string{"health_check"}, c.Service.Extensions)
}

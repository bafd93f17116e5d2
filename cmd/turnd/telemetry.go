package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/turnd/turnd/internal/telemetry"
)

// Values of --traces and --metrics. Auto is what the standard variables say.
const (
	telemetryAuto = "auto"
	telemetryOTLP = "otlp"
	// metricsScraped leaves metrics to who scrapes the ops listener.
	metricsScraped = "prometheus"
)

// Telemetry says where traces and metrics go. How collectors are reached is said by the standard OTEL_ variables alone.
type Telemetry struct {
	Traces      string   `env:"TURND_TRACES" default:"auto" placeholder:"WHERE" help:"off, otlp, or auto: otlp if OTEL_TRACES_EXPORTER says so or an endpoint is set by OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT."`
	Metrics     string   `env:"TURND_METRICS" default:"auto" placeholder:"HOW" help:"prometheus for scrapes of the ops listener alone, otlp to push them too, or auto: otlp if OTEL_METRICS_EXPORTER says so or OTEL_EXPORTER_OTLP_METRICS_ENDPOINT is set."`
	TraceSample *float64 `env:"TURND_TRACE_SAMPLE" placeholder:"SHARE" help:"Share of traces that are kept, 0 to 1, where the caller has not decided. Default 0.1, or what OTEL_TRACES_SAMPLER says."`
}

// check looks at the flags and at all variables that they go with.
func (t Telemetry) check() error {
	var share error
	if s := t.TraceSample; s != nil && !(*s >= 0 && *s <= 1) {
		share = fmt.Errorf("--trace-sample: %v is no share, from 0 to 1", *s)
	}
	_, err := telemetry.ReadEnvironment(os.Getenv)
	return errors.Join(err, share, telemetry.CheckResource(),
		oneOf("--traces", t.Traces, telemetryAuto, off, telemetryOTLP),
		oneOf("--metrics", t.Metrics, telemetryAuto, metricsScraped, telemetryOTLP))
}

// config is the telemetry as flags and variables have it.
func (t Telemetry) config() (telemetry.Config, error) {
	env, err := telemetry.ReadEnvironment(os.Getenv)
	if err != nil {
		return telemetry.Config{}, err
	}
	return telemetry.Config{
		Environment: env, Ratio: t.TraceSample,
		Traces:      t.Traces == telemetryOTLP || t.Traces == telemetryAuto && env.Traces,
		PushMetrics: t.Metrics == telemetryOTLP || t.Metrics == telemetryAuto && env.Metrics,
	}, nil
}

// Package telemetry sets up the OpenTelemetry SDK for a process and shows its metrics in the Prometheus format.
//
// The domain names its instruments once, by the OpenTelemetry API; what a scraper reads follows from those names:
// "turnd.provider.calls" is turnd_provider_calls_total. No label tells which library made an instrument. The resource,
// with OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES in it, is shown once, in target_info, and not on each series.
//
// What surprises: nothing here is global. The SDK's own complaints aside, a process may hold any number of these.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
)

// scope is the name under which turnd's own instruments are made.
const scope = "github.com/turnd/turnd"

// maxScrapes bounds the scrapes that are answered at once; more are told to come back.
const maxScrapes = 4

// maxSeries bounds the series of one instrument. Labels come from closed lists and from the models file, so that only a
// mistake reaches it; what is past it is summed in one series marked otel_metric_overflow.
const maxSeries = 2000

// Config says whose telemetry it is.
type Config struct {
	// Version is the build, InstanceID this life of the process.
	Version    string
	InstanceID string
}

// Telemetry is the telemetry of one process.
type Telemetry struct {
	// Meter makes instruments.
	Meter metric.Meter
	// MetricsHandler answers scrapes.
	MetricsHandler http.Handler

	provider *sdkmetric.MeterProvider
}

// Setup makes the telemetry. It starts no goroutine; Shutdown ends it.
func Setup(ctx context.Context, cfg Config) (*Telemetry, error) {
	about, err := describe(ctx, cfg)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(
		otelprom.WithRegisterer(registry),
		otelprom.WithoutScopeInfo(),
		otelprom.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
	)
	if err != nil {
		return nil, fmt.Errorf("set up metrics: %w", err)
	}
	err = errors.Join(
		registry.Register(collectors.NewGoCollector()),
		registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
	if err != nil {
		return nil, fmt.Errorf("set up metrics of the process: %w", err)
	}
	provider := sdkmetric.NewMeterProvider(
		sdkmetric.WithReader(exporter), sdkmetric.WithResource(about), sdkmetric.WithCardinalityLimit(maxSeries))
	return &Telemetry{
		Meter:          provider.Meter(scope),
		MetricsHandler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}),
		provider:       provider,
	}, nil
}

// describe is the resource: our own words first, so that the environment can replace them.
func describe(ctx context.Context, cfg Config) (*resource.Resource, error) {
	ours := []attribute.KeyValue{
		attribute.String("service.name", "turnd"),
		attribute.String("service.version", cfg.Version),
		attribute.String("service.instance.id", cfg.InstanceID),
	}
	about, err := resource.New(ctx, resource.WithAttributes(ours...), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return about, nil
}

// Gauge shows what read returns at each scrape. Read must be quick and may be called by several scrapes at once.
func (t *Telemetry) Gauge(name, unit, about string, read func() int64) error {
	_, err := t.Meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(about),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(read())
			return nil
		}))
	if err != nil {
		return fmt.Errorf("set up gauge %s: %w", name, err)
	}
	return nil
}

// Shutdown ends the telemetry; instruments made of it then count nothing.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("end telemetry: %w", err)
	}
	return nil
}

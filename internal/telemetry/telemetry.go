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
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/turnd/turnd/internal/instrument"
)

// scope is the name under which turnd's own instruments are made.
const scope = "github.com/turnd/turnd"

// maxScrapes bounds the scrapes that are answered at once; more are told to come back.
const maxScrapes = 4

// maxSeries bounds the series of one instrument. Labels come from closed lists and from the models file, so that only a
// mistake reaches it; what is past it is summed in one series marked otel_metric_overflow.
const maxSeries = 2000

// Config says whose telemetry it is, and where it goes.
type Config struct {
	// Version is the build, InstanceID this life of the process.
	Version    string
	InstanceID string
	// Environment is what the standard variables say; ReadEnvironment reads it.
	Environment Environment
	// Traces has spans sent by OTLP, and PushMetrics metrics too.
	Traces, PushMetrics bool
	// Ratio is the share of traces that are kept, unless a caller has decided that; nil leaves it to the variables.
	Ratio *float64
	// Logger is told what a collector does not take, once in a while. Default: nothing is logged.
	Logger *slog.Logger
}

// Telemetry is the telemetry of one process.
type Telemetry struct {
	// Meter makes instruments, and Meters those of libraries.
	Meter  metric.Meter
	Meters metric.MeterProvider
	// Tracer makes spans, and Tracers those of libraries. Without Config.Traces nothing is recorded, and the trace of a caller
	// is still known to logs and to what is counted.
	Tracer  trace.Tracer
	Tracers trace.TracerProvider
	// Propagator reads what trace a caller's request belongs to.
	Propagator propagation.TextMapPropagator
	// MetricsHandler answers scrapes.
	MetricsHandler http.Handler

	ends []func(context.Context) error
}

// Setup makes the telemetry. It connects to nothing: what a collector is sent, it is sent later. Shutdown ends it.
func Setup(ctx context.Context, cfg Config) (*Telemetry, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	about, err := describe(ctx, cfg)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{Meters: noopmetric.NewMeterProvider(), Tracers: nooptrace.NewTracerProvider(),
		Propagator: propagation.NewCompositeTextMapPropagator()}
	if cfg.Environment.Propagate {
		t.Propagator = propagation.TraceContext{}
	}
	registry, spans := prometheus.NewRegistry(), newLosses("spans", cfg.Logger)
	if err := t.measure(ctx, cfg, about, registry, spans); err != nil {
		return nil, err
	}
	if cfg.Traces && !cfg.Environment.Disabled {
		if err := t.trace(ctx, cfg, about, spans); err != nil {
			return nil, errors.Join(err, t.Shutdown(ctx))
		}
	}
	t.Meter, t.Tracer = t.Meters.Meter(scope), t.Tracers.Tracer(scope)
	// Exemplars, which lead from a figure to a trace, are in OpenMetrics alone, which Prometheus asks for.
	t.MetricsHandler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, EnableOpenMetrics: true})
	return t, nil
}

// measure sets up metrics: for scrapes always, and pushed if that is wanted. What is lost of spans is counted too.
func (t *Telemetry) measure(ctx context.Context, cfg Config, about *resource.Resource, registry *prometheus.Registry, spans *losses) error {
	err := errors.Join(
		registry.Register(collectors.NewGoCollector()),
		registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
	if err != nil {
		return fmt.Errorf("set up metrics of the process: %w", err)
	}
	if cfg.Environment.Disabled {
		return nil
	}
	exporter, err := otelprom.New(
		otelprom.WithRegisterer(registry),
		otelprom.WithoutScopeInfo(),
		otelprom.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
	)
	if err != nil {
		return fmt.Errorf("set up metrics: %w", err)
	}
	opts := []sdkmetric.Option{sdkmetric.WithReader(exporter), sdkmetric.WithResource(about), sdkmetric.WithCardinalityLimit(maxSeries)}
	pushed := newLosses("metrics", cfg.Logger)
	if cfg.PushMetrics {
		reader, err := metricReader(ctx, cfg.Environment, pushed)
		if err != nil {
			return err
		}
		opts = append(opts, sdkmetric.WithReader(reader))
	}
	provider := sdkmetric.NewMeterProvider(opts...)
	t.ends = append(t.ends, provider.Shutdown)
	t.Meters = provider
	maker := instrument.NewMaker(provider.Meter(scope))
	dropped := maker.Counter(instrument.TelemetryDropped)
	if err := maker.Err(); err != nil {
		return errors.Join(err, t.Shutdown(ctx))
	}
	spans.countBy(dropped)
	pushed.countBy(dropped)
	return nil
}

// trace sets up traces.
func (t *Telemetry) trace(ctx context.Context, cfg Config, about *resource.Resource, spans *losses) error {
	exporter, err := spanExporter(ctx, cfg.Environment)
	if err != nil {
		return err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithSampler(sampler(cfg.Ratio, cfg.Environment)),
		sdktrace.WithSpanProcessor(newOutbox(exporter, cfg.Environment, spans)))
	t.Tracers = provider
	t.ends = append(t.ends, provider.Shutdown)
	return nil
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
		// What the library says repeats the value, which may be anything.
		return nil, errors.New("OTEL_RESOURCE_ATTRIBUTES: must be key=value pairs with commas between them, values percent-encoded")
	}
	return about, nil
}

// CheckResource says whether what the environment says of this process can be read.
func CheckResource() error {
	_, err := describe(context.Background(), Config{})
	return err
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

// lastWords bounds the end: a collector that does not answer keeps no process.
const lastWords = 2 * time.Second

// Shutdown sends what is not sent yet, for a short time, and ends the telemetry; instruments made of it then count nothing.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	var problems []error
	for _, end := range slices.Backward(t.ends) {
		if err := end(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			problems = append(problems, fmt.Errorf("end telemetry: %w", err))
		}
	}
	return errors.Join(problems...)
}

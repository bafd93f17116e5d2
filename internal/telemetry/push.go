package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// spanExporter makes the exporter of traces. It connects when there is something to send.
func spanExporter(ctx context.Context, env Environment) (e sdktrace.SpanExporter, err error) {
	if env.TraceProtocol == protocolGRPC {
		var opts []otlptracegrpc.Option
		if !env.TraceEndpoint {
			opts = append(opts, otlptracegrpc.WithInsecure())
		}
		e, err = otlptracegrpc.New(ctx, opts...)
	} else {
		var opts []otlptracehttp.Option
		if !env.TraceEndpoint {
			opts = append(opts, otlptracehttp.WithInsecure())
		}
		e, err = otlptracehttp.New(ctx, opts...)
	}
	if err != nil {
		return nil, fmt.Errorf("set up the export of traces: %w", err)
	}
	return e, nil
}

// metricReader makes what pushes metrics from time to time.
func metricReader(ctx context.Context, env Environment, l *losses) (_ sdkmetric.Reader, err error) {
	var e sdkmetric.Exporter
	if env.MetricProtocol == protocolGRPC {
		var opts []otlpmetricgrpc.Option
		if !env.MetricEndpoint {
			opts = append(opts, otlpmetricgrpc.WithInsecure())
		}
		e, err = otlpmetricgrpc.New(ctx, opts...)
	} else {
		var opts []otlpmetrichttp.Option
		if !env.MetricEndpoint {
			opts = append(opts, otlpmetrichttp.WithInsecure())
		}
		e, err = otlpmetrichttp.New(ctx, opts...)
	}
	if err != nil {
		return nil, fmt.Errorf("set up the export of metrics: %w", err)
	}
	return sdkmetric.NewPeriodicReader(pusher{e, l}, sdkmetric.WithInterval(env.Interval), sdkmetric.WithTimeout(env.PushTime)), nil
}

// pusher counts the collections that a collector does not take. They are no error: the next one holds all that this one did.
type pusher struct {
	sdkmetric.Exporter
	losses *losses
}

// Export implements sdkmetric.Exporter.
func (p pusher) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	if err := p.Exporter.Export(ctx, all); err != nil {
		p.losses.lost(1, err)
	}
	return nil
}

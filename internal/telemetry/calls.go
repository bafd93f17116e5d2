package telemetry

import (
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc/stats"
)

// Calls makes what traces and measures the calls of a server. Which calls it is told of is for the server to choose: their
// names become labels.
func (t *Telemetry) Calls() stats.Handler {
	return otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(t.Tracers), otelgrpc.WithMeterProvider(t.Meters),
		otelgrpc.WithPropagators(t.Propagator))
}

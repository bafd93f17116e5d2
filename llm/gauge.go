package llm

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// showBreakers makes the gauge of the breakers' states. Its labels come from the models file.
func (r *Router) showBreakers(meter metric.Meter) error {
	if meter == nil {
		return nil
	}
	gauge, err := meter.Int64ObservableGauge("turnd.breaker.state", metric.WithUnit("{state}"),
		metric.WithDescription("Whether calls to a model at an endpoint are let through: 0 all (closed), 1 one as a trial (half-open), 2 none (open)."))
	if err != nil {
		return fmt.Errorf("set up the gauge of breakers: %w", err)
	}
	r.gauge, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for key, b := range r.table.Load().breakers {
			o.ObserveInt64(gauge, int64(b.look(time.Now())), metric.WithAttributes(
				attribute.String("endpoint", key.endpoint), attribute.String("model", key.model)))
		}
		return nil
	}, gauge)
	if err != nil {
		return fmt.Errorf("set up the gauge of breakers: %w", err)
	}
	return nil
}

package llm

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/turnd/turnd/internal/instrument"
)

// The most distinct values of the gauge's labels, in the life of a process.
const (
	mostEndpoints = 64
	mostModels    = 128
)

// showBreakers makes the gauge of the breakers' states. Its labels come from the models file.
func (r *Router) showBreakers(meter metric.Meter) error {
	if meter == nil {
		return nil
	}
	endpoints, models := instrument.NewBounded(mostEndpoints), instrument.NewBounded(mostModels)
	maker := instrument.NewMaker(meter)
	gauge := maker.Observable(instrument.BreakerState)
	err := maker.Err()
	if err == nil {
		r.gauge, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
			for key, b := range r.table.Load().breakers {
				o.ObserveFloat64(gauge, float64(b.look(time.Now())), metric.WithAttributes(
					attribute.String("endpoint", endpoints.Value(key.endpoint)), attribute.String("model", models.Value(key.model))))
			}
			return nil
		}, gauge)
	}
	if err != nil {
		return fmt.Errorf("set up the gauge of breakers: %w", err)
	}
	return nil
}

package turns

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// begin shows counters at 0 that alerts rest on. A scraper sees a counter grow only where it has seen it before: the first
// ending that is lost would be no alert if its series began with it.
func (m *Metrics) begin(ctx context.Context) {
	m.endingsLost.Add(ctx, 0)
	for _, c := range []struct {
		counter metric.Int64Counter
		label   string
		values  []string
	}{
		{m.swept, "result", []string{sweptTakenOver, sweptAbandoned, sweptHeld, sweptCompleted, sweptLostRace, sweptFailed}},
		{m.renewals, "result", []string{renewalOnTime, renewalLate, renewalFailed, renewalLost}},
		{m.duplicates, "layer", repeatLayers}, {m.duplicateTokens, "layer", repeatLayers}, {m.duplicateCost, "layer", repeatLayers},
	} {
		for _, value := range c.values {
			c.counter.Add(ctx, 0, metric.WithAttributes(attribute.String(c.label, value)))
		}
	}
}

// repeatLayers are those that may repeat.
var repeatLayers = []string{string(LayerClient), string(LayerRedelivery), string(LayerTakeover), string(LayerProvider)}

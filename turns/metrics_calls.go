package turns

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/turnd/turnd/internal/instrument"
)

// callLabels say whose call it was.
type callLabels struct {
	layer    Layer
	provider string
	model    string
	// bytes are those of the request, by which its size is known where nobody has counted its tokens.
	bytes int
}

func (c NewCall) labels() callLabels {
	return callLabels{layer: c.MadeBy(), provider: c.Route.Provider, model: c.Route.Model, bytes: c.RequestBytes}
}

func (c OpenCall) labels() callLabels {
	return callLabels{layer: madeBy(c.Layer, c.First), provider: c.Provider, model: c.Model, bytes: c.RequestBytes}
}

// sizes are the bounds of requests by their tokens.
var sizes = []struct {
	most int64
	name string
}{{1 << 10, "le_1k"}, {4 << 10, "le_4k"}, {16 << 10, "le_16k"}, {64 << 10, "le_64k"}, {256 << 10, "le_256k"}}

// SizeClass names the size of a request by its input tokens or, where nobody has counted them, by its bytes.
func SizeClass(input int64, requestBytes int) string {
	if input <= 0 {
		input = EstimateTokens(requestBytes)
	}
	for _, s := range sizes {
		if input <= s.most {
			return s.name
		}
	}
	return "more"
}

// callEnded counts a call by what was written of it on the ledger. Each is counted once, when it is first closed.
func (m *Metrics) callEnded(ctx context.Context, l callLabels, o CallOutcome) {
	try := "retry"
	if l.layer == LayerFirst {
		try = "first"
	}
	provider, model := attribute.String("provider", m.vendors.Value(l.provider)), attribute.String("model", m.models.Value(l.model))
	common := []attribute.KeyValue{attribute.String("try", try), provider, model}
	with := func(more ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributes(append(common[:len(common):len(common)], more...)...)
	}
	m.providerCalls.Add(ctx, 1, with(attribute.String("class", string(o.Class))))
	if l.layer == LayerProvider {
		m.duplicate(ctx, LayerProvider)
	}
	u := o.Usage
	for _, part := range []struct {
		direction string
		tokens    int64
	}{
		{"input", u.Input}, {"output", u.Output}, {"cache_read", u.CacheRead}, {"cache_write", u.CacheWrite},
	} {
		if part.tokens > 0 {
			m.tokens.Add(ctx, part.tokens, with(attribute.String("source", string(u.Source)), attribute.String("direction", part.direction)))
		}
	}
	if u.CostMicros > 0 {
		m.cost.Add(ctx, u.CostMicros, with())
	}
	by := metric.WithAttributes(attribute.String("layer", string(l.layer)), provider, model,
		attribute.String("size", SizeClass(u.Input, l.bytes)))
	m.requests.Add(ctx, 1, by)
	m.requestTokens.Add(ctx, u.Total(), by)
	if u.Wasted > 0 {
		why := metric.WithAttributes(attribute.String("cause", o.WasteCause))
		m.wasted.Add(ctx, u.Wasted, why)
		m.wastedCost.Add(ctx, u.CostMicros, why)
	}
}

// inference is one exchange with a provider, as the GenAI conventions see it.
type inference struct {
	operation string
	route     Route
	// mixed says that the request holds more than text.
	mixed bool
	begun time.Time
	// counted is what the provider reported of it, as far as that is exact; nil counts nothing.
	counted *Usage
}

// inferred adds an exchange that came to c.
func (m *Metrics) inferred(ctx context.Context, i inference, c callResult) {
	who := []attribute.KeyValue{attribute.String(instrument.OperationName, i.operation),
		attribute.String(instrument.ProviderName, m.vendors.Value(i.route.Provider)),
		attribute.String(instrument.RequestModel, m.models.Value(i.route.ProviderModel))}
	plain := metric.WithAttributes(who...)
	took := plain
	if c.err != nil {
		took = metric.WithAttributes(append(who[:len(who):len(who)], attribute.String(instrument.ErrorType, string(c.err.Class)))...)
	}
	m.inferenceTime.Record(ctx, time.Since(i.begun).Seconds(), took)
	if !c.firstChunk.IsZero() {
		m.inferenceFirstChunk.Record(ctx, c.firstChunk.Sub(i.begun).Seconds(), plain)
	}
	if i.counted == nil {
		return
	}
	modality := "text"
	if i.mixed {
		modality = "unknown"
	}
	used := metric.WithAttributes(append(who[:len(who):len(who)], attribute.String(instrument.TokenModality, modality))...)
	for _, part := range []struct {
		counter metric.Int64Counter
		tokens  int64
	}{
		{m.input, i.counted.Input}, {m.output, i.counted.Output}, {m.cacheRead, i.counted.CacheRead},
		{m.cacheWrite, i.counted.CacheWrite}, {m.reasoning, i.counted.Reasoning},
	} {
		if part.tokens > 0 {
			part.counter.Add(ctx, part.tokens, used)
		}
	}
	if c.err == nil && c.finished {
		m.inputSizes.Record(ctx, float64(i.counted.Input), plain)
		m.responseSizes.Record(ctx, float64(i.counted.Output), plain)
	}
}

// exactly is what a provider reported of a call, without what turnd estimated in its place; nil if it reported nothing.
func exactly(reported *Usage, taken Usage) *Usage {
	if reported == nil {
		return nil
	}
	u := *reported
	if taken.Source != SourceReported {
		u.Output, u.Reasoning = 0, 0
	}
	return &u
}

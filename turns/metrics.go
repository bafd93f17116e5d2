package turns

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Metrics are the counters of the domain. Names, units and labels are fixed: dashboards are written against them. No
// label holds an id, and each comes from a closed list or from the models file.
type Metrics struct {
	submissions   metric.Int64Counter
	duplicates    metric.Int64Counter
	providerCalls metric.Int64Counter
	tokens        metric.Int64Counter
	wasted        metric.Int64Counter
	replies       metric.Int64Counter
	healings      metric.Int64Counter
	rebuilt       metric.Int64Counter
}

// NewMetrics makes the counters.
func NewMetrics(meter metric.Meter) (*Metrics, error) {
	var m Metrics
	for _, c := range []struct {
		counter           *metric.Int64Counter
		name, unit, about string
	}{
		{&m.submissions, "turnd.submissions", "{delivery}", "Deliveries of user turns, by what each was."},
		{&m.duplicates, "turnd.duplicates", "{delivery}", "Deliveries that repeated a turn, and calls that repeated a call, by the layer that repeated."},
		{&m.providerCalls, "turnd.provider.calls", "{call}", "Physical requests to providers, once each is over."},
		{&m.tokens, "turnd.provider.tokens", "{token}", "Tokens of provider calls; cache_read and cache_write are parts of input."},
		{&m.wasted, "turnd.tokens.wasted", "{token}", "Tokens that were paid for and not delivered, by cause."},
		{&m.replies, "turnd.replies", "{reply}", "Replies that ended, by status and reason."},
		{&m.healings, "turnd.history.healed", "{piece}", "What was put right in the histories of requests that were built, by kind; stored rows stay as they are."},
		{&m.rebuilt, "turnd.requests.rebuilt", "{request}", "Requests that were built again for a later attempt, by whether they came out the same to the byte; other bytes go under another idempotency key."},
	} {
		counter, err := meter.Int64Counter(c.name, metric.WithUnit(c.unit), metric.WithDescription(c.about))
		if err != nil {
			return nil, err
		}
		*c.counter = counter
	}
	return &m, nil
}

func (m *Metrics) submission(ctx context.Context, result string) {
	m.submissions.Add(ctx, 1, metric.WithAttributes(attribute.String("result", result)))
}

func (m *Metrics) duplicate(ctx context.Context, layer string) {
	m.duplicates.Add(ctx, 1, metric.WithAttributes(attribute.String("layer", layer)))
}

func (m *Metrics) replyEnded(ctx context.Context, status Status, reason Reason) {
	m.replies.Add(ctx, 1, metric.WithAttributes(
		attribute.String("status", string(status)), attribute.String("reason", string(reason))))
}

// healed counts what was put right in a request that was built.
func (m *Metrics) healed(ctx context.Context, healed Healed) {
	for kind, n := range healed {
		m.healings.Add(ctx, int64(n), metric.WithAttributes(attribute.String("kind", string(kind))))
	}
}

// rebuiltRequest counts a request that an earlier attempt of the same generation made before.
func (m *Metrics) rebuiltRequest(ctx context.Context, same bool) {
	result := "changed"
	if same {
		result = "same"
	}
	m.rebuilt.Add(ctx, 1, metric.WithAttributes(attribute.String("result", result)))
}

// callLabels say whose call it was.
type callLabels struct {
	first    bool
	provider string
	model    string
}

func (m *Metrics) callEnded(ctx context.Context, l callLabels, o CallOutcome) {
	try := "retry"
	if l.first {
		try = "first"
	}
	common := []attribute.KeyValue{
		attribute.String("try", try), attribute.String("provider", l.provider), attribute.String("model", l.model)}
	m.providerCalls.Add(ctx, 1, metric.WithAttributes(
		append(common[:len(common):len(common)], attribute.String("class", string(o.Class)))...))
	if !l.first {
		m.duplicate(ctx, "provider")
	}
	source := attribute.String("source", string(o.Usage.Source))
	for _, part := range []struct {
		direction string
		tokens    int64
	}{
		{"input", o.Usage.Input}, {"output", o.Usage.Output},
		{"cache_read", o.Usage.CacheRead}, {"cache_write", o.Usage.CacheWrite},
	} {
		if part.tokens > 0 {
			m.tokens.Add(ctx, part.tokens, metric.WithAttributes(
				append(common[:len(common):len(common)], source, attribute.String("direction", part.direction))...))
		}
	}
	if o.Usage.Wasted > 0 {
		m.wasted.Add(ctx, o.Usage.Wasted, metric.WithAttributes(attribute.String("cause", o.WasteCause)))
	}
}

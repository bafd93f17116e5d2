package turns

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/turnd/turnd/internal/instrument"
)

// The most distinct values of labels that a models file chooses, in the life of a process.
const (
	mostProviders = 32
	mostModels    = 128
)

// Metrics are the instruments of the domain. What each means is in the catalog of package instrument. Values of labels come
// from closed lists, or from the models file and then bounded.
type Metrics struct {
	submissions, duplicates, duplicateTokens, duplicateCost       metric.Int64Counter
	providerCalls, tokens, cost, wasted, wastedCost               metric.Int64Counter
	requests, requestTokens, rebuilt, healings                    metric.Int64Counter
	replies, swept, renewals, endingsLost                         metric.Int64Counter
	input, output, cacheRead, cacheWrite, reasoning               metric.Int64Counter
	replyTime, firstDelta, claimTime, checkpointTime              metric.Float64Histogram
	inferenceTime, inferenceFirstChunk, inputSizes, responseSizes metric.Float64Histogram

	vendors, models *instrument.Bounded
}

// NewMetrics makes the instruments. An error is a mistake in the catalog, or of the meter.
func NewMetrics(meter metric.Meter) (*Metrics, error) {
	m := &Metrics{vendors: instrument.NewBounded(mostProviders), models: instrument.NewBounded(mostModels)}
	maker := instrument.NewMaker(meter)
	for name, counter := range map[string]*metric.Int64Counter{
		instrument.Submissions: &m.submissions, instrument.Duplicates: &m.duplicates,
		instrument.DuplicateTokens: &m.duplicateTokens, instrument.DuplicateCost: &m.duplicateCost,
		instrument.ProviderCalls: &m.providerCalls, instrument.ProviderTokens: &m.tokens, instrument.ProviderCost: &m.cost,
		instrument.TokensWasted: &m.wasted, instrument.CostWasted: &m.wastedCost,
		instrument.Requests: &m.requests, instrument.RequestTokens: &m.requestTokens,
		instrument.RequestsRebuilt: &m.rebuilt, instrument.HistoryHealed: &m.healings, instrument.Replies: &m.replies,
		instrument.Sweeps: &m.swept, instrument.Renewals: &m.renewals, instrument.EndingsLost: &m.endingsLost,
		instrument.InferenceInput: &m.input, instrument.InferenceOutput: &m.output,
		instrument.InferenceCacheRead: &m.cacheRead, instrument.InferenceCacheWrite: &m.cacheWrite,
		instrument.InferenceReasoning: &m.reasoning,
	} {
		*counter = maker.Counter(name)
	}
	for name, histogram := range map[string]*metric.Float64Histogram{
		instrument.ReplyTime: &m.replyTime, instrument.FirstDelta: &m.firstDelta, instrument.ClaimTime: &m.claimTime,
		instrument.CheckpointTime: &m.checkpointTime, instrument.InferenceTime: &m.inferenceTime,
		instrument.InferenceFirstChunk: &m.inferenceFirstChunk, instrument.InferenceInputSizes: &m.inputSizes,
		instrument.InferenceOutputSizes: &m.responseSizes,
	} {
		*histogram = maker.Histogram(name)
	}
	if err := maker.Err(); err != nil {
		return nil, err
	}
	m.begin(context.Background())
	return m, nil
}

// countOne counts one of something that has a single label.
func countOne(ctx context.Context, c metric.Int64Counter, label, value string) {
	c.Add(ctx, 1, metric.WithAttributes(attribute.String(label, value)))
}

func (m *Metrics) submission(ctx context.Context, result string) {
	countOne(ctx, m.submissions, "result", result)
}

func (m *Metrics) duplicate(ctx context.Context, layer Layer) {
	countOne(ctx, m.duplicates, "layer", string(layer))
}

// saved counts what n repeated deliveries of a layer would have used, had each been a call of its own.
func (m *Metrics) saved(ctx context.Context, layer Layer, n int64, u Usage) {
	by := metric.WithAttributes(attribute.String("layer", string(layer)))
	if tokens := u.Total(); tokens > 0 {
		m.duplicateTokens.Add(ctx, n*tokens, by)
	}
	if u.CostMicros > 0 {
		m.duplicateCost.Add(ctx, n*u.CostMicros, by)
	}
}

func (m *Metrics) replyEnded(ctx context.Context, status Status, reason Reason) {
	m.replies.Add(ctx, 1, metric.WithAttributes(
		attribute.String("status", string(status)), attribute.String("reason", string(reason))))
}

// replyTook adds how long a reply took that its own worker ended; a zero time of its claim is not known.
func (m *Metrics) replyTook(ctx context.Context, status Status, claimed time.Time) {
	if !claimed.IsZero() {
		m.replyTime.Record(ctx, time.Since(claimed).Seconds(), metric.WithAttributes(attribute.String("status", string(status))))
	}
}

// firstDeltaCame adds how long a new turn waited for its first delta.
func (m *Metrics) firstDeltaCame(ctx context.Context, arrived time.Time, route Route) {
	m.firstDelta.Record(ctx, time.Since(arrived).Seconds(), metric.WithAttributes(
		attribute.String("provider", m.vendors.Value(route.Provider)), attribute.String("model", m.models.Value(route.Model))))
}

func (m *Metrics) claimTook(ctx context.Context, begun time.Time) {
	m.claimTime.Record(ctx, time.Since(begun).Seconds())
}

func (m *Metrics) checkpointTook(ctx context.Context, begun time.Time) {
	m.checkpointTime.Record(ctx, time.Since(begun).Seconds())
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
	countOne(ctx, m.rebuilt, "result", result)
}

// Results of a sweep of one stale claim.
const (
	sweptTakenOver = "taken_over"
	sweptAbandoned = "abandoned"
	sweptHeld      = "held"
	sweptCompleted = "completed"
	sweptLostRace  = "lost_race"
	sweptFailed    = "failed"
)

func (m *Metrics) sweptOne(ctx context.Context, result string) {
	countOne(ctx, m.swept, "result", result)
}

func (m *Metrics) renewal(ctx context.Context, result string) {
	countOne(ctx, m.renewals, "result", result)
}

func (m *Metrics) endingLost(ctx context.Context) { m.endingsLost.Add(ctx, 1) }

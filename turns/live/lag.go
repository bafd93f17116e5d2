package live

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/turnd/turnd/internal/instrument"
)

// The ways on which text comes to a follower's worker.
const (
	viaMemory = "memory"
	viaBus    = "bus"
	viaStore  = "store"
)

// lag measures how far followers are behind the workers that make their replies.
type lag struct {
	histogram metric.Float64Histogram
	from      map[string]metric.MeasurementOption
}

func newLag(meter metric.Meter, logger *slog.Logger) lag {
	l := lag{from: map[string]metric.MeasurementOption{}}
	for _, via := range []string{viaMemory, viaBus, viaStore} {
		l.from[via] = metric.WithAttributeSet(attribute.NewSet(attribute.String("from", via)))
	}
	maker := instrument.NewMaker(meter)
	if l.histogram = maker.Histogram(instrument.FollowLag); maker.Err() != nil {
		logger.Error("followers' lag is not measured", "err", maker.Err())
	}
	return l
}

// shown measures text that was just given to a follower, if it is the newest and its time is known. Clocks of two workers
// may differ by more than the way takes.
func (l lag) shown(ctx context.Context, v *view) {
	if !v.at.IsZero() {
		l.histogram.Record(ctx, max(time.Since(v.at), 0).Seconds(), l.from[v.via])
	}
}

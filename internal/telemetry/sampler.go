package telemetry

import (
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Words of OTEL_TRACES_SAMPLER.
const (
	samplerOn     = "always_on"
	samplerOff    = "always_off"
	samplerRatio  = "traceidratio"
	samplerParent = "parentbased_"
)

// defaultRatio is the share of traces that are kept where nobody says otherwise.
const defaultRatio = 0.1

// sampler says which spans are kept: by a ratio if one was asked for, by the variable otherwise. With a parent, which may be
// the caller's, the parent decides, unless the variable names a sampler that knows none.
func sampler(ratio *float64, env Environment) sdktrace.Sampler {
	name, share := samplerParent+samplerRatio, defaultRatio
	switch {
	case ratio != nil:
		share = *ratio
	case env.Sampler != "":
		name, share = env.Sampler, env.Ratio
	}
	root, parental := strings.CutPrefix(name, samplerParent)
	var s sdktrace.Sampler
	switch root {
	case samplerOn:
		s = sdktrace.AlwaysSample()
	case samplerOff:
		s = sdktrace.NeverSample()
	default:
		s = linked{sdktrace.TraceIDRatioBased(share)}
	}
	if parental {
		return sdktrace.ParentBased(s)
	}
	return s
}

// linked keeps a trace that goes on with one that is kept: a reply that is taken over can be read to its end.
type linked struct{ sdktrace.Sampler }

// ShouldSample implements sdktrace.Sampler.
func (l linked) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	for _, link := range p.Links {
		if link.SpanContext.IsSampled() {
			return sdktrace.AlwaysSample().ShouldSample(p)
		}
	}
	return l.Sampler.ShouldSample(p)
}

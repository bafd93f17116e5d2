package llm

import (
	"log/slog"
	"time"
)

// SlowRate is the output, in tokens a second, of a slow model: what a total limit should leave time for.
const SlowRate = 20

// warnOfShortLimits says which endpoints' calls would be cut by our own limit although nothing is wrong with them: cut
// answers are paid for. Where the longest output is not known there is nothing to say.
func (t *table) warnOfShortLimits(logger *slog.Logger) {
	warned := make(map[string]bool)
	for _, name := range t.names {
		for _, route := range t.routes[name] {
			l := route.Limits
			needed := l.FirstByte + time.Duration(l.MaxOutputTokens)*time.Second/SlowRate
			if warned[route.Endpoint] || l.MaxOutputTokens == 0 || l.Total >= needed {
				continue
			}
			warned[route.Endpoint] = true
			logger.Warn("the total limit cuts the longest answers of a slow model", "endpoint", route.Endpoint,
				"total", l.Total, "needed", needed, "first_byte", l.FirstByte, "max_output_tokens", l.MaxOutputTokens,
				"tokens_per_second", SlowRate)
		}
	}
}

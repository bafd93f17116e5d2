package instrument_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/internal/instrument"
)

var update = flag.Bool("update", false, "write docs/metrics.md anew")

const (
	referencePath = "../../docs/metrics.md"
	// mark is behind what people write; below it all is made.
	mark = "<!-- From here on: go test ./internal/instrument -run Reference -update -->\n"
)

// scraped is a metric's name as a scraper of Prometheus reads it, and what belongs to it.
func scraped(t *testing.T, m instrument.Metric) string {
	var kind otlptranslator.MetricType = otlptranslator.MetricTypeMonotonicCounter
	switch m.Kind {
	case instrument.Gauge:
		kind = otlptranslator.MetricTypeGauge
	case instrument.Histogram:
		kind = otlptranslator.MetricTypeHistogram
	}
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	name, err := namer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: kind})
	require.NoError(t, err)
	return name
}

func reference(t *testing.T) string {
	var b strings.Builder
	for _, m := range instrument.Catalog() {
		fmt.Fprintf(&b, "\n### `%s`\n\n%s\n\nScraped as `%s`; %s, unit `%s`.\n", m.Name, m.About, scraped(t, m), m.Kind, m.Unit)
		if len(m.Labels) > 0 {
			b.WriteString("\n| label | values |\n|---|---|\n")
			for _, l := range m.Labels {
				fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(l.Name, ".", "_"), l.Values)
			}
		}
	}
	return b.String()
}

func TestTheReferenceIsTheCatalogs(t *testing.T) {
	stored, err := os.ReadFile(referencePath)
	require.NoError(t, err)
	head, made, found := strings.Cut(string(stored), mark)
	require.True(t, found, "docs/metrics.md has lost its mark")
	want := reference(t)
	if *update {
		require.NoError(t, os.WriteFile(referencePath, []byte(head+mark+want), 0o644))
		return
	}
	require.Equal(t, want, made, "run: go test ./internal/instrument -run Reference -update")
}

func TestEachMetricHasOneNameAndSaysWhatItMeans(t *testing.T) {
	names := map[string]string{}
	for _, m := range instrument.Catalog() {
		name := scraped(t, m)
		require.Empty(t, names[name], "%s and %s are scraped under one name", m.Name, names[name])
		names[name] = m.Name
		require.NotEmpty(t, m.Unit, m.Name)
		require.True(t, strings.HasSuffix(m.About, "."), m.Name)
		require.Equal(t, m.Kind == instrument.Histogram, len(m.Buckets) > 0, m.Name)
		for _, l := range m.Labels {
			for _, word := range []string{"tenant", "subject", "conversation", "turn_id", "reply_id", "key"} {
				require.NotContains(t, l.Name, word, m.Name)
			}
		}
	}
}

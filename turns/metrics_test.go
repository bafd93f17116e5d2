package turns

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"
)

// uncounted are metrics that nobody reads.
func uncounted(t *testing.T) *Metrics {
	m, err := NewMetrics(noop.Meter{})
	require.NoError(t, err)
	return m
}

func TestTheSizeOfARequestIsThatOfItsTokensOrElseOfItsBytes(t *testing.T) {
	for size, input := range map[string]int64{"le_1k": 1024, "le_4k": 1025, "le_16k": 16384, "le_64k": 16385, "le_256k": 262144, "more": 262145} {
		require.Equal(t, size, SizeClass(input, 1), input)
	}
	require.Equal(t, "le_1k", SizeClass(0, 3584))
	require.Equal(t, "le_4k", SizeClass(0, 3585))
}

func TestWhatWasEstimatedIsNotReportedAsTheProvidersCount(t *testing.T) {
	said := &Usage{Input: 10, CacheRead: 4, Output: 3, Reasoning: 1}
	require.Nil(t, exactly(nil, Usage{Input: 9, Source: SourceEstimated}))
	require.Equal(t, said, exactly(said, Usage{Source: SourceReported}))
	require.Equal(t, &Usage{Input: 10, CacheRead: 4}, exactly(said, Usage{Source: SourceEstimated}), "of a stream that broke off, the output")
}

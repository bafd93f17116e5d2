package telemetry_test

import (
	"context"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/turnd/turnd/internal/telemetry"
	"github.com/turnd/turnd/turns"
)

func setup(t *testing.T) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{Version: "v1.2.3", InstanceID: "instance"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	return tel
}

func scrape(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.MetricsHandler.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, w.Code)
	return w.Body.String()
}

func TestTheCountersOfTheDomainAreMadeWithoutComplaint(t *testing.T) {
	_, err := turns.NewMetrics(setup(t).Meter)
	require.NoError(t, err)
}

// A scraper sees a counter grow only where it has seen it before, so an alert on the first step needs the series before it.
func TestWhatAlertsRestOnIsShownBeforeItHappens(t *testing.T) {
	tel := setup(t)
	_, err := turns.NewMetrics(tel.Meter)
	require.NoError(t, err)
	lines := strings.Split(scrape(t, tel), "\n")
	for _, want := range []string{
		`turnd_endings_lost_total 0`, `turnd_sweeps_total{result="abandoned"} 0`, `turnd_sweeps_total{result="failed"} 0`,
		`turnd_lease_renewals_total{result="late"} 0`, `turnd_lease_renewals_total{result="lost"} 0`,
		`turnd_duplicates_tokens_total{layer="client"} 0`, `turnd_telemetry_dropped_total{signal="spans"} 0`,
	} {
		require.Contains(t, lines, want)
	}
}

// The six counters as the domain makes them; what matters here is the name and the labels that come out.
func TestScrapersReadTheNamesThatDashboardsAreWrittenAgainst(t *testing.T) {
	tel := setup(t)
	for _, c := range []struct {
		name, unit string
		labels     []string
		want       string
	}{
		{"turnd.submissions", "{delivery}", []string{"result"}, `turnd_submissions_total{result="x"} 3`},
		{"turnd.duplicates", "{delivery}", []string{"layer"}, `turnd_duplicates_total{layer="x"} 3`},
		{
			"turnd.provider.calls", "{call}",
			[]string{"try", "class", "provider", "model"},
			`turnd_provider_calls_total{class="x",model="x",provider="x",try="x"} 3`,
		},
		{
			"turnd.provider.tokens", "{token}",
			[]string{"try", "direction", "source", "provider", "model"},
			`turnd_provider_tokens_total{direction="x",model="x",provider="x",source="x",try="x"} 3`,
		},
		{"turnd.tokens.wasted", "{token}", []string{"cause"}, `turnd_tokens_wasted_total{cause="x"} 3`},
		{"turnd.replies", "{reply}", []string{"status", "reason"}, `turnd_replies_total{reason="x",status="x"} 3`},
	} {
		counter, err := tel.Meter.Int64Counter(c.name, metric.WithUnit(c.unit))
		require.NoError(t, err)
		var attrs []attribute.KeyValue
		for _, l := range c.labels {
			attrs = append(attrs, attribute.String(l, "x"))
		}
		counter.Add(t.Context(), 3, metric.WithAttributes(attrs...))
		require.Contains(t, strings.Split(scrape(t, tel), "\n"), c.want)
	}
}

func TestAGaugeIsReadAtEachScrape(t *testing.T) {
	tel := setup(t)
	now := int64(4)
	require.NoError(t, tel.Gauge("turnd.in_flight", "{reply}", "Replies that run here.", func() int64 { return now }))
	require.Contains(t, scrape(t, tel), "\nturnd_in_flight 4\n")
	now = 9
	require.Contains(t, scrape(t, tel), "\nturnd_in_flight 9\n")
}

func TestTheProcessItselfIsMeasured(t *testing.T) {
	text := scrape(t, setup(t))
	require.Contains(t, text, "\ngo_goroutines ")
	require.Contains(t, text, "\ngo_memstats_heap_alloc_bytes ")
}

func TestTheResourceIsShownOnceAndTheEnvironmentMayReplaceIt(t *testing.T) {
	text := scrape(t, setup(t))
	require.Contains(t, text, `service_name="turnd"`)
	require.Contains(t, text, `service_version="v1.2.3"`)
	require.Contains(t, text, `service_instance_id="instance"`)

	t.Setenv("OTEL_SERVICE_NAME", "chat-turns")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	text = scrape(t, setup(t))
	require.Contains(t, text, `service_name="chat-turns"`)
	require.Contains(t, text, `deployment_environment_name="test"`)
	require.NotContains(t, text, "otel_scope", "no series says which library made it")
}

func TestAResourceThatCannotBeReadIsAnError(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "no-equals-sign")
	_, err := telemetry.Setup(t.Context(), telemetry.Config{})
	require.ErrorContains(t, err, "OTEL_RESOURCE_ATTRIBUTES")
}

func TestSeriesOfOneInstrumentAreBounded(t *testing.T) {
	tel := setup(t)
	counter, err := tel.Meter.Int64Counter("turnd.test")
	require.NoError(t, err)
	for i := range 5000 {
		counter.Add(t.Context(), 1, metric.WithAttributes(attribute.String("n", strconv.Itoa(i))))
	}
	text := scrape(t, tel)
	require.LessOrEqual(t, strings.Count(text, "turnd_test_total{"), 2000)
	require.Contains(t, text, `turnd_test_total{otel_metric_overflow="true"}`)
}

func TestNothingIsCountedAfterTheEnd(t *testing.T) {
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{})
	require.NoError(t, err)
	require.NoError(t, tel.Shutdown(context.Background()))
	require.Error(t, tel.Shutdown(context.Background()), "a second end is a mistake of the caller")
}

package telemetry_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnd/turnd/internal/instrument"
	"github.com/turnd/turnd/internal/telemetry"
	"github.com/turnd/turnd/internal/telemetry/oteltest"
)

// tracing is telemetry that sends all traces to where the variables say. Its end may take no longer than a process has.
func tracing(t *testing.T, logs *bytes.Buffer) *telemetry.Telemetry {
	t.Helper()
	env, err := telemetry.ReadEnvironment(os.Getenv)
	require.NoError(t, err)
	require.True(t, env.Traces, "an endpoint is reason enough")
	all := 1.0
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{InstanceID: "one", Environment: env, Traces: true, Ratio: &all,
		Logger: slog.New(telemetry.Logs(slog.NewTextHandler(logs, nil)))})
	require.NoError(t, err)
	t.Cleanup(func() {
		begun := time.Now()
		require.NoError(t, tel.Shutdown(context.Background()))
		require.Less(t, time.Since(begun), 10*time.Second)
	})
	return tel
}

// dropped is what a scraper reads of the spans that were dropped.
func dropped(t *testing.T, tel *telemetry.Telemetry) string {
	for line := range strings.Lines(scrape(t, tel)) {
		if value, ok := strings.CutPrefix(line, `turnd_telemetry_dropped_total{signal="spans"} `); ok {
			return strings.TrimSpace(value)
		}
	}
	return "none"
}

func TestACollectorGetsTheSpans(t *testing.T) {
	sink := oteltest.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20planted")
	tel := tracing(t, new(bytes.Buffer))
	ctx, parent := tel.Tracer.Start(t.Context(), "parent")
	_, child := tel.Tracer.Start(ctx, "child")
	child.End()
	parent.End()
	require.Eventually(t, func() bool { return len(sink.Spans()) == 2 }, 20*time.Second, time.Millisecond)
	require.Equal(t, sink.Named("parent")[0].ID, sink.Named("child")[0].Parent)
	require.Equal(t, "one", sink.Named("child")[0].Process)
	require.Equal(t, []string{"Bearer planted"}, sink.Headers().Get("authorization"))
	require.Equal(t, "0", dropped(t, tel))
}

func TestSpansThatACollectorRefusesAreCountedAndNothingOfItIsLogged(t *testing.T) {
	sink := oteltest.Start(t)
	sink.Refuse(true)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20planted")
	var logs bytes.Buffer
	tel := tracing(t, &logs)
	for range 3 {
		asked := sink.Asked()
		_, span := tel.Tracer.Start(t.Context(), "lost")
		span.End()
		require.Eventually(t, func() bool { return sink.Asked() > asked }, 20*time.Second, time.Millisecond)
	}
	require.Eventually(t, func() bool { return dropped(t, tel) == "3" }, 20*time.Second, time.Millisecond)
	require.Equal(t, 1, strings.Count(logs.String(), "\n"), "%s", &logs)
	require.Contains(t, logs.String(), "gRPC status InvalidArgument")
	require.NotContains(t, logs.String(), "planted")
}

func TestNothingWaitsForACollectorThatNeverAnswersAndMemoryIsBounded(t *testing.T) {
	sink := oteltest.Start(t)
	sink.Hang()
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "16")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
	tel := tracing(t, new(bytes.Buffer))
	_, first := tel.Tracer.Start(t.Context(), "first")
	first.End()
	require.Eventually(t, func() bool { return sink.Asked() == 1 }, 20*time.Second, time.Millisecond)
	for range 1000 { // while the first is under way, which is for 10 s
		_, span := tel.Tracer.Start(t.Context(), "more")
		span.End()
	}
	require.Equal(t, "984", dropped(t, tel), "16 wait, and no more")
}

func TestExemplarsLeadFromAFigureToItsTrace(t *testing.T) {
	oteltest.Start(t)
	tel := tracing(t, new(bytes.Buffer))
	maker := instrument.NewMaker(tel.Meter)
	duplicates, times := maker.Counter(instrument.Duplicates), maker.Histogram(instrument.ClaimTime)
	require.NoError(t, maker.Err())
	ctx, span := tel.Tracer.Start(t.Context(), "kept")
	defer span.End()
	duplicates.Add(ctx, 1)
	times.Record(ctx, .003)
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	tel.MetricsHandler.ServeHTTP(w, r)
	require.Contains(t, w.Header().Get("Content-Type"), "openmetrics")
	id := `trace_id="` + span.SpanContext().TraceID().String() + `"`
	for _, metric := range []string{"turnd_duplicates_total", "turnd_claim_duration_seconds_bucket"} {
		found := false
		for line := range strings.Lines(w.Body.String()) {
			found = found || strings.HasPrefix(line, metric) && strings.Contains(line, "# {") && strings.Contains(line, id)
		}
		require.True(t, found, "%s\n%s", metric, w.Body)
	}
}

func TestTracesAreKeptByTheParentTheRatioAndWhatTheyGoOnWith(t *testing.T) {
	oteltest.Start(t)
	env, err := telemetry.ReadEnvironment(os.Getenv)
	require.NoError(t, err)
	none := 0.0
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{Environment: env, Traces: true, Ratio: &none})
	require.NoError(t, err)
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	kept := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled, Remote: true})
	_, alone := tel.Tracer.Start(t.Context(), "alone")
	require.False(t, alone.IsRecording())
	_, below := tel.Tracer.Start(trace.ContextWithRemoteSpanContext(t.Context(), kept), "below")
	require.True(t, below.IsRecording())
	_, linked := tel.Tracer.Start(t.Context(), "linked", trace.WithLinks(trace.Link{SpanContext: kept}))
	require.True(t, linked.IsRecording())
	require.NotEqual(t, kept.TraceID(), linked.SpanContext().TraceID())
}

func TestLinesOfATraceNameIt(t *testing.T) {
	for _, json := range []bool{true, false} {
		var out bytes.Buffer
		var h slog.Handler = slog.NewTextHandler(&out, nil)
		if json {
			h = slog.NewJSONHandler(&out, nil)
		}
		log := slog.New(telemetry.Logs(h)).With("turn_id", "t")
		sc := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{0xab}, SpanID: trace.SpanID{0xcd}})
		log.InfoContext(trace.ContextWithSpanContext(t.Context(), sc), "inside")
		require.Contains(t, out.String(), sc.TraceID().String())
		require.Contains(t, out.String(), sc.SpanID().String())
		out.Reset()
		log.InfoContext(t.Context(), "outside")
		require.NotContains(t, out.String(), "trace_id")
	}
}

func TestAVariableThatCannotBeReadIsNamedWithoutItsValue(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_SDK_DISABLED": "planted", "OTEL_TRACES_EXPORTER": "planted", "OTEL_METRICS_EXPORTER": "otlp,planted",
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://user:planted@h", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "planted:4317",
		"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_HEADERS": "planted", "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "a=%zzplanted",
		"OTEL_EXPORTER_OTLP_TIMEOUT": "10s", "OTEL_EXPORTER_OTLP_COMPRESSION": "zstd", "OTEL_EXPORTER_OTLP_INSECURE": "yes",
		"OTEL_EXPORTER_OTLP_CERTIFICATE": "/planted", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "/planted",
		"OTEL_TRACES_SAMPLER": "planted", "OTEL_BSP_MAX_QUEUE_SIZE": "0", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "-1",
		"OTEL_BSP_SCHEDULE_DELAY": "planted", "OTEL_BSP_EXPORT_TIMEOUT": "0", "OTEL_METRIC_EXPORT_INTERVAL": "planted",
		"OTEL_PROPAGATORS": "planted",
	} {
		_, err := telemetry.ReadEnvironment(func(asked string) string {
			if asked == name {
				return value
			}
			return ""
		})
		require.ErrorContains(t, err, name+": ")
		require.NotContains(t, err.Error(), "planted")
		require.NotContains(t, err.Error(), "\n")
	}
	ratio := map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "1.5"}
	_, err := telemetry.ReadEnvironment(func(name string) string { return ratio[name] })
	require.EqualError(t, err, "OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1")
}

func TestADisabledSDKMeasuresAndTracesNothing(t *testing.T) {
	sink := oteltest.Start(t)
	t.Setenv("OTEL_SDK_DISABLED", "true")
	tel := tracing(t, new(bytes.Buffer))
	counter, err := tel.Meter.Int64Counter("turnd.test")
	require.NoError(t, err)
	counter.Add(t.Context(), 1)
	_, span := tel.Tracer.Start(t.Context(), "nothing")
	require.False(t, span.IsRecording())
	span.End()
	text := scrape(t, tel)
	require.NotContains(t, text, "turnd_test")
	require.Contains(t, text, "\ngo_goroutines ")
	require.Zero(t, sink.Asked())
}

package casetest

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/turnd/turnd/internal/instrument"
	"github.com/turnd/turnd/internal/telemetry"
	"github.com/turnd/turnd/internal/telemetry/oteltest"
	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/postgres"
)

// traced has the workers from now on, which are one process, send all their spans.
func (w *world) traced(process string) {
	w.t.Helper()
	env, err := telemetry.ReadEnvironment(os.Getenv)
	require.NoError(w.t, err)
	all := 1.0
	w.tel, err = telemetry.Setup(w.ctx, telemetry.Config{InstanceID: process, Environment: env, Traces: true, Ratio: &all})
	require.NoError(w.t, err)
	w.t.Cleanup(func(tel *telemetry.Telemetry) func() {
		return func() { require.NoError(w.t, tel.Shutdown(context.Background())) }
	}(w.tel))
}

// got waits for a span that a process sent.
func (w *world) got(sink *oteltest.Sink, process, name string, is func(oteltest.Span) bool) (found oteltest.Span) {
	w.t.Helper()
	w.eventually(func() bool {
		for _, span := range sink.Named(name) {
			if span.Process == process && is(span) {
				found = span
				return true
			}
		}
		return false
	})
	return found
}

func whichever(oteltest.Span) bool { return true }

const callersTrace = "0af7651916cd43dd8448eb211c80319c"

// A turn is claimed on one worker, which dies, goes on on a second and is followed, replayed and stopped on a third.
func TestATurnIsTracedAcrossWorkers(t *testing.T) {
	sink := oteltest.Start(t)
	w := postgresWorld(t)
	w.short()
	w.enforcing(gate("", "mid", 64, 20))
	w.traced("one")
	heard := w.overhear()
	dying, die := w.cutOff()
	w.traced("two")
	w.serve()
	w.traced("three")
	w.settings.Sweep = time.Hour // it takes nothing over
	third := w.serve()

	in, plainly := askOf("anthropic"), w.ctx
	w.ctx = metadata.AppendToOutgoingContext(plainly, "traceparent", "00-"+callersTrace+"-b7ad6b7169203331-01")
	seen := dying.turn(in, nil).at(1 + 19*16)
	w.ctx = plainly
	claim := w.got(sink, "one", instrument.SpanClaim, whichever)
	require.Equal(t, callersTrace, claim.TraceID, "the caller's trace goes on")
	submit := w.got(sink, "one", instrument.SpanSubmit, whichever)
	require.Equal(t, submit.ID, claim.Parent)
	w.stands(map[string]int{`SELECT count(*) FROM turns WHERE traceparent = '00-` + claim.TraceID + `-` + claim.ID + `-01'`: 1})

	die()
	w.eventually(func() bool { return w.number(qEpochTwo) == 1 })
	takeover := w.got(sink, "two", instrument.SpanTakeover, whichever)
	require.Empty(t, takeover.Parent)
	require.NotEqual(t, claim.TraceID, takeover.TraceID, "a trace of its own")
	require.Equal(t, []string{claim.ID}, takeover.Links)
	w.stands(map[string]int{`SELECT count(*) FROM turns WHERE traceparent = '00-` + takeover.TraceID + `-` + takeover.ID + `-01'`: 1})

	far := third.follow(in.GetConversationId(), seen.reply, 0)
	far.at(1 + 19*16)
	require.NoError(t, w.provider.OpenGate("mid"))
	far.completes()
	reply := w.got(sink, "two", instrument.SpanReply, whichever)
	require.Equal(t, takeover.ID, reply.Parent)
	call := w.got(sink, "two", "chat demo", whichever)
	require.Equal(t, reply.ID, call.Parent)
	require.Equal(t, "ok", call.Attrs[instrument.Class])
	require.Equal(t, "retry", call.Attrs[instrument.Try])
	ending := w.got(sink, "two", instrument.SpanComplete, whichever)
	require.Equal(t, reply.ID, ending.Parent)
	require.GreaterOrEqual(t, call.Over, call.Begun)
	w.got(sink, "two", instrument.SpanCheckpoint, func(s oteltest.Span) bool { return len(s.Links) == 1 && s.Links[0] == reply.ID })

	follow := w.got(sink, "three", "turns.v1.TurnService/FollowReply", whichever)
	require.Equal(t, []string{takeover.ID}, follow.Links, "a follower elsewhere")
	third.turn(in, nil).completes()
	again := w.got(sink, "three", instrument.SpanSubmit, whichever)
	require.Equal(t, "replayed", again.Attrs[instrument.Result])
	require.Equal(t, []string{takeover.ID}, again.Links, "a replay")
	third.cancelTurn(in)
	require.Equal(t, []string{takeover.ID}, w.got(sink, "three", instrument.SpanCancel, whichever).Links)
	_, err := third.regenerate(in.GetConversationId(), seen.reply, 1)
	require.NoError(t, err)
	require.Contains(t, w.got(sink, "three", instrument.SpanRegenerate, whichever).Links, takeover.ID)
	asked := strings.ToLower(heard.next())
	require.Contains(t, asked, "content-type: application/json")
	require.NotContains(t, asked, "traceparent", "vendors are not told")
}

func TestATraceOfTheWebGoesOn(t *testing.T) {
	sink := oteltest.Start(t)
	w := sqliteWorld(t)
	w.traced("one")
	s := w.serve()
	in, err := protojson.Marshal(&turnsv1.SubmitTurnRequest{Input: ask(newID(), newID(), "hi")})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, "http://"+s.harness.Addr+"/turns.v1.TurnService/SubmitTurn", bytes.NewReader(in))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("traceparent", "00-"+callersTrace+"-b7ad6b7169203331-01")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	request := w.got(sink, "one", "turns.v1.TurnService/SubmitTurn", whichever)
	require.Equal(t, callersTrace, request.TraceID)
	require.Equal(t, "b7ad6b7169203331", request.Parent)
	require.Equal(t, request.ID, w.got(sink, "one", instrument.SpanSubmit, whichever).Parent)
	w.got(sink, "one", instrument.SpanReply, func(s oteltest.Span) bool { return s.TraceID == callersTrace })
}

// TestNoTimeIsNegativeWhereTheDatabasesClockIsAnother plays turns beside a clock that is hours off, either way.
func TestNoTimeIsNegativeWhereTheDatabasesClockIsAnother(t *testing.T) {
	for _, by := range []time.Duration{-5 * time.Hour, 5 * time.Hour} {
		sink := oteltest.Start(t)
		w := sqliteWorld(t)
		w.traced("one")
		s := w.serveOn(shifted{w.store(), by})
		w.script(failing(1, scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 529, Error: "overloaded_error"}), plain(16))
		in := ask(newID(), newID(), "hi")
		s.turn(in, nil).completes()
		s.turn(in, nil).completes()
		w.got(sink, "one", instrument.SpanComplete, whichever)
		for _, span := range sink.Spans() {
			require.GreaterOrEqual(t, span.Over, span.Begun, span.Name)
			require.Less(t, span.Over-span.Begun, uint64(time.Hour), span.Name)
		}
		var all metricdata.ResourceMetrics
		require.NoError(t, w.counters.Collect(w.ctx, &all))
		times := 0
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				histogram, ok := m.Data.(metricdata.Histogram[float64])
				if !ok || m.Unit != "s" {
					continue
				}
				for _, point := range histogram.DataPoints {
					times++
					least, _ := point.Min.Value()
					most, _ := point.Max.Value()
					require.GreaterOrEqual(t, least, 0.0, m.Name)
					require.Less(t, most, 3600.0, m.Name)
				}
			}
		}
		t.Log("histograms looked at:", times)
	}
}

// What users, operators and vendors wrote, are called or know is planted wherever it can be.
func TestNoSpanHoldsWhatSomebodyWroteOrIsCalled(t *testing.T) {
	sink := oteltest.Start(t)
	w := postgresWorld(t)
	w.traced("one")
	w.key = "planted-key"
	w.store = func() turns.Store {
		s, err := postgres.Open(w.ctx, postgres.Config{URL: w.url, MaxConns: 8, Tracer: w.tel.Statements()})
		require.NoError(t, err)
		t.Cleanup(s.Close)
		require.NoError(t, s.Pools(w.tel.WatchPool))
		return s
	}
	s := w.serve()
	w.script(failing(1, scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 400, Error: "planted_error",
		Headers: map[string]string{"request-id": "planted-request", "x-request-id": "planted-request"}}), plain(16))
	w.ctx = metadata.AppendToOutgoingContext(w.ctx, "x-turnd-tenant", "planted-tenant", "x-turnd-subject", "planted-subject",
		"authorization", "Bearer planted-token")
	conversation := newID()
	_, err := s.convs.CreateConversation(w.ctx, &turnsv1.CreateConversationRequest{Conversation: &turnsv1.Conversation{
		ConversationId: conversation, Title: "planted title", Labels: map[string]string{"planted": "planted"}}})
	require.NoError(t, err)
	in := ask(conversation, newID(), "planted prompt")
	in.Options = &turnsv1.GenerationOptions{System: "planted system", Model: "anthropic"}
	s.turn(in, nil).end() // the vendor refuses it
	next := ask(conversation, newID(), "planted again")
	said := s.turn(next, nil).completes().text
	wrong := ask(conversation, newID(), "planted")
	wrong.Options = &turnsv1.GenerationOptions{Model: "planted-model"}
	_, err = s.submit(wrong)
	require.Error(t, err)
	_, err = s.turns.Turn(metadata.AppendToOutgoingContext(w.ctx, "x-turnd-tenant", "planted\x00"), &turnsv1.TurnRequest{Input: in})
	_ = err
	require.Error(t, s.harness.Conn.Invoke(w.ctx, "/turns.v1.TurnService/planted", &turnsv1.GetTurnRequest{}, &turnsv1.GetTurnResponse{}))
	w.got(sink, "one", instrument.SpanComplete, whichever)
	w.got(sink, "one", instrument.SpanAbandon, whichever)
	w.got(sink, "one", "INSERT conversations", whichever)
	w.got(sink, "one", "SELECT", whichever)
	w.got(sink, "one", instrument.SpanSubmit, func(s oteltest.Span) bool { return s.Attrs[instrument.ErrorType] != "" })
	for _, span := range sink.Spans() {
		require.NotContains(t, span.Text, "planted")
		require.NotContains(t, span.Text, said[:24])
	}
	scraped := httptest.NewRecorder()
	w.tel.MetricsHandler.ServeHTTP(scraped, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	figures := scraped.Body.String()
	require.NotContains(t, figures, "planted")
	for _, name := range []string{`rpc_method="turns.v1.TurnService/Turn"`, "rpc_server_call_duration_seconds_count{",
		"db_client_operation_duration_seconds_count{", `pgxpool_max_connections{db_client_connection_pool_name="lease"`} {
		require.Contains(t, figures, name)
	}
}

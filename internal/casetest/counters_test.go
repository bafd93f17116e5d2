package casetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// tallies are sums by metric and labels.
type tallies map[string]int64

func (t tallies) add(n int64, metric string, labels ...string) {
	slices.Sort(labels)
	if n != 0 {
		t[metric+"{"+strings.Join(labels, " ")+"}"] += n
	}
}

// ledgered are the tallies that the ledger's closed rows come to.
func (w *world) ledgered() tallies {
	rows, err := w.db.QueryContext(w.ctx, `SELECT first, layer, provider, model, class, token_source, waste_cause, request_bytes, input_tokens,
		output_tokens, cache_read_tokens, cache_write_tokens, wasted_tokens, cost_micros FROM provider_calls WHERE class <> ''`)
	require.NoError(w.t, err)
	defer rows.Close()
	t := tallies{}
	for rows.Next() {
		var first bool
		var layer, provider, model, class, source, cause string
		var bytes int
		var in, out, read, write, wasted, cost int64
		require.NoError(w.t, rows.Scan(&first, &layer, &provider, &model, &class, &source, &cause, &bytes, &in, &out, &read, &write, &wasted, &cost))
		try := "try=retry"
		if first {
			try = "try=first"
		}
		whose := func(more ...string) []string {
			return append([]string{"provider=" + provider, "model=" + model}, more...)
		}
		t.add(1, "turnd.provider.calls", whose(try, "class="+class)...)
		for direction, n := range map[string]int64{"input": in, "output": out, "cache_read": read, "cache_write": write} {
			t.add(n, "turnd.provider.tokens", whose(try, "source="+source, "direction="+direction)...)
		}
		t.add(cost, "turnd.provider.cost", whose(try)...)
		size := "size=" + turns.SizeClass(in, bytes)
		t.add(1, "turnd.requests", whose("layer="+layer, size)...)
		t.add(in+out, "turnd.requests.tokens", whose("layer="+layer, size)...)
		t.add(wasted, "turnd.tokens.wasted", "cause="+cause)
		if wasted > 0 {
			t.add(cost, "turnd.cost.wasted", "cause="+cause)
		}
	}
	require.NoError(w.t, rows.Err())
	return t
}

// streamed are the same tallies by the counters of all workers.
func (w *world) streamed() tallies {
	var all metricdata.ResourceMetrics
	require.NoError(w.t, w.counters.Collect(w.ctx, &all))
	t := tallies{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok || !slices.Contains([]string{"turnd.provider.calls", "turnd.provider.tokens", "turnd.provider.cost", "turnd.requests",
				"turnd.requests.tokens", "turnd.tokens.wasted", "turnd.cost.wasted"}, m.Name) {
				continue
			}
			for _, p := range sum.DataPoints {
				var labels []string
				for _, l := range p.Attributes.ToSlice() {
					labels = append(labels, fmt.Sprintf("%s=%s", l.Key, l.Value.AsString()))
				}
				t.add(p.Value, m.Name, labels...)
			}
		}
	}
	return t
}

// faults are things that go wrong with a turn, or happen to it, by name.
func (s *worker) faults() map[string]func() {
	overloaded := scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 529, Error: "overloaded_error"}
	again := func(source turnsv1.DeliverySource) {
		s.script(failing(1, scripted.Step{At: scripted.AfterDelta(20), Do: scripted.DoReset}), plain(16))
		in := ask(newID(), newID(), "hi")
		s.turn(in, nil).end()
		in.Source = source
		require.Equal(s.t, retried, s.turn(in, nil).completes().result)
	}
	return map[string]func(){
		"plain": func() { s.script(plain(16)); s.turn(s.on("openai", newID(), textBlock("hi")), nil).completes() },
		"overloaded": func() {
			s.script(failing(2, overloaded), plain(16))
			s.turn(ask(newID(), newID(), "hi"), nil).completes()
		},
		"client":     func() { again(turnsv1.DeliverySource_DELIVERY_SOURCE_CLIENT_RETRY) },
		"redelivery": func() { again(turnsv1.DeliverySource_DELIVERY_SOURCE_REDELIVERY) },
		"policy": func() {
			s.script(cutAt(20), plain(16))
			in := ask(newID(), newID(), "hi")
			in.OnAmbiguous = retryPolicy
			s.turn(in, nil).completes()
		},
		"held": func() {
			in, r := s.hold()
			_, err := s.release(r, r.GetEpoch())
			require.NoError(s.t, err)
			s.turn(in, nil).completes()
		},
		"cancel": func() {
			s.script(gate("", "cancel", 64, 20))
			in := ask(newID(), newID(), "hi")
			running := s.turn(in, nil)
			running.at(100)
			s.cancelTurn(in)
			running.end()
		},
		"delete": func() {
			s.script(gate("", "delete", 64, 20))
			in := ask(newID(), newID(), "hi")
			running := s.turn(in, nil)
			running.at(100)
			s.deleteConversation(in.GetConversationId())
			running.end()
		},
	}
}

// suffers plays a fault, and enough beside it that no breaker opens.
func (s *worker) suffers(fault func()) {
	fault()
	s.script(plain(4))
	for range 3 {
		s.turn(ask(newID(), newID(), "meanwhile"), nil).completes()
	}
}

func TestTheCountersAreTheLedgersStreamToTheToken(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.prices = turns.Prices{Input: 3, Output: 15}
		other := w.serve()
		faults := other.faults()
		order := slices.Sorted(maps.Keys(faults))
		order = append(order, order...)
		random := rand.New(rand.NewPCG(9, 69))
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, name := range order {
			t.Log(name)
			other.suffers(faults[name])
		}
		dying, die := w.cutOff()
		w.script(throttled())
		_, err := dying.submit(ask(newID(), newID(), "to be taken over"))
		require.NoError(t, err)
		w.eventually(func() bool { return w.number(`SELECT count(*) FROM provider_calls WHERE class = 'throttled'`) == 1 })
		w.script(gate("", "swept", 64, 20))
		swept := dying.turn(ask(newID(), newID(), "to be swept"), nil)
		swept.at(100)
		w.script(plain(16))
		die()
		w.eventually(func() bool { return w.number(qInFlight) == 0 && w.number(qOpen) == 0 })
		w.eventually(func() bool { return maps.Equal(w.ledgered(), w.streamed()) || t.Failed() })
		require.Equal(t, w.ledgered(), w.streamed())
		for _, layer := range turns.Layers() {
			require.Positive(t, w.counted("turnd.requests", "layer", string(layer)), layer)
		}
		for _, cause := range []string{"cancelled", "deleted", "held_released", "lease_expired", "ambiguous"} {
			require.Positive(t, w.counted("turnd.tokens.wasted", "cause", cause), cause)
		}
		require.EqualValues(t, 1, w.counted("turnd.sweeps", "result", "taken_over"))
		require.EqualValues(t, 1, w.counted("turnd.sweeps", "result", "abandoned"))
		w.sumsAgree(other)
	})
}

// sumsAgree demands that the sums that people ask for are those of the rows.
func (w *world) sumsAgree(s *worker) {
	w.t.Helper()
	sums, err := s.operator().SumProviderCalls(w.ctx, &turnsv1.SumProviderCallsRequest{})
	require.NoError(w.t, err)
	all := w.ledgered()
	total := func(metric, label string) (n int64) {
		for name, v := range all {
			if strings.HasPrefix(name, metric+"{") && strings.Contains(name, label) {
				n += v
			}
		}
		return n
	}
	require.Equal(w.t, total("turnd.requests", "layer=first"), sums.GetFirstCalls())
	require.Equal(w.t, total("turnd.requests", "")-sums.GetFirstCalls(), sums.GetRetryCalls())
	for layer, u := range sums.GetRetryUsageByLayer() {
		require.EqualValues(w.t, total("turnd.requests", "layer="+layer), u.GetProviderCalls(), layer)
		require.Equal(w.t, total("turnd.requests.tokens", "layer="+layer), u.GetInputTokens()+u.GetOutputTokens(), layer)
	}
	for cause, tokens := range sums.GetWastedTokens() {
		require.Equal(w.t, total("turnd.tokens.wasted", "cause="+cause+"}"), tokens, cause)
		require.Equal(w.t, total("turnd.cost.wasted", "cause="+cause+"}"), sums.GetWastedCostMicros()[cause], cause)
	}
}

func TestWhatRepeatedDeliveriesWouldHaveUsedIsCountedOnceTheirReplyIsOver(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s, other := w.serve(), w.serve()
		w.script(gate("", "mid", 64, 8))
		in := ask(newID(), newID(), "hi")
		first := s.turn(in, nil)
		first.at(1)
		left := s.turn(in, nil) // attached where the reply is made, and gone before its end
		left.at(1)
		left.cancel()
		left.end()
		in.Source = turnsv1.DeliverySource_DELIVERY_SOURCE_REDELIVERY
		elsewhere := other.turn(in, nil) // follows from another worker, to the end
		elsewhere.at(1)
		require.Zero(t, w.counted("turnd.duplicates.tokens", "layer", "client"))
		require.NoError(t, w.provider.OpenGate("mid"))
		used := first.completes().completed.GetUsage()
		elsewhere.completes()
		each := used.GetInputTokens() + used.GetOutputTokens()
		require.Positive(t, each)
		w.eventually(func() bool {
			return w.counted("turnd.duplicates.tokens", "layer", "client") == each && w.counted("turnd.duplicates.tokens", "layer", "redelivery") == each
		})
		require.Equal(t, replayed, s.turn(in, nil).completes().result)
		w.eventually(func() bool { return w.counted("turnd.duplicates.tokens", "layer", "redelivery") == 2*each })
		w.paid(1, 1)
	})
}

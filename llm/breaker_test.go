package llm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// answer is what a played provider does with a call.
type answer func(ctx context.Context, yield func(turns.Delta, error) bool)

func well(_ context.Context, yield func(turns.Delta, error) bool) {
	for _, d := range []turns.Delta{
		turns.Responded{HTTPStatus: 200},
		turns.BlockStarted{Kind: turns.KindText},
		turns.BlockDelta{Text: "yes"},
		turns.BlockEnded{},
		turns.Finished{StopReason: turns.StopEndTurn},
	} {
		if !yield(d, nil) {
			return
		}
	}
}

func fails(err turns.CallError) answer {
	return func(_ context.Context, yield func(turns.Delta, error) bool) { yield(nil, &err) }
}

var broken = fails(turns.CallError{Class: turns.ClassTransient, Phase: turns.PhaseHeaders, HTTPStatus: 503})

// played is a provider of all endpoints that answers the next call as next says.
type played struct {
	next  answer
	calls int
}

func (p *played) Build(route turns.Route, _ turns.Prompt) (turns.Request, error) {
	return turns.NewRequest(route, []byte("{}"), 1), nil
}

func (p *played) Generate(ctx context.Context, _ turns.Call) iter.Seq2[turns.Delta, error] {
	return func(yield func(turns.Delta, error) bool) {
		p.calls++
		p.next(ctx, yield)
	}
}

// later lets a bubble's clock go on.
func later(d time.Duration) { <-time.After(d) }

// stage is a router over a played provider.
type stage struct {
	*testing.T
	*llm.Router
	provider *played
	log      bytes.Buffer
	reader   *sdkmetric.ManualReader
}

func onStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, provider: &played{next: well}, reader: sdkmetric.NewManualReader()}
	adapters := []llm.Adapter{
		{Wire: llm.WireAnthropicMessages, Provider: "anthropic", Open: func(*wire.Client, llm.Endpoint) llm.Caller { return s.provider }},
		{Wire: llm.WireOpenAIChat, Provider: "openai", Open: func(*wire.Client, llm.Endpoint) llm.Caller { return s.provider }},
	}
	router, err := llm.New(two("http://127.0.0.1:1"), llm.Options{
		Adapters: adapters, Logger: slog.New(slog.NewTextHandler(&s.log, nil)),
		Meter: sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader)).Meter("test"),
	})
	require.NoError(t, err)
	s.Router = router
	t.Cleanup(router.Close)
	return s
}

// route is the first or second of the model.
func (s *stage) route(i int) turns.Route {
	s.Helper()
	routes, err := s.Routes("m")
	require.NoError(s, err)
	return routes[i]
}

func (s *stage) call(a answer) llmtest.Result {
	s.Helper()
	s.provider.next = a
	return llmtest.Collect(s, s.Generate(s.Context(), turns.Call{Request: turns.Request{Route: s.route(0)}}))
}

func (s *stage) calls(n int, a answer) {
	s.Helper()
	for range n {
		s.call(a)
	}
}

func (s *stage) ready(i int) (time.Duration, bool) { return s.Ready(s.route(i)) }

func (s *stage) requireReady(ok bool) {
	s.Helper()
	_, got := s.ready(0)
	require.Equal(s, ok, got, s.log.String())
}

// shown is what the gauge says of the first route.
func (s *stage) shown() int64 {
	s.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(s, s.reader.Collect(s.Context(), &all))
	require.Len(s, all.ScopeMetrics, 1)
	m := all.ScopeMetrics[0].Metrics[0]
	require.Equal(s, "turnd.breaker.state", m.Name)
	points := m.Data.(metricdata.Gauge[float64]).DataPoints
	require.Len(s, points, 2)
	for _, p := range points {
		if endpoint, _ := p.Attributes.Value("endpoint"); endpoint.AsString() == "one" {
			model, _ := p.Attributes.Value("model")
			require.Equal(s, "m-1", model.AsString())
			return int64(p.Value)
		}
	}
	s.Fatal("the gauge does not show the first route")
	return 0
}

func TestABreakerOpensWhenHalfOfEnoughCallsFailedWithinTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := onStage(t)
		s.calls(4, broken)
		s.requireReady(true) // four are too few
		s.call(well)
		wait, ok := s.ready(0)
		require.True(t, ok, "a good call opens nothing though most were bad: %s", wait)
	})
	synctest.Test(t, func(t *testing.T) {
		s := onStage(t)
		s.calls(3, well)
		s.calls(2, broken)
		s.requireReady(true) // two of five
		s.call(broken)
		wait, ok := s.ready(0)
		require.False(t, ok) // three of six
		require.Equal(t, 30*time.Second, wait)
		require.Contains(t, s.log.String(), `msg="breaker open" endpoint=one model=m-1 for=30s`)
		require.EqualValues(t, 2, s.shown())
		_, ok = s.ready(1)
		require.True(t, ok, "another model at another endpoint has a breaker of its own")
	})
	synctest.Test(t, func(t *testing.T) {
		s := onStage(t)
		s.calls(4, broken)
		later(31 * time.Second)
		s.calls(4, broken)
		s.requireReady(true) // those before are out of the window
		s.call(broken)
		s.requireReady(false)
	})
}

func TestNothingIsSentWhileABreakerIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := onStage(t)
		s.calls(5, broken)
		later(10 * time.Second)
		got := s.call(well)
		require.Equal(t, turns.ClassNotSent, got.Err.Class)
		require.Equal(t, turns.PhaseNone, got.Err.Phase)
		require.ErrorIs(t, got.Err, llm.ErrBreakerOpen)
		require.Equal(t, "breaker_open", got.Err.Code)
		require.True(t, got.Err.HasRetryAfter)
		require.Equal(t, 20*time.Second, got.Err.RetryAfter)
		require.Equal(t, 5, s.provider.calls)
	})
}

func TestOneTrialDecidesWhetherAHalfOpenBreakerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := onStage(t)
		s.calls(5, broken)
		later(30 * time.Second)
		s.requireReady(true)
		require.EqualValues(t, 1, s.shown())
		s.call(broken)
		s.requireReady(false)
		require.EqualValues(t, 2, s.shown())
		later(30 * time.Second)

		var second llmtest.Result
		s.call(func(ctx context.Context, yield func(turns.Delta, error) bool) {
			_, ok := s.ready(0)
			require.False(t, ok, "a trial is under way")
			second = llmtest.Collect(t, s.Generate(ctx, turns.Call{Request: turns.Request{Route: s.route(0)}}))
			well(ctx, yield)
		})
		require.ErrorIs(t, second.Err, llm.ErrBreakerOpen)
		s.requireReady(true)
		require.EqualValues(t, 0, s.shown())
		var states []string
		for line := range strings.Lines(s.log.String()) {
			for _, state := range []string{"breaker open", "breaker half-open", "breaker closed"} {
				if strings.Contains(line, fmt.Sprintf("%q endpoint=one model=m-1", state)) {
					states = append(states, strings.TrimPrefix(state, "breaker "))
				}
			}
		}
		require.Equal(t, []string{"open", "half-open", "open", "half-open", "closed"}, states)
		s.calls(3, broken)
		s.requireReady(true) // what was before it closed is forgotten; the trial itself is one of the four
	})
}

func TestATrialIsOverWithItsFirstContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := onStage(t)
		s.calls(5, broken)
		later(30 * time.Second)
		s.call(func(ctx context.Context, yield func(turns.Delta, error) bool) {
			_, ok := s.ready(0)
			require.False(t, ok)
			yield(turns.BlockStarted{Kind: turns.KindText}, nil)
			yield(turns.BlockDelta{Text: "a"}, nil)
			s.requireReady(true)
			yield(nil, &turns.CallError{Class: turns.ClassAmbiguous})
		})
		s.requireReady(true)
		s.calls(4, broken)
		s.requireReady(false) // the trial's end counted like any other
	})
}

func TestATrialWithoutVerdictLeavesTheNextOneToDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := onStage(t)
		s.calls(5, broken)
		later(30 * time.Second)
		s.call(fails(turns.CallError{Class: turns.ClassTerminal, HTTPStatus: 400}))
		s.requireReady(true)
		require.EqualValues(t, 1, s.shown())
		s.call(well)
		require.EqualValues(t, 0, s.shown())
	})
}

func TestACallOfAnOutageThatEndsLateDoesNotOpenTheBreakerAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := onStage(t)
		s.call(func(ctx context.Context, yield func(turns.Delta, error) bool) {
			s.calls(5, broken)
			later(30 * time.Second)
			s.call(well)
			s.calls(3, broken)
			broken(ctx, yield)
		})
		s.requireReady(true)
		s.call(broken)
		s.requireReady(false)
	})
}

func TestOnlyFailuresOfTheProviderCount(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		err  turns.CallError
		ctx  context.Context
		good bool
	}{
		"its own error":            {err: turns.CallError{Class: turns.ClassTransient, HTTPStatus: 500}},
		"an unknown outcome":       {err: turns.CallError{Class: turns.ClassAmbiguous, HTTPStatus: 408}},
		"a conflict":               {err: turns.CallError{Class: turns.ClassAmbiguous, HTTPStatus: 409}},
		"nobody there":             {err: turns.CallError{Class: turns.ClassNotSent, Cause: errors.New("refused")}},
		"too much":                 {err: turns.CallError{Class: turns.ClassThrottled, HTTPStatus: 429}},
		"too much, with a hint":    {err: turns.CallError{Class: turns.ClassThrottled, HTTPStatus: 429, HasRetryAfter: true}, good: true},
		"a bad request":            {err: turns.CallError{Class: turns.ClassTerminal, HTTPStatus: 400}, good: true},
		"spent":                    {err: turns.CallError{Class: turns.ClassTerminal, HTTPStatus: 429}, good: true},
		"work that runs elsewhere": {err: turns.CallError{Class: turns.ClassInFlightElsewhere, HTTPStatus: 409}, good: true},
		"work that is done":        {err: turns.CallError{Class: turns.ClassAlreadyDone, HTTPStatus: 409}, good: true},
		"stopped by us":            {err: turns.CallError{Class: turns.ClassCancelled}, good: true},
		"held back by us":          {err: turns.CallError{Class: turns.ClassNotSent, Cause: wire.ErrHeldBack}, good: true},
		"ended by the caller":      {err: turns.CallError{Class: turns.ClassAmbiguous, Timeout: true}, ctx: cancelled, good: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := onStage(t)
			ctx := s.Context()
			if tt.ctx != nil {
				ctx = tt.ctx
			}
			for range 6 {
				s.provider.next = fails(tt.err)
				llmtest.Collect(t, s.Generate(ctx, turns.Call{Request: turns.Request{Route: s.route(0)}}))
			}
			s.requireReady(tt.good)
		})
	}
}

func TestAConsumerThatStopsIsNoVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := onStage(t)
		s.calls(5, broken)
		later(30 * time.Second)
		s.provider.next = well
		for _, err := range s.Generate(t.Context(), turns.Call{Request: turns.Request{Route: s.route(0)}}) {
			require.NoError(t, err)
			break
		}
		require.EqualValues(t, 1, s.shown())
		s.requireReady(true)
	})
}

func TestABreakerStaysWithItsPlaceWhenModelsAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := onStage(t)
		s.calls(5, broken)
		same := two("http://127.0.0.1:1")
		same.Endpoints[0].Prices.Input = 7
		require.NoError(t, s.Replace(same))
		s.requireReady(false)
		require.NoError(t, s.Replace(two("http://127.0.0.1:2")))
		s.requireReady(true)
		require.EqualValues(t, 0, s.shown())
	})
}

package llmtest

import (
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// inMemory answers every request with one stream, without a network.
type inMemory string

// RoundTrip implements http.RoundTripper.
func (s inMemory) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"text/event-stream"}},
		Body:       io.NopCloser(strings.NewReader(string(s))),
	}, nil
}

// Fuzz checks that an adapter keeps the promises of a call whatever a server streams: it ends, in order, and never with
// an error that quotes the stream.
func Fuzz(f *testing.F, a llm.Adapter, seeds ...string) {
	v := Voices[a.Wire]
	seeds = append(seeds, v.Whole("a", `\ud83e`, `\udd80`), v.Open+v.Error("overloaded_error"), v.Unknown+v.Open+v.Close, v.Calls)
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		r := Collect(t, memoryCall(t, a, stream))
		if r.Err != nil {
			require.Contains(t, []turns.CallPhase{turns.PhaseHeaders, turns.PhaseBody}, r.Err.Phase)
			require.NotContains(t, []turns.CallClass{turns.ClassOK, turns.ClassNotSent, turns.ClassCancelled, ""}, r.Err.Class)
			RequireNoSecrets(t, r.Err)
		}
	})
}

func memoryCall(t testing.TB, a llm.Adapter, stream string) iter.Seq2[turns.Delta, error] {
	return openWith(wire.NewClient(wire.Options{Transport: inMemory(stream)}), a, "http://127.0.0.1:1", turns.Limits{}).call(t)
}

// Benchmark measures a stream of 500 deltas from its bytes to what the call yields.
func Benchmark(b *testing.B, a llm.Adapter) {
	const deltas = 500
	v := Voices[a.Wire]
	words := make([]string, deltas)
	for i := range words {
		words[i] = "sixteen bytes xx"
	}
	stream := v.Whole(words...)
	b.ReportAllocs()
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		n := 0
		for d, err := range memoryCall(b, a, stream) {
			require.NoError(b, err)
			if _, ok := d.(turns.BlockDelta); ok {
				n++
			}
		}
		if n != deltas {
			b.Fatalf("%d deltas", n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*deltas), "ns/event")
}

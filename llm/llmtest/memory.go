package llmtest

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// inMemory answers every request with one stream, without a network, read as read gives it.
type inMemory struct {
	stream string
	read   func(io.Reader) io.Reader
}

// RoundTrip implements http.RoundTripper.
func (s inMemory) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"text/event-stream"}},
		Body:       io.NopCloser(s.read(strings.NewReader(s.stream))),
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
		r := Collect(t, memoryCall(a, stream, atOnce).call(t))
		trickled := Collect(t, memoryCall(a, stream, iotest.OneByteReader).call(t))
		require.Empty(t, cmp.Diff(trickled.Blocks, r.Blocks), "what is said does not depend on what came together")
		require.Equal(t, trickled.Finished, r.Finished)
		require.Equal(t, trickled.Usage, r.Usage)
		require.Equal(t, trickled.Err == nil, r.Err == nil)
		if r.Err != nil {
			require.Contains(t, []turns.CallPhase{turns.PhaseHeaders, turns.PhaseBody}, r.Err.Phase)
			require.NotContains(t, []turns.CallClass{turns.ClassOK, turns.ClassNotSent, turns.ClassCancelled, ""}, r.Err.Class)
			RequireNoSecrets(t, r.Err)
		}
	})
}

func memoryCall(a llm.Adapter, stream string, read func(io.Reader) io.Reader) subject {
	return openWith(wire.NewClient(wire.Options{Transport: inMemory{stream, read}}), a, "http://127.0.0.1:1", turns.Limits{})
}

func atOnce(r io.Reader) io.Reader { return r }

// Benchmark measures a stream of 500 deltas from its bytes to what the call yields.
func Benchmark(b *testing.B, a llm.Adapter) {
	const deltas, word = 500, "sixteen bytes xx"
	v := Voices[a.Wire]
	words := make([]string, deltas)
	for i := range words {
		words[i] = word
	}
	stream := v.Whole(words...)
	b.ReportAllocs()
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		n := 0
		for d, err := range memoryCall(a, stream, atOnce).call(b) {
			require.NoError(b, err)
			if d, ok := d.(turns.BlockDelta); ok {
				n += len(d.Text)
			}
		}
		if n != deltas*len(word) {
			b.Fatalf("%d bytes", n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*deltas), "ns/event")
}

package llmtest

import (
	"os"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/turns"
)

// Replay lets a recorded stream trickle to an adapter and returns what the call yielded.
func Replay(t testing.TB, a llm.Adapter, file string) Result {
	t.Helper()
	recorded, err := os.ReadFile(file)
	require.NoError(t, err)
	return Trickle(t, a, string(recorded))
}

// Trickle gives an adapter a stream byte by byte and returns what the call yielded: no two events come together.
func Trickle(t testing.TB, a llm.Adapter, stream string) Result {
	t.Helper()
	return memoryCall(a, stream, iotest.OneByteReader).collect(t)
}

// Say serves a stream to an adapter over HTTP and returns what the call yielded, texts that go on joined: how they were cut
// depends on what came together.
func Say(t testing.TB, a llm.Adapter, stream string) Result {
	t.Helper()
	p := Play(t, func(x *Exchange) { x.Stream(stream) })
	r := open(t, a, p.URL(), turns.Limits{}).collect(t)
	r.Deltas = joined(r.Deltas)
	return r
}

func joined(deltas []turns.Delta) (out []turns.Delta) {
	for _, d := range deltas {
		if more, ok := d.(turns.BlockDelta); ok {
			if begun, ok := out[len(out)-1].(turns.BlockDelta); ok {
				out[len(out)-1] = turns.BlockDelta{Text: begun.Text + more.Text}
				continue
			}
		}
		out = append(out, d)
	}
	return out
}

// Refuse answers a call with a status and returns the call's error.
func Refuse(t testing.TB, a llm.Adapter, status int, body string, headers ...string) *turns.CallError {
	t.Helper()
	p := Play(t, func(x *Exchange) { x.Status(status, body, headers...) })
	r := open(t, a, p.URL(), turns.Limits{}).collect(t)
	require.NotNil(t, r.Err)
	require.Equal(t, 1, p.Requests())
	return r.Err
}

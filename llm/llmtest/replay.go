package llmtest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/turns"
)

// Replay serves a recorded stream to an adapter over HTTP and returns what the call yielded.
func Replay(t testing.TB, a llm.Adapter, file string) Result {
	t.Helper()
	recorded, err := os.ReadFile(file)
	require.NoError(t, err)
	return Say(t, a, string(recorded))
}

// Say serves a stream to an adapter over HTTP and returns what the call yielded.
func Say(t testing.TB, a llm.Adapter, stream string) Result {
	t.Helper()
	p := Play(t, func(x *Exchange) { x.Stream(stream) })
	return open(t, a, p.URL(), turns.Limits{}).collect(t)
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

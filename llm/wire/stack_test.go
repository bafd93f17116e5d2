package wire_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/sse"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain is a vendor whose events are text, and whose terminal event is "end"; "bad" can't be read.
var plain = wire.Vendor{
	Translator: func() wire.Translator { return new(plainStream) },
	Classify: func(wire.Answer) wire.Verdict {
		return wire.Verdict{Class: turns.ClassTransient, Word: strings.Repeat("x", 100)}
	},
}

type plainStream struct{ blocks wire.Blocks }

func (s *plainStream) Translate(e sse.Event, out []turns.Delta) ([]turns.Delta, bool, error) {
	if string(e.Data) == "end" {
		return append(s.blocks.End(out), turns.Finished{}), true, nil
	}
	if string(e.Data) == "bad" {
		return out, false, wire.ErrMalformed
	}
	out = s.blocks.In(out, turns.KindText)
	s.blocks.Add(wire.Text(e.Data))
	return out, false, nil
}

func (s *plainStream) Flush(out []turns.Delta) []turns.Delta { return s.blocks.Flush(out) }

// stack is an HTTP stack that a test makes misbehave.
type stack func(*http.Request) (*http.Response, error)

func (s stack) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

func whole() *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader("data: a\n\ndata: end\n\n"))}
}

func through(t *testing.T, s stack) (llmtest.Result, *wire.Client) {
	t.Helper()
	c := wire.NewClient(wire.Options{Transport: s})
	defer c.Close()
	return llmtest.Collect(t, c.Stream(t.Context(), wire.Post{URL: "http://127.0.0.1:1/x", Body: []byte("{}")}, plain)), c
}

// wrote plays what net/http reports when it has written a request.
func wrote(ctx context.Context) {
	trace := httptrace.ContextClientTrace(ctx)
	trace.GotConn(httptrace.GotConnInfo{})
	trace.WroteHeaders()
	trace.WroteRequest(httptrace.WroteRequestInfo{})
}

func TestARequestWrittenTwiceIsAmbiguousAndCounted(t *testing.T) {
	for name, end := range map[string]error{"and answered": nil, "and lost": errors.New("lost")} {
		t.Run(name, func(t *testing.T) {
			r, c := through(t, func(req *http.Request) (*http.Response, error) {
				wrote(req.Context())
				wrote(req.Context())
				return whole(), end
			})
			require.Equal(t, turns.ClassAmbiguous, r.Err.Class)
			require.ErrorIs(t, r.Err, wire.ErrResent)
			require.Empty(t, r.Text)
			require.EqualValues(t, 1, c.Resends())
		})
	}
	r, c := through(t, func(req *http.Request) (*http.Response, error) { wrote(req.Context()); return whole(), nil })
	require.Equal(t, "a", r.Text)
	require.Zero(t, c.Resends())
}

func TestARequestCannotBeSentAgainByTheStack(t *testing.T) {
	_, _ = through(t, func(req *http.Request) (*http.Response, error) {
		require.Nil(t, req.GetBody)
		require.Equal(t, http.MethodPost, req.Method)
		return whole(), nil
	})
}

func TestAnErrorOfTheStackIsKeptWithoutItsWords(t *testing.T) {
	r, _ := through(t, func(*http.Request) (*http.Response, error) { return nil, errors.New("malformed: the user's own words") })
	require.Equal(t, turns.ClassNotSent, r.Err.Class)
	require.NotContains(t, r.Err.Cause.Error(), "words")
	require.Contains(t, r.Err.Cause.Error(), "*errors.errorString")
}

func TestAVendorsWordIsCut(t *testing.T) {
	r, _ := through(t, func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 500, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(""))}, nil
	})
	require.Len(t, r.Err.Code, 64)
}

func TestOverHTTP2ARequestIsWrittenOnce(t *testing.T) {
	var requests atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		requests.Add(1)
		panic(http.ErrAbortHandler) // resets the stream
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	c := wire.NewClient(wire.Options{Transport: s.Client().Transport})
	defer c.Close()
	post := wire.Post{URL: s.URL, Body: []byte("{}"), Key: "turnd-1"}
	for n := range 5 {
		r := llmtest.Collect(t, c.Stream(t.Context(), post, plain))
		require.Equal(t, turns.ClassAmbiguous, r.Err.Class)
		require.Equal(t, turns.PhaseWritten, r.Err.Phase)
		require.EqualValues(t, n+1, requests.Load())
	}
	require.Zero(t, c.Resends())
}

func TestTheBaseURLKeepsItsVersion(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.openai.com/v1":   "https://api.openai.com/v1/messages",
		"https://api.openai.com/v1/":  "https://api.openai.com/v1/messages",
		"http://127.0.0.1:9090":       "http://127.0.0.1:9090/v1/messages",
		"https://h/gateway/anthropic": "https://h/gateway/anthropic/v1/messages",
		"https://h/api/paas/v4":       "https://h/api/paas/v4/messages",
		"https://h/v1beta":            "https://h/v1beta/messages",
	} {
		require.Equal(t, want, wire.Join(base, "messages"))
	}
}

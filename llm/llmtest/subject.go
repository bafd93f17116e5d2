package llmtest

import (
	"iter"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// What the suite sends. The words and the key must appear in no error.
const (
	promptWords = "the user's own words"
	systemWords = "the operator's own words"
	secretKey   = "sk-secret-0123456789"
	callKey     = "turnd-key-1"
)

// subject is an adapter under test, towards one provider.
type subject struct {
	caller llm.Caller
	http   *wire.Client
	route  turns.Route
}

func open(t testing.TB, a llm.Adapter, url string, limits turns.Limits) subject {
	t.Helper()
	http := wire.NewClient(wire.Options{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		require.Zero(t, http.Resends(), "a request was written twice")
		http.Close()
	})
	return openWith(http, a, url, limits)
}

func openWith(http *wire.Client, a llm.Adapter, url string, limits turns.Limits) subject {
	return subject{
		caller: a.Open(http, llm.Endpoint{Name: "test", Wire: a.Wire, BaseURL: url, Key: secretKey}),
		http:   http,
		route:  turns.Route{Model: "m", Endpoint: "test", Provider: a.Provider, ProviderModel: "demo", Limits: limits},
	}
}

// request builds a request of one user message.
func (s subject) request(t testing.TB) turns.Request {
	t.Helper()
	req, err := s.caller.Build(s.route, turns.Prompt{
		Options:  turns.Options{System: systemWords},
		Messages: []turns.Message{{Role: turns.RoleUser, Content: []turns.Block{turns.Text{Text: promptWords}}}},
	})
	require.NoError(t, err)
	return req
}

func (s subject) call(t testing.TB) iter.Seq2[turns.Delta, error] {
	t.Helper()
	return s.caller.Generate(t.Context(), turns.Call{Request: s.request(t), Key: callKey})
}

// heldBack is a call that its caller does not want any more by the time it is connected.
func (s subject) heldBack(t testing.TB) iter.Seq2[turns.Delta, error] {
	t.Helper()
	return s.caller.Generate(t.Context(), turns.Call{Request: s.request(t), Key: callKey, MaySend: func() bool { return false }})
}

func (s subject) collect(t testing.TB) Result {
	t.Helper()
	r := Collect(t, s.call(t))
	if r.Err != nil {
		RequireNoSecrets(t, r.Err)
	}
	return r
}

// RequireNoSecrets fails if the text of an error, or of anything it wraps, holds what the suite sent or was sent.
func RequireNoSecrets(t testing.TB, err *turns.CallError) {
	t.Helper()
	texts := []string{err.Error(), err.Code, err.RequestID}
	if err.Cause != nil {
		texts = append(texts, err.Cause.Error())
	}
	for _, text := range texts {
		for _, secret := range []string{promptWords, systemWords, secretKey, "secret words", "sk-"} {
			require.NotContains(t, text, secret)
		}
	}
}

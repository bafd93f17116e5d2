package oidctest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// Issuer answers as an OpenID Connect issuer does, or as a test says.
type Issuer struct {
	// URL is its name, and where it is asked.
	URL string
	// Discoveries and Reads count how often it was asked where its keys are, and for them.
	Discoveries, Reads atomic.Int64

	mu     sync.Mutex
	answer http.HandlerFunc
}

// New serves an issuer on loopback.
func New(t testing.TB, keys ...Key) *Issuer {
	i := &Issuer{}
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	i.URL = server.URL
	i.Publish(t, keys...)
	return i
}

// ServeHTTP implements http.Handler.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		i.Discoveries.Add(1)
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "token_endpoint": i.URL + "/token"})
	case "/keys":
		i.Reads.Add(1)
		i.mu.Lock()
		answer := i.answer
		i.mu.Unlock()
		answer(w, r)
	default:
		http.NotFound(w, r)
	}
}

// Answer has a test answer who asks for the keys.
func (i *Issuer) Answer(f http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = f
}

// Publish has the issuer show keys.
func (i *Issuer) Publish(t testing.TB, keys ...Key) { i.Say(JWKS(t, keys...)) }

// Say has it answer with a body.
func (i *Issuer) Say(body []byte) {
	i.Answer(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		_, _ = w.Write(body)
	})
}

// Fail has it answer that it can't.
func (i *Issuer) Fail() {
	i.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
}

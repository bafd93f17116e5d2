package oidc_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/server/auth/oidc"
)

// signing is a key pair of an issuer.
type signing struct {
	id      string
	alg     jose.SignatureAlgorithm
	private crypto.Signer
}

func ecKey(t testing.TB, id string, curve elliptic.Curve, alg jose.SignatureAlgorithm) signing {
	private, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	return signing{id, alg, private}
}

func newKey(t testing.TB, id string) signing { return ecKey(t, id, elliptic.P256(), jose.ES256) }

func edKey(t testing.TB, id string) signing {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return signing{id, jose.EdDSA, private}
}

var rsaOnce = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// rsaKey is the same pair each time, since making one takes long.
func rsaKey(t testing.TB, id string) signing {
	private, err := rsaOnce()
	require.NoError(t, err)
	return signing{id, jose.RS256, private}
}

// public is the key as a JWKS has it.
func (k signing) public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Algorithm: string(k.alg), Use: "sig"}
}

// sign makes a token of any payload.
func (k signing) sign(t testing.TB, payload []byte, headers map[jose.HeaderKey]any) string {
	options := &jose.SignerOptions{}
	for name, value := range headers {
		options.WithHeader(name, value)
	}
	var key any = k.private
	if k.id != "" {
		key = jose.JSONWebKey{Key: k.private, KeyID: k.id}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: k.alg, Key: key}, options)
	require.NoError(t, err)
	jws, err := signer.Sign(payload)
	require.NoError(t, err)
	token, err := jws.CompactSerialize()
	require.NoError(t, err)
	return token
}

// token makes a token of claims.
func (k signing) token(t testing.TB, claims map[string]any) string {
	payload, err := json.Marshal(claims)
	require.NoError(t, err)
	return k.sign(t, payload, map[jose.HeaderKey]any{"typ": "JWT"})
}

func keySet(t testing.TB, keys ...signing) []byte {
	var set jose.JSONWebKeySet
	for _, k := range keys {
		set.Keys = append(set.Keys, k.public())
	}
	body, err := json.Marshal(set)
	require.NoError(t, err)
	return body
}

// issuer answers as an OpenID Connect issuer does, or as a test says.
type issuer struct {
	url string

	mu     sync.Mutex
	answer http.HandlerFunc

	discoveries, reads atomic.Int64
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		i.discoveries.Add(1)
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.url, "jwks_uri": i.url + "/keys", "token_endpoint": i.url + "/token"})
	case "/keys":
		i.reads.Add(1)
		i.mu.Lock()
		answer := i.answer
		i.mu.Unlock()
		answer(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (i *issuer) answers(f http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = f
}

// publishes has the issuer show keys.
func (i *issuer) publishes(t testing.TB, keys ...signing) {
	i.says(keySet(t, keys...))
}

func (i *issuer) says(body []byte) {
	i.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		_, _ = w.Write(body)
	})
}

func (i *issuer) isDown() {
	i.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
}

// newIssuer serves on loopback.
func newIssuer(t testing.TB, keys ...signing) *issuer {
	i := &issuer{}
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	i.url = server.URL
	i.publishes(t, keys...)
	return i
}

// config trusts an issuer.
func (i *issuer) config() oidc.Config {
	return oidc.Config{Issuer: i.url, Audience: []string{"turnd"}, TenantClaim: "tenant"}
}

// claims are those of a good token.
func (i *issuer) claims(change ...map[string]any) map[string]any {
	now := time.Now()
	c := map[string]any{
		"iss": i.url, "aud": "turnd", "sub": "ada", "tenant": "acme", "scope": "openid turns read",
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	for _, more := range change {
		maps.Copy(c, more)
	}
	for name, value := range c {
		if value == nil {
			delete(c, name)
		}
	}
	return c
}

// open makes an Authenticator that is closed with the test.
func open(t testing.TB, cfg oidc.Config) *oidc.Authenticator {
	a, err := oidc.New(cfg)
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return a
}

// memory carries requests to a handler without a network, for tests inside a bubble.
type memory struct{ handler http.Handler }

func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.handler.ServeHTTP(recorder, r)
	}()
	select {
	case <-done:
	case <-r.Context().Done():
		<-done
		return nil, r.Context().Err()
	}
	response := recorder.Result()
	response.Request = r
	return response, nil
}

// inMemory is an issuer without a network, and the settings that trust it.
func inMemory(t testing.TB, keys ...signing) (*issuer, oidc.Config) {
	i := &issuer{url: "https://issuer.example.com"}
	i.publishes(t, keys...)
	cfg := i.config()
	cfg.Transport = memory{i}
	return i, cfg
}

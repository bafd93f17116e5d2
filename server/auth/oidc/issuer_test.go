package oidc_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/server/auth/oidc"
	"github.com/turnd/turnd/server/auth/oidc/oidctest"
)

// issuer is one that these tests trust for turnd.
type issuer struct{ *oidctest.Issuer }

func newIssuer(t testing.TB, keys ...oidctest.Key) issuer { return issuer{oidctest.New(t, keys...)} }

// config trusts an issuer.
func (i issuer) config() oidc.Config {
	return oidc.Config{Issuer: i.URL, Audience: []string{"turnd"}, TenantClaim: "tenant"}
}

// claims are those of a good token.
func (i issuer) claims(change ...map[string]any) map[string]any {
	now := time.Now()
	c := map[string]any{
		"iss": i.URL, "aud": "turnd", "sub": "ada", "tenant": "acme", "scope": "openid turns read",
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
func inMemory(t testing.TB, keys ...oidctest.Key) (issuer, oidc.Config) {
	i := issuer{&oidctest.Issuer{URL: "https://issuer.example.com"}}
	i.Publish(t, keys...)
	cfg := i.config()
	cfg.Transport = memory{i}
	return i, cfg
}

package oidc_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/server/auth/oidc/oidctest"
)

func TestKeysAreReadOverTLSFromWhereDiscoverySays(t *testing.T) {
	k := oidctest.NewKey(t, "k")
	i := issuer{&oidctest.Issuer{}}
	server := httptest.NewTLSServer(i)
	defer server.Close()
	i.URL = server.URL
	i.Publish(t, k)
	cfg := i.config()
	a := open(t, cfg)
	mustWait(t, a, k.Token(t, i.claims())) // who signed the server's certificate is not known

	cfg.Transport = server.Client().Transport
	isGood(t, open(t, cfg), k.Token(t, i.claims()))
}

func TestKeysAreReadFromWhereTheOperatorSays(t *testing.T) {
	k := oidctest.NewKey(t, "k")
	i := newIssuer(t, k)
	cfg := i.config()
	cfg.JWKSURL = i.URL + "/keys"
	isGood(t, open(t, cfg), k.Token(t, i.claims()))
	require.Zero(t, i.Discoveries.Load())
}

func TestTheContentTypeOfKeysDoesNotMatter(t *testing.T) {
	k := oidctest.NewKey(t, "k")
	i := newIssuer(t)
	i.Answer(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write(oidctest.JWKS(t, k))
	})
	isGood(t, open(t, i.config()), k.Token(t, i.claims()))
}

func TestARedirectOnTheSameHostIsFollowed(t *testing.T) {
	k := oidctest.NewKey(t, "k")
	i := newIssuer(t, k)
	mux := http.NewServeMux()
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/keys", http.StatusFound) })
	mux.HandleFunc("/around", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/around", http.StatusFound) })
	mux.Handle("/", i)
	server := httptest.NewServer(mux)
	defer server.Close()
	cfg := i.config()
	cfg.JWKSURL = server.URL + "/moved"
	isGood(t, open(t, cfg), k.Token(t, i.claims()))
	cfg.JWKSURL = server.URL + "/around"
	mustWait(t, open(t, cfg), k.Token(t, i.claims()))
}

func TestKeysThatCantBeBelievedAreNotRead(t *testing.T) {
	k := oidctest.NewKey(t, "k")
	elsewhere := newIssuer(t, k)
	for name, answer := range map[string]http.HandlerFunc{
		"a redirect elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/keys", http.StatusTemporaryRedirect)
		},
		"more than a key set holds": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(oidctest.JWKS(t, k))
			_, _ = w.Write(bytes.Repeat([]byte(" "), 1<<20))
		},
		"a body that breaks off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write(oidctest.JWKS(t, k))
		},
		"a failure with keys": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write(oidctest.JWKS(t, k))
		},
		"a page": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html></html>")) },
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t)
			i.Answer(answer)
			a := open(t, i.config())
			mustWait(t, a, k.Token(t, i.claims()))
		})
	}
}

func TestADiscoveryThatCantBeBelievedIsNot(t *testing.T) {
	k := oidctest.NewKey(t, "k")
	keys := newIssuer(t, k)
	for name, document := range map[string]map[string]string{
		"of another issuer":    {"issuer": "https://other.example.com", "jwks_uri": keys.URL + "/keys"},
		"of an issuer's slash": {"issuer": "SELF/", "jwks_uri": keys.URL + "/keys"},
		"without an issuer":    {"jwks_uri": keys.URL + "/keys"},
		"without keys":         {"issuer": "SELF"},
		"keys by http":         {"issuer": "SELF", "jwks_uri": "http://keys.example.com/keys"},
	} {
		t.Run(name, func(t *testing.T) {
			var self string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				body, _ := json.Marshal(document)
				_, _ = w.Write(bytes.ReplaceAll(body, []byte("SELF"), []byte(self)))
			}))
			defer server.Close()
			self = server.URL
			cfg := keys.config()
			cfg.Issuer = self
			mustWait(t, open(t, cfg), k.Token(t, keys.claims(map[string]any{"iss": self})))
		})
	}
}

func TestASlowIssuerIsNotWaitedForLong(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		k := oidctest.NewKey(t, "k")
		i, cfg := inMemory(t, k)
		i.Answer(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		a := open(t, cfg)
		begun := time.Now()
		mustWait(t, a, k.Token(t, i.claims()))
		require.Equal(t, 5*time.Second, time.Since(begun))
	})
}

func TestTheLogTellsOfKeysThatCantBeReadAndHoldsNoToken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var log strings.Builder
		k := oidctest.NewKey(t, "k")
		i, cfg := inMemory(t, k)
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		a := open(t, cfg)
		token := k.Token(t, i.claims(map[string]any{"exp": seconds(3 * time.Hour)}))
		isGood(t, a, token)
		i.Fail()
		time.Sleep(2 * time.Hour)
		mustWait(t, a, token)
		i.Publish(t, k)
		time.Sleep(time.Minute)
		isGood(t, a, token)
		a.Close()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		require.Len(t, lines, 4, log.String())
		require.Contains(t, lines[1], "status 502")
		require.Contains(t, lines[2], "too old")
		require.NotContains(t, log.String(), token[:20])
	})
}

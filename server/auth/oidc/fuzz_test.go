package oidc_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/server/auth/oidc"
	"github.com/turnd/turnd/server/auth/oidc/oidctest"
	"github.com/turnd/turnd/turns"
)

// FuzzTokens checks that no text but the issuer's own is good, that none of it gets into the refusal, and that nothing breaks.
func FuzzTokens(f *testing.F) {
	k, mallory := oidctest.NewKey(f, "k"), oidctest.NewKey(f, "k")
	i := newIssuer(f, k)
	a := open(f, i.config())
	good := k.Token(f, i.claims())
	f.Add(good)
	f.Add(mallory.Token(f, i.claims()))
	f.Add(good[:strings.LastIndex(good, ".")+1])
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		_, err := a.Authenticate(t.Context(), token)
		if err == nil {
			// The last letter of a signature has bits that say nothing, so the signed part decides.
			require.Equal(t, good[:strings.LastIndex(good, ".")], token[:strings.LastIndex(token, ".")])
			return
		}
		require.Equal(t, turns.CodeUnauthenticated, turns.CodeOf(err), "%v", err)
		if len(token) > 40 {
			require.NotContains(t, err.Error(), token)
		}
	})
}

// FuzzClaims checks what an issuer may sign: whatever it is, a caller comes out of it whole or not at all.
func FuzzClaims(f *testing.F) {
	k := oidctest.NewKey(f, "k")
	i := newIssuer(f, k)
	cfg := i.config()
	cfg.TenantClaim, cfg.ScopeClaims = "a.b", []string{"scope", "a.c"}
	a := open(f, cfg)
	for _, more := range []string{
		`"a":{"b":"acme"}`, `"a.b":"acme"`, `"a":{"b":["x"],"c":[1,"turns"]}`, `"a":{"b":"\u0000"}`, `"sub":"x","a":{"b":"y"}`, `"exp":-1`,
		`"a":[{"b":1}]`, `"_claim_names":{"b":"src"}`,
	} {
		f.Add(more)
	}
	f.Fuzz(func(t *testing.T, more string) {
		payload := `{"iss":"` + i.URL + `","aud":["turnd"],"sub":"ada","exp":4000000000,` + more + `}`
		if len(payload) > 10000 {
			return
		}
		identity, err := a.Authenticate(t.Context(), k.Sign(t, []byte(payload), nil))
		if err != nil {
			require.Equal(t, turns.CodeUnauthenticated, turns.CodeOf(err), "%v", err)
			require.Zero(t, identity)
			return
		}
		for _, name := range []string{string(identity.Caller.Tenant), identity.Caller.Subject} {
			require.Regexp(t, `\A[ -~]{1,128}\z`, name)
		}
		require.LessOrEqual(t, len(identity.Scopes), 3)
	})
}

// FuzzKeySets checks that a body is read to a bounded number of keys or refused.
func FuzzKeySets(f *testing.F) {
	whole := oidctest.JWKS(f, oidctest.NewKey(f, "a"), oidctest.EdKey(f, "b"), oidctest.RSAKey(f, "c"))
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`))
	f.Add([]byte(`{"keys":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		n, err := oidc.ReadKeys(body)
		require.Equal(t, err == nil, n > 0)
		require.LessOrEqual(t, n, 64)
	})
}

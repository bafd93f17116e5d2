package oidc_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/server/auth/oidc"
	"github.com/turnd/turnd/server/auth/oidc/oidctest"
)

func TestOnlyKeysForSignaturesAreUsed(t *testing.T) {
	good := oidctest.RSAKey(t, "good")
	// The standard library makes no pair this weak any more. A number of its size will do, since nobody gets to use it.
	number, err := rand.Prime(rand.Reader, 1024)
	require.NoError(t, err)
	weak := &rsa.PublicKey{N: number, E: 65537}
	for name, k := range map[string]jose.JSONWebKey{
		"for encryption":      {Key: good.Public(), KeyID: "k", Use: "enc"},
		"of an unknown use":   {Key: good.Public(), KeyID: "k", Use: "tls"},
		"for its encryption":  {Key: good.Public(), KeyID: "k", Algorithm: "RSA-OAEP"},
		"for a shared secret": {Key: good.Public(), KeyID: "k", Algorithm: "HS256"},
		"a shared secret":     {Key: []byte("a secret that is long enough for it"), KeyID: "k"},
		"a private key":       {Key: good.Private, KeyID: "k"},
		"a weak key":          {Key: weak, KeyID: "k"},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{k}})
			require.NoError(t, err)
			_, err = oidc.ReadKeys(body)
			require.ErrorContains(t, err, "none can be used")

			body, err = json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{k, good.JWK()}})
			require.NoError(t, err)
			n, err := oidc.ReadKeys(body)
			require.NoError(t, err)
			require.Equal(t, 1, n)
		})
	}
}

func TestAKeySaysWhatMayBeDoneWithIt(t *testing.T) {
	body := string(oidctest.JWKS(t, oidctest.NewKey(t, "k")))
	for ops, good := range map[string]bool{`["verify"]`: true, `["sign","verify"]`: true, `["encrypt"]`: false, `"verify"`: false} {
		_, err := oidc.ReadKeys([]byte(strings.Replace(body, `"kty"`, `"key_ops":`+ops+`,"kty"`, 1)))
		require.Equal(t, good, err == nil, ops)
	}
}

func TestAKeySetWithTooManyKeysIsNotRead(t *testing.T) {
	k := oidctest.NewKey(t, "k")
	var keys []oidctest.Key
	for n := range 65 {
		keys = append(keys, oidctest.Key{ID: fmt.Sprint(n), Alg: k.Alg, Private: k.Private})
	}
	_, err := oidc.ReadKeys(oidctest.JWKS(t, keys...))
	require.ErrorContains(t, err, "more than 64 keys")
	n, err := oidc.ReadKeys(oidctest.JWKS(t, keys[:64]...))
	require.NoError(t, err)
	require.Equal(t, 64, n)
}

func TestTwoKeysOfOneNameAreBothTried(t *testing.T) {
	one, two := oidctest.NewKey(t, "k"), oidctest.NewKey(t, "k")
	i := newIssuer(t, one, two)
	a := open(t, i.config())
	isGood(t, a, one.Token(t, i.claims()))
	isGood(t, a, two.Token(t, i.claims()))
}

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
)

func TestOnlyKeysForSignaturesAreUsed(t *testing.T) {
	good := rsaKey(t, "good")
	// The standard library makes no pair this weak any more. A number of its size will do, since nobody gets to use it.
	number, err := rand.Prime(rand.Reader, 1024)
	require.NoError(t, err)
	weak := &rsa.PublicKey{N: number, E: 65537}
	for name, k := range map[string]jose.JSONWebKey{
		"for encryption":      {Key: good.private.Public(), KeyID: "k", Use: "enc"},
		"of an unknown use":   {Key: good.private.Public(), KeyID: "k", Use: "tls"},
		"for its encryption":  {Key: good.private.Public(), KeyID: "k", Algorithm: "RSA-OAEP"},
		"for a shared secret": {Key: good.private.Public(), KeyID: "k", Algorithm: "HS256"},
		"a shared secret":     {Key: []byte("a secret that is long enough for it"), KeyID: "k"},
		"a private key":       {Key: good.private, KeyID: "k"},
		"a weak key":          {Key: weak, KeyID: "k"},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{k}})
			require.NoError(t, err)
			_, err = oidc.ReadKeys(body)
			require.ErrorContains(t, err, "none can be used")

			body, err = json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{k, good.public()}})
			require.NoError(t, err)
			n, err := oidc.ReadKeys(body)
			require.NoError(t, err)
			require.Equal(t, 1, n)
		})
	}
}

func TestAKeySaysWhatMayBeDoneWithIt(t *testing.T) {
	body := string(keySet(t, newKey(t, "k")))
	for ops, good := range map[string]bool{`["verify"]`: true, `["sign","verify"]`: true, `["encrypt"]`: false, `"verify"`: false} {
		_, err := oidc.ReadKeys([]byte(strings.Replace(body, `"kty"`, `"key_ops":`+ops+`,"kty"`, 1)))
		require.Equal(t, good, err == nil, ops)
	}
}

func TestAKeySetWithTooManyKeysIsNotRead(t *testing.T) {
	k := newKey(t, "k")
	var keys []signing
	for n := range 65 {
		keys = append(keys, signing{fmt.Sprint(n), k.alg, k.private})
	}
	_, err := oidc.ReadKeys(keySet(t, keys...))
	require.ErrorContains(t, err, "more than 64 keys")
	n, err := oidc.ReadKeys(keySet(t, keys[:64]...))
	require.NoError(t, err)
	require.Equal(t, 64, n)
}

func TestTwoKeysOfOneNameAreBothTried(t *testing.T) {
	one, two := newKey(t, "k"), newKey(t, "k")
	i := newIssuer(t, one, two)
	a := open(t, i.config())
	isGood(t, a, one.token(t, i.claims()))
	isGood(t, a, two.token(t, i.claims()))
}

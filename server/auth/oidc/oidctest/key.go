// Package oidctest is an issuer of tokens for tests: keys that sign, and what of them is shown.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
)

// Key is what an issuer signs with. Private is a crypto.Signer or, of an algorithm of shared secrets, bytes.
type Key struct {
	ID      string
	Alg     jose.SignatureAlgorithm
	Private any
}

// NewKey makes a pair of the kind that most issuers use for what is not RSA.
func NewKey(t testing.TB, id string) Key { return ECKey(t, id, elliptic.P256(), jose.ES256) }

// ECKey makes a pair of a curve.
func ECKey(t testing.TB, id string, curve elliptic.Curve, alg jose.SignatureAlgorithm) Key {
	private, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	return Key{id, alg, private}
}

// EdKey makes an Ed25519 pair.
func EdKey(t testing.TB, id string) Key {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return Key{id, jose.EdDSA, private}
}

var rsaOnce = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// RSAKey is the same pair each time, since making one takes long.
func RSAKey(t testing.TB, id string) Key {
	private, err := rsaOnce()
	require.NoError(t, err)
	return Key{id, jose.RS256, private}
}

// Public is the half that may be shown; of a shared secret there is none.
func (k Key) Public() crypto.PublicKey { return k.Private.(crypto.Signer).Public() }

// Sign makes a token of any payload.
func (k Key) Sign(t testing.TB, payload []byte, headers map[jose.HeaderKey]any) string {
	options := &jose.SignerOptions{}
	for name, value := range headers {
		options.WithHeader(name, value)
	}
	key := k.Private
	if k.ID != "" {
		key = jose.JSONWebKey{Key: k.Private, KeyID: k.ID}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: k.Alg, Key: key}, options)
	require.NoError(t, err)
	jws, err := signer.Sign(payload)
	require.NoError(t, err)
	token, err := jws.CompactSerialize()
	require.NoError(t, err)
	return token
}

// Token makes a token of claims.
func (k Key) Token(t testing.TB, claims map[string]any) string {
	payload, err := json.Marshal(claims)
	require.NoError(t, err)
	return k.Sign(t, payload, map[jose.HeaderKey]any{"typ": "JWT"})
}

// JWK is the key as a JWKS has it.
func (k Key) JWK() jose.JSONWebKey {
	return jose.JSONWebKey{Key: k.Public(), KeyID: k.ID, Algorithm: string(k.Alg), Use: "sig"}
}

// JWKS is what an issuer shows of keys.
func JWKS(t testing.TB, keys ...Key) []byte {
	var set jose.JSONWebKeySet
	for _, k := range keys {
		set.Keys = append(set.Keys, k.JWK())
	}
	body, err := json.Marshal(set)
	require.NoError(t, err)
	return body
}

package oidc

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

// Bounds of what an issuer publishes.
const (
	maxKeys    = 64
	minRSABits = 2048
	// maxRSABits keeps a check of a signature from taking milliseconds.
	maxRSABits = 8192
)

// algorithms are those of good tokens. Neither none nor those of shared secrets are among them: whoever reads public keys
// could sign by them.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// thumbprint tells keys apart by what they are, and not by the name an issuer gives them.
type thumbprint [32]byte

// key is a public key of the issuer that signatures are checked with.
type key struct {
	id string
	// alg is the only algorithm the issuer uses it for; empty where it does not say.
	alg    string
	public any
	print  thumbprint
}

// fits reports whether a key is one for an algorithm. Nothing that a token says can make a key serve another kind.
func (k key) fits(alg string) bool {
	if k.alg != "" && k.alg != alg {
		return false
	}
	switch public := k.public.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(alg, "RS") || strings.HasPrefix(alg, "PS")
	case *ecdsa.PublicKey:
		return alg == curves[public.Curve]
	case ed25519.PublicKey:
		return alg == string(jose.EdDSA)
	}
	return false
}

var curves = map[elliptic.Curve]string{
	elliptic.P256(): string(jose.ES256), elliptic.P384(): string(jose.ES384), elliptic.P521(): string(jose.ES512),
}

// readKeys finds the keys for signatures in a JWKS. Keys it can't use are passed over, as the standard asks, since issuers
// publish those of other uses too. A set that leaves none is an error, so that a half-written one takes no key away.
func readKeys(body []byte) ([]key, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, errors.New("the key set is not JSON, or only a part of it")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the key set has more than %d keys", maxKeys)
	}
	var keys []key
	for _, raw := range set.Keys {
		if k, ok := readKey(raw); ok {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("of %d keys in the key set none can be used", len(set.Keys))
	}
	return keys, nil
}

func readKey(raw []byte) (key, bool) {
	var jwk jose.JSONWebKey
	var more struct {
		Ops []string `json:"key_ops"`
	}
	if jwk.UnmarshalJSON(raw) != nil || json.Unmarshal(raw, &more) != nil {
		return key{}, false
	}
	if !signs(jwk) || len(more.Ops) > 0 && !slices.Contains(more.Ops, "verify") {
		return key{}, false
	}
	sum, err := jwk.Thumbprint(crypto.SHA256)
	if err != nil {
		return key{}, false
	}
	return key{id: jwk.KeyID, alg: jwk.Algorithm, public: jwk.Key, print: thumbprint(sum)}, true
}

// signs reports whether a key is public, strong enough, and for signatures of an algorithm on the list.
func signs(jwk jose.JSONWebKey) bool {
	if jwk.Use != "" && jwk.Use != "sig" {
		return false
	}
	if jwk.Algorithm != "" && !slices.Contains(algorithms, jose.SignatureAlgorithm(jwk.Algorithm)) {
		return false
	}
	switch public := jwk.Key.(type) {
	case *rsa.PublicKey:
		bits := public.N.BitLen()
		return bits >= minRSABits && bits <= maxRSABits
	case *ecdsa.PublicKey:
		return curves[public.Curve] != ""
	case ed25519.PublicKey:
		return len(public) == ed25519.PublicKeySize
	}
	return false
}

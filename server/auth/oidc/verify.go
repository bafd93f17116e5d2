package oidc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/turnd/turnd/server/auth"
)

// maxTries bounds the keys that a token without a key's name is tried with.
const maxTries = 8

// tokenTypes are the types that a token may say it is of. What an issuer signs for other ends, as a logout, is no proof of who calls.
var tokenTypes = []string{"", "jwt", "at+jwt", "application/at+jwt"}

// refused is a token that is not good. The text never has anything of the token in it.
func refused(format string, args ...any) error {
	return auth.Refuse(fmt.Sprintf(format, args...))
}

// verification checks one token on behalf of the library, which reports what its key set says as mere text. So it keeps
// its own account.
type verification struct {
	auth *Authenticator
	now  time.Time

	err    error
	claims claims
	print  thumbprint
}

// VerifySignature implements the library's KeySet.
func (v *verification) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := v.verify(ctx, token)
	v.err = err
	return payload, err
}

func (v *verification) verify(ctx context.Context, token string) ([]byte, error) {
	jws, err := parse(token)
	if err != nil {
		return nil, err
	}
	// What the claims alone rule out costs neither a computation nor a read of keys, and an expired token is called that
	// also when its key is gone.
	said, err := readClaims(jws.UnsafePayloadWithoutVerification())
	if err == nil {
		err = v.auth.acceptable(said, v.now)
	}
	if err != nil {
		return nil, err
	}
	payload, k, err := v.auth.keys.verify(ctx, jws)
	if err != nil {
		return nil, err
	}
	v.print = k.print
	v.claims, err = readClaims(payload)
	return payload, err
}

// parse reads a token's form, which is the compact one alone: in the JSON form, that the library reads too, headers are in part
// unsigned.
func parse(token string) (*jose.JSONWebSignature, error) {
	jws, err := jose.ParseSignedCompact(token, algorithms)
	var unexpected *jose.ErrUnexpectedSignatureAlgorithm
	switch {
	case errors.As(err, &unexpected):
		return nil, refused("the token is signed by an algorithm that is not accepted, or not at all")
	case err != nil || len(jws.Signatures) != 1 || strings.ContainsAny(token, "\r\n"): // the decoder passes over ends of lines
		return nil, refused("the token is not a signed JWT")
	}
	kind, _ := jws.Signatures[0].Header.ExtraHeaders[jose.HeaderType].(string)
	if !slices.Contains(tokenTypes, strings.ToLower(kind)) {
		return nil, refused("the token is of a type that is no proof of who calls")
	}
	return jws, nil
}

// verify finds the key that a token is signed by, and gives what it signed. Keys that were read before are tried first and wait for nobody.
func (s *keySet) verify(ctx context.Context, jws *jose.JSONWebSignature) ([]byte, key, error) {
	payload, k, err := s.try(jws)
	if err == nil || !errors.Is(err, errMissing) {
		return payload, k, err
	}
	if err := s.refresh(ctx); err != nil {
		return nil, key{}, err
	}
	if payload, k, err = s.try(jws); !errors.Is(err, errMissing) {
		return payload, k, err
	}
	if _, ok := s.current(); !ok || s.stale() {
		return nil, key{}, s.unavailable()
	}
	return nil, key{}, refused("the token is signed by an unknown key")
}

// errMissing says that the keys there are don't tell whether a signature is good.
var errMissing = errors.New("no such key")

// try checks a token by the keys there are.
func (s *keySet) try(jws *jose.JSONWebSignature) ([]byte, key, error) {
	header := jws.Signatures[0].Header
	keys, _ := s.current()
	named := slices.ContainsFunc(keys, func(k key) bool { return header.KeyID != "" && k.id == header.KeyID })
	tries := 0
	for _, k := range keys {
		if named && k.id != header.KeyID || !named && header.KeyID != "" || !k.fits(header.Algorithm) || tries == maxTries {
			continue
		}
		tries++
		if payload, err := jws.Verify(k.public); err == nil {
			return payload, k, nil
		}
	}
	switch {
	case !named:
		return nil, key{}, errMissing
	case tries == 0:
		return nil, key{}, refused("the token is signed by another algorithm than its key is for")
	}
	return nil, key{}, refused("the token's signature is not that of its key")
}

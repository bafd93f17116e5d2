package oidc

import (
	"context"
	"errors"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"

	"github.com/turnd/turnd/server/auth"
)

// Authenticator tells who calls by tokens of one issuer. Make it by New and close it.
type Authenticator struct {
	cfg    Config
	source source
	keys   *keySet
	seen   *seen
}

// New makes an Authenticator, and begins to read the issuer's keys without waiting for them: an issuer that is down keeps nobody from
// serving. Its error joins a ConfigError for each setting that is wrong.
func New(cfg Config) (*Authenticator, error) {
	var problems []error
	for _, problem := range cfg.Problems() {
		problems = append(problems, problem)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	cfg = cfg.withDefaults()
	a := &Authenticator{cfg: cfg, source: newSource(cfg), seen: newSeen()}
	a.keys = newKeySet(cfg, a.source.read)
	return a, nil
}

// Close stops reading keys and waits for a read that runs. Later callers that need one hear that it can't be done now.
func (a *Authenticator) Close() {
	a.keys.close()
	a.source.client.CloseIdleConnections()
}

// Authenticate implements auth.Authenticator. It fails with turns.CodeUnauthenticated for a token that is not good, with
// turns.CodeIdentityUnavailable if the issuer's keys can't be read, and with the context's error.
func (a *Authenticator) Authenticate(ctx context.Context, token string) (auth.Identity, error) {
	if len(token) > auth.MaxToken {
		return auth.Identity{}, refused("the token is longer than %d bytes", auth.MaxToken)
	}
	now := time.Now()
	if identity, ok := a.seen.find(token, now, a.keys); ok {
		return identity, nil
	}
	v, err := a.verify(ctx, token, now)
	if err != nil {
		return auth.Identity{}, err
	}
	identity, err := a.identity(v.claims)
	if err != nil {
		return auth.Identity{}, err
	}
	a.seen.add(token, sighting{identity: identity, until: v.claims.expiry().Add(leeway), print: v.print})
	return identity, nil
}

// verify has the library check a token, with its own checks of issuer and expiry on: what both let through is good.
func (a *Authenticator) verify(ctx context.Context, token string, now time.Time) (*verification, error) {
	v := &verification{auth: a, now: now}
	config := &gooidc.Config{
		SkipClientIDCheck: true, // the library knows one audience; acceptable knows several
		Now:               func() time.Time { return now.Add(-leeway) },
	}
	for _, algorithm := range algorithms {
		config.SupportedSigningAlgs = append(config.SupportedSigningAlgs, string(algorithm))
	}
	_, err := gooidc.NewVerifier(a.cfg.Issuer, v, config).Verify(ctx, token)
	switch {
	case v.err != nil:
		return nil, v.err
	case err == nil:
		return v, nil
	case v.claims != nil:
		return nil, refused("the token's claims are not those of an OpenID Connect token")
	}
	// The library gave up before it asked for a signature, and parse knows why.
	if _, err := parse(token); err != nil {
		return nil, err
	}
	return nil, refused("the token is not a signed JWT")
}

package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/server/auth"
	"github.com/turnd/turnd/server/auth/keys"
	"github.com/turnd/turnd/server/auth/oidc"
)

// Bounds of how often it is asked again about whoever has a stream open.
const (
	leastRecheck = time.Second
	mostRecheck  = 15 * time.Second
)

// openAuth makes what finds out who calls, as --auth says; nil takes callers at their word.
func (a *app) openAuth(ctx context.Context) (auth.Authenticator, error) {
	modes, err := server.AuthModes(a.cfg.Auth)
	if err != nil {
		return nil, err
	}
	var kinds auth.Kinds
	for _, mode := range modes {
		switch mode {
		case server.AuthNone:
			a.logger.WarnContext(ctx, "auth is none: whoever can connect to this machine's loopback acts as any tenant and as an operator; "+
				"see turnd keys and --auth=keys", "listen", a.cfg.Listen)
			return nil, nil
		case server.AuthKeys:
			if kinds.Keys, err = keys.New(keys.Config{Store: a.store.access, Lifetime: a.cfg.AuthCache}); err != nil {
				return nil, err
			}
		case server.AuthOIDC:
			tokens, err := oidc.New(a.cfg.OIDC.config(a.logger))
			if err != nil {
				return nil, err
			}
			a.closers = append(a.closers, func(context.Context) error { tokens.Close(); return nil })
			kinds.Tokens = tokens
		}
	}
	return kinds, nil
}

// recheck is how often it is asked again about open streams: as often as the answer can be another.
func (c Config) recheck() time.Duration { return min(max(c.AuthCache, leastRecheck), mostRecheck) }

// checkAuth looks at what goes with identity.
func (c Config) checkAuth() error {
	modes, err := server.AuthModes(c.Auth)
	if err != nil {
		return nil // said with the listeners
	}
	err = atLeast("--auth-cache", c.AuthCache, 0)
	return errors.Join(err, c.OIDC.check(slices.Contains(modes, server.AuthOIDC)))
}

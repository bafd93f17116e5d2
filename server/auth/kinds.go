package auth

import (
	"context"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/access"
)

// Kinds asks the authenticator of what a text looks to be: keys are told by their prefix. One that is nil takes nothing.
type Kinds struct{ Keys, Tokens Authenticator }

// Authenticate implements Authenticator.
func (k Kinds) Authenticate(ctx context.Context, token string) (Identity, error) {
	switch {
	case k.Keys != nil && (access.Looks(token) || k.Tokens == nil):
		return k.Keys.Authenticate(ctx, token)
	case k.Tokens != nil && !access.Looks(token):
		return k.Tokens.Authenticate(ctx, token)
	}
	return Identity{}, Refuse("API keys are not taken here; send a bearer token of the identity provider")
}

// Refuse is the error for who has not proved to be anybody. Its text is shown to the caller.
func Refuse(problem string) error {
	return &turns.Error{Code: turns.CodeUnauthenticated, Problem: problem}
}

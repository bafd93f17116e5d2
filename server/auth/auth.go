// Package auth finds out who calls. The server asks it with what a caller brings as proof, and is told a tenant, a subject and
// scopes; how proof is kept or checked is each authenticator's own.
package auth

import (
	"context"
	"slices"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/access"
)

// MaxToken bounds in bytes what is looked at as a key or token; a longer one is refused unread.
const MaxToken = 16 << 10

// Identity is who calls, and what for.
type Identity struct {
	Caller turns.Caller
	Scopes []access.Scope
}

// May reports whether the caller has a scope.
func (i Identity) May(scope access.Scope) bool { return slices.Contains(i.Scopes, scope) }

// Authenticator tells whose key or token something is. It fails with turns.CodeUnauthenticated for one that is not good, whose
// text says why as far as the caller may know it, and with a code that says to try again where it could not find out.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (Identity, error)
}

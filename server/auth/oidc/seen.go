package oidc

import (
	"crypto/sha256"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/turnd/turnd/server/auth"
)

// maxSeen bounds the tokens that are remembered: some 2 MiB.
const maxSeen = 4096

// sighting is a token that was good.
type sighting struct {
	identity auth.Identity
	// until is when it ends, and print the key it is signed by.
	until time.Time
	print thumbprint
}

// seen remembers good tokens by their hash, which saves the arithmetic of a signature. It remembers none for longer than it is
// good: neither past its end, nor past the key it is signed by.
type seen struct {
	tokens *lru.Cache[[sha256.Size]byte, sighting]
}

func newSeen() *seen {
	tokens, err := lru.New[[sha256.Size]byte, sighting](maxSeen)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &seen{tokens}
}

func (s *seen) add(token string, good sighting) { s.tokens.Add(sha256.Sum256([]byte(token)), good) }

func (s *seen) find(token string, now time.Time, keys *keySet) (auth.Identity, bool) {
	sum := sha256.Sum256([]byte(token))
	good, ok := s.tokens.Get(sum)
	if !ok || !keys.has(good.print) {
		return auth.Identity{}, false
	}
	if !now.Before(good.until) {
		s.tokens.Remove(sum)
		return auth.Identity{}, false
	}
	return auth.Identity{Caller: good.identity.Caller, Scopes: slices.Clone(good.identity.Scopes)}, true
}

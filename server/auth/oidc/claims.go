package oidc

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/json"

	"github.com/turnd/turnd/server/auth"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/access"
)

// leeway is how far the issuer's clock and this one's may be apart.
const leeway = 30 * time.Second

// lastSecond is the end of the year 9999. A number beyond is no time that anybody meant.
const lastSecond = 253402300799

// claims are what a token says. They are read by a decoder that tells upper from lower case and takes no name twice, so that
// nobody before or after it can have read something else.
type claims map[string]any

// readClaims fails for what is no JSON object, with a token inside a token among it.
func readClaims(payload []byte) (claims, error) {
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil || c == nil {
		return nil, refused("the token's claims are not one JSON object that has each name once")
	}
	return c, nil
}

// at finds a claim of that very name, since names that are URLs have dots; else the name is a path.
func (c claims) at(name string) any {
	if v, ok := c[name]; ok {
		return v
	}
	var v any = map[string]any(c)
	for step := range strings.SplitSeq(name, ".") {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[step]
	}
	return v
}

// acceptable says why a token is not good at a time, whoever signed it.
func (a *Authenticator) acceptable(c claims, now time.Time) error {
	if issuer, ok := c["iss"].(string); !ok || issuer != a.cfg.Issuer {
		return refused("the token is from another issuer")
	}
	if !slices.ContainsFunc(texts(c["aud"]), func(s string) bool { return slices.Contains(a.cfg.Audience, s) }) {
		return refused("the token is for another audience")
	}
	expires, ok := instant(c["exp"])
	if !ok {
		return refused("the token does not say when it expires, by a claim exp with seconds since 1970")
	}
	if !now.Before(expires.Add(leeway)) {
		return refused("the token has expired; get a new one")
	}
	for _, name := range []string{"nbf", "iat"} {
		v, given := c[name]
		begins, ok := instant(v)
		if given && !ok {
			return refused("the token's claim %s is not a time in seconds since 1970", name)
		}
		if given && now.Add(leeway).Before(begins) {
			return refused("the token is not yet valid")
		}
	}
	return nil
}

// expiry is when an acceptable token ends.
func (c claims) expiry() time.Time {
	t, _ := instant(c["exp"])
	return t
}

func instant(v any) (time.Time, bool) {
	seconds, ok := v.(float64)
	if !ok || math.IsNaN(seconds) || seconds < 0 || seconds > lastSecond {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}

// texts are those of a list, or a single one.
func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, one := range v {
			if s, ok := one.(string); ok {
				all = append(all, s)
			}
		}
		return all
	}
	return nil
}

// identity is whom a token stands for.
func (a *Authenticator) identity(c claims) (auth.Identity, error) {
	tenant := a.cfg.Tenant
	if tenant == "" {
		var err error
		if tenant, err = c.name(a.cfg.TenantClaim); err != nil {
			return auth.Identity{}, err
		}
	}
	subject, err := c.name(a.cfg.SubjectClaim)
	if err != nil {
		return auth.Identity{}, err
	}
	return auth.Identity{Caller: turns.Caller{Tenant: turns.Tenant(tenant), Subject: subject}, Scopes: a.scopes(c)}, nil
}

// name reads a tenant or a subject. The error says which claim, and not what is in it.
func (c claims) name(claim string) (string, error) {
	v := c.at(claim)
	if v == nil {
		return "", refused("the token has no claim %s", claim)
	}
	s, ok := v.(string)
	if !ok {
		return "", refused("the token's claim %s is not a text", claim)
	}
	if err := access.CheckIdentity(s); err != nil {
		return "", refused("the token's claim %s %s", claim, err)
	}
	return s, nil
}

// scopes are turnd's own among a token's. A token without one is good for nothing, which the gate says, naming what is missing.
func (a *Authenticator) scopes(c claims) []access.Scope {
	var found []access.Scope
	for _, claim := range a.cfg.ScopeClaims {
		for _, text := range texts(c.at(claim)) {
			for word := range strings.FieldsSeq(text) {
				name, ours := strings.CutPrefix(word, a.cfg.ScopePrefix)
				scope := access.Scope(name)
				if ours && slices.Contains(access.Scopes(), scope) && !slices.Contains(found, scope) {
					found = append(found, scope)
				}
			}
		}
	}
	return found
}

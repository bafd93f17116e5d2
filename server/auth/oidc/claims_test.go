package oidc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/server/auth/oidc"
	"github.com/turnd/turnd/server/auth/oidc/oidctest"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/access"
)

func TestClaimsOfCommonIssuersAreFoundBySettings(t *testing.T) {
	k := oidctest.NewKey(t, "k")
	i := newIssuer(t, k)
	all := []access.Scope{access.ScopeTurns, access.ScopeRead, access.ScopeOperator}
	for name, c := range map[string]struct {
		set    func(*oidc.Config)
		claims map[string]any
		tenant turns.Tenant
		who    string
		scopes []access.Scope
	}{
		"Auth0": {func(c *oidc.Config) {
			c.TenantClaim, c.ScopeClaims, c.ScopePrefix = "https://turnd.example.com/tenant", []string{"permissions"}, "turnd:"
		}, map[string]any{"sub": "auth0|64f", "https://turnd.example.com/tenant": "acme",
			"permissions": []string{"turnd:turns", "turnd:read", "turnd:operator", "read"}}, "acme", "auth0|64f", all},
		"Keycloak": {func(c *oidc.Config) {
			c.TenantClaim, c.SubjectClaim, c.ScopeClaims, c.ScopePrefix = "organization.id", "preferred_username", []string{"realm_access.roles"}, "turnd-"
		}, map[string]any{"preferred_username": "ada", "organization": map[string]any{"id": "globex"},
			"realm_access": map[string]any{"roles": []string{"offline_access", "turnd-read"}}}, "globex", "ada", all[1:2]},
		"Entra": {func(c *oidc.Config) {
			c.TenantClaim, c.SubjectClaim, c.ScopeClaims, c.ScopePrefix = "tid", "oid", []string{"scp", "roles"}, "turnd."
		}, map[string]any{"tid": "0f3a", "oid": "71bd", "scp": "turnd.turns turnd.read", "roles": []string{"turnd.operator", "turnd.read"}},
			"0f3a", "71bd", all},
		"one tenant": {func(c *oidc.Config) { c.Tenant, c.TenantClaim = "home", "" }, map[string]any{"tenant": "other"}, "home", "ada", all[:2]},
		"no scope":   {func(*oidc.Config) {}, map[string]any{"scope": "Turns openid turns2"}, "acme", "ada", nil},
		"odd scopes": {func(*oidc.Config) {}, map[string]any{"scope": []any{7, "read read", nil}}, "acme", "ada", all[1:2]},
		"wrong kind": {func(*oidc.Config) {}, map[string]any{"scope": map[string]any{"turns": true}}, "acme", "ada", nil},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := i.config()
			c.set(&cfg)
			identity, err := open(t, cfg).Authenticate(t.Context(), k.Token(t, i.claims(c.claims)))
			require.NoError(t, err)
			require.Equal(t, turns.Caller{Tenant: c.tenant, Subject: c.who}, identity.Caller)
			require.Equal(t, c.scopes, identity.Scopes)
		})
	}
}

func TestAPathThatLeadsNowhereIsAMissingClaim(t *testing.T) {
	k := oidctest.NewKey(t, "k")
	i := newIssuer(t, k)
	cfg := i.config()
	cfg.TenantClaim = "org.unit.name"
	a := open(t, cfg)
	for _, org := range []any{nil, "acme", map[string]any{"unit": "acme"}, map[string]any{"unit": nil}, []any{"unit"}} {
		refusal(t, a, k.Token(t, i.claims(map[string]any{"org": org})), "no claim org.unit.name")
	}
}

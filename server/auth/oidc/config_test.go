package oidc_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/server/auth/oidc"
)

func TestASettingThatCantBeServedWithIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		set     func(*oidc.Config)
		setting string
	}{
		"no issuer":             {func(c *oidc.Config) { c.Issuer = "" }, "issuer"},
		"an issuer by http":     {func(c *oidc.Config) { c.Issuer = "http://issuer.example.com" }, "issuer"},
		"an issuer by a name":   {func(c *oidc.Config) { c.Issuer = "issuer.example.com" }, "issuer"},
		"an issuer and a query": {func(c *oidc.Config) { c.Issuer = "https://issuer.example.com?x=1" }, "issuer"},
		"a password":            {func(c *oidc.Config) { c.Issuer = "https://me:secret@issuer.example.com" }, "issuer"},
		"no audience":           {func(c *oidc.Config) { c.Audience = nil }, "audience"},
		"an empty audience":     {func(c *oidc.Config) { c.Audience = []string{"turnd", ""} }, "audience"},
		"keys by http":          {func(c *oidc.Config) { c.JWKSURL = "http://10.0.0.1/keys" }, "jwks-url"},
		"keys by a file":        {func(c *oidc.Config) { c.JWKSURL = "file:///etc/keys" }, "jwks-url"},
		"no tenant":             {func(c *oidc.Config) { c.TenantClaim = "" }, "tenant-claim"},
		"a hostile tenant":      {func(c *oidc.Config) { c.Tenant = "a\x00b" }, "tenant"},
		"an empty scope claim":  {func(c *oidc.Config) { c.ScopeClaims = []string{""} }, "scope-claim"},
		"a short lifetime":      {func(c *oidc.Config) { c.KeysLifetime = time.Second }, "keys-lifetime"},
		"a negative lifetime":   {func(c *oidc.Config) { c.KeysLifetime = -time.Hour }, "keys-lifetime"},
		"a short grace":         {func(c *oidc.Config) { c.KeysGrace = time.Minute }, "keys-grace"},
		"an endless grace":      {func(c *oidc.Config) { c.KeysGrace = 1000 * time.Hour }, "keys-grace"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := oidc.Config{Issuer: "https://issuer.example.com", Audience: []string{"turnd"}, TenantClaim: "tenant"}
			c.set(&cfg)
			_, err := oidc.New(cfg)
			var wrong *oidc.ConfigError
			require.True(t, errors.As(err, &wrong), "%v", err)
			require.Equal(t, c.setting, wrong.Setting)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/turnd/turnd/server/auth/oidc"
)

// OIDC says whose tokens are good, and what in them names the caller.
type OIDC struct {
	OIDCIssuer       string        `name:"oidc-issuer" env:"TURND_OIDC_ISSUER" placeholder:"URL" help:"The identity provider of --auth oidc, letter by letter as tokens have it in iss: https, or http on loopback."`
	OIDCAudience     string        `name:"oidc-audience" env:"TURND_OIDC_AUDIENCE" placeholder:"NAMES" help:"Whom tokens are for, with commas between them: one must be in aud."`
	OIDCJWKSURL      string        `name:"oidc-jwks-url" env:"TURND_OIDC_JWKS_URL" placeholder:"URL" help:"The issuer's keys; default where its discovery document says."`
	OIDCTenant       string        `name:"oidc-tenant" env:"TURND_OIDC_TENANT" placeholder:"NAME" help:"The tenant of all tokens, instead of --oidc-tenant-claim."`
	OIDCTenantClaim  string        `name:"oidc-tenant-claim" env:"TURND_OIDC_TENANT_CLAIM" default:"tenant" placeholder:"CLAIM" help:"The claim that names the tenant: of this very name, else a path with dots."`
	OIDCSubjectClaim string        `name:"oidc-subject-claim" env:"TURND_OIDC_SUBJECT_CLAIM" default:"sub" placeholder:"CLAIM" help:"The claim that names the subject."`
	OIDCScopeClaim   string        `name:"oidc-scope-claim" env:"TURND_OIDC_SCOPE_CLAIM" default:"scope" placeholder:"CLAIMS" help:"The claims with scopes, with commas between them: each a text with blanks between scopes, or a list."`
	OIDCScopePrefix  string        `name:"oidc-scope-prefix" env:"TURND_OIDC_SCOPE_PREFIX" placeholder:"TEXT" help:"What tokens have before the scopes turns, read and operator, for example turnd:"`
	OIDCKeysLifetime time.Duration `name:"oidc-keys-lifetime" env:"TURND_OIDC_KEYS_LIFETIME" default:"10m" placeholder:"TIME" help:"How soon a key that the issuer takes back stops being good."`
	OIDCKeysGrace    time.Duration `name:"oidc-keys-grace" env:"TURND_OIDC_KEYS_GRACE" default:"1h" placeholder:"TIME" help:"How long keys are good since they were read while the issuer can't be reached."`
}

func (o OIDC) config(logger *slog.Logger) oidc.Config {
	return oidc.Config{
		Issuer: o.OIDCIssuer, Audience: listed(o.OIDCAudience), JWKSURL: o.OIDCJWKSURL,
		Tenant: o.OIDCTenant, TenantClaim: o.OIDCTenantClaim, SubjectClaim: o.OIDCSubjectClaim,
		ScopeClaims: listed(o.OIDCScopeClaim), ScopePrefix: o.OIDCScopePrefix,
		KeysLifetime: o.OIDCKeysLifetime, KeysGrace: o.OIDCKeysGrace, Logger: logger,
	}
}

// listed splits what has commas between it. Nothing is no list.
func listed(text string) []string {
	if text == "" {
		return nil
	}
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		parts = append(parts, strings.TrimSpace(part))
	}
	return parts
}

// check looks at the settings if tokens are taken. What can do nothing without them is a mistake elsewhere.
func (o OIDC) check(taken bool) error {
	if !taken {
		return errors.Join(o.unused()...)
	}
	// Zero is how a library's setting is left alone, and a mistake in a flag.
	problems := []error{atLeast("--oidc-keys-lifetime", o.OIDCKeysLifetime, oidc.MinLifetime)}
	if o.OIDCKeysGrace == 0 {
		problems = append(problems, atLeast("--oidc-keys-grace", o.OIDCKeysGrace, oidc.MinLifetime))
	}
	for _, p := range o.config(nil).Problems() {
		if p.Setting != "keys-lifetime" { // said above
			problems = append(problems, fmt.Errorf("--oidc-%s: %s", p.Setting, p.Problem))
		}
	}
	return errors.Join(problems...)
}

func (o OIDC) unused() (problems []error) {
	for _, setting := range []struct{ flag, value string }{
		{"--oidc-issuer", o.OIDCIssuer}, {"--oidc-audience", o.OIDCAudience},
		{"--oidc-jwks-url", o.OIDCJWKSURL}, {"--oidc-tenant", o.OIDCTenant},
	} {
		if setting.value != "" {
			problems = append(problems, fmt.Errorf("%s: goes with --auth oidc", setting.flag))
		}
	}
	return problems
}

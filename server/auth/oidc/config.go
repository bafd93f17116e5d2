package oidc

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/turnd/turnd/turns/access"
)

// Bounds of times that an operator can set.
const (
	// MinLifetime leaves a read of the keys the time to end before the lifetime does.
	MinLifetime = time.Minute
	// MaxGrace bounds how long keys can outlive what the issuer says of them.
	MaxGrace = 7 * 24 * time.Hour
)

// Config is what an Authenticator is made of. Issuer and Audience are required, and so are a tenant or the claim of one;
// what else is empty takes the default that its comment gives.
type Config struct {
	// Issuer is the claim iss of good tokens, letter by letter, and where discovery begins.
	Issuer string
	// Audience has the values of the claim aud of which a good token has one.
	Audience []string
	// JWKSURL is where the issuer's keys are. Default: where its discovery document says.
	JWKSURL string
	// Tenant is the tenant of every token. With it TenantClaim is not looked at.
	Tenant string
	// TenantClaim and SubjectClaim say where a token names its tenant and its subject: a claim of that very name, else a
	// path with dots. Default of SubjectClaim: sub.
	TenantClaim  string
	SubjectClaim string
	// ScopeClaims say where scopes are, together: texts with blanks between scopes, or lists of texts. Default: scope.
	ScopeClaims []string
	// ScopePrefix is before the names of scopes in a token. What does not begin with it is not turnd's.
	ScopePrefix string
	// KeysLifetime is how soon a key that the issuer takes back stops being good: 10 minutes.
	KeysLifetime time.Duration
	// KeysGrace is how long keys are good, since they were read, while they can't be read again: an hour.
	KeysGrace time.Duration
	// Logger is told when keys can't be read, and can again. Default: nothing is logged.
	Logger *slog.Logger
	// Transport carries requests to the issuer. Default: one like the standard library's.
	Transport http.RoundTripper
}

// ConfigError is a setting that can't be served with.
type ConfigError struct {
	// Setting is its name, as flags spell it after their prefix.
	Setting string
	// Problem says what is wrong and what to do.
	Problem string
}

// Error implements error.
func (e *ConfigError) Error() string { return e.Setting + ": " + e.Problem }

func (c Config) withDefaults() Config {
	if c.SubjectClaim == "" {
		c.SubjectClaim = "sub"
	}
	if len(c.ScopeClaims) == 0 {
		c.ScopeClaims = []string{"scope"}
	}
	if c.KeysLifetime == 0 {
		c.KeysLifetime = 10 * time.Minute
	}
	if c.KeysGrace == 0 {
		c.KeysGrace = time.Hour
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Problems finds all that is wrong with settings, so that they can be mended at one go.
func (c Config) Problems() []*ConfigError {
	c = c.withDefaults()
	var problems []*ConfigError
	wrong := func(setting, problem string) {
		problems = append(problems, &ConfigError{Setting: setting, Problem: problem})
	}
	if u, err := checkURL(c.Issuer); err != nil {
		wrong("issuer", err.Error())
	} else if u.RawQuery != "" {
		wrong("issuer", "must have no query")
	}
	if c.JWKSURL != "" {
		if _, err := checkURL(c.JWKSURL); err != nil {
			wrong("jwks-url", err.Error())
		}
	}
	if len(c.Audience) == 0 {
		wrong("audience", "must name whom tokens are for, or those made for others would be good here")
	}
	for _, audience := range c.Audience {
		if audience == "" {
			wrong("audience", "has an empty value")
		}
	}
	if c.Tenant == "" && c.TenantClaim == "" {
		wrong("tenant-claim", "must name the claim with the tenant, unless one tenant is set for all")
	}
	if c.Tenant != "" {
		if err := access.CheckIdentity(c.Tenant); err != nil {
			wrong("tenant", err.Error())
		}
	}
	for _, claim := range c.ScopeClaims {
		if claim == "" {
			wrong("scope-claim", "has an empty value")
		}
	}
	if c.KeysLifetime < MinLifetime {
		wrong("keys-lifetime", fmt.Sprintf("must be at least %s", MinLifetime))
	}
	if c.KeysGrace < c.KeysLifetime || c.KeysGrace > MaxGrace {
		wrong("keys-grace", fmt.Sprintf("must be between the keys' lifetime and %s", MaxGrace))
	}
	return problems
}

// checkURL allows what nobody on the way can forge: https, or this machine. Passwords do not belong in a URL that logs show.
func checkURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return nil, errors.New("must be set")
	case err != nil || u.Hostname() == "":
		return nil, errors.New("must be a URL like https://issuer.example.com")
	case u.User != nil || u.Fragment != "" || strings.Contains(raw, "#"):
		return nil, errors.New("must have neither a user nor a fragment")
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Hostname()):
		return u, nil
	}
	return nil, errors.New("must be https; http is for loopback alone")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

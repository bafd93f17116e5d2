package oidc_test

import (
	"crypto/elliptic"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/server/auth"
	"github.com/turnd/turnd/server/auth/oidc"
	"github.com/turnd/turnd/server/auth/oidc/oidctest"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/access"
)

// refusal checks that a token is refused for a reason that its text gives.
func refusal(t testing.TB, a *oidc.Authenticator, token, text string) {
	t.Helper()
	identity, err := a.Authenticate(t.Context(), token)
	require.Equal(t, turns.CodeUnauthenticated, turns.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, text)
	require.Zero(t, identity)
	for _, secret := range []string{"ada", "acme", "other.example.com", "somebody"} {
		require.NotContains(t, err.Error(), secret)
	}
}

func seconds(d time.Duration) int64 { return time.Now().Add(d).Unix() }

func TestATokenStandsForItsTenantSubjectAndScopes(t *testing.T) {
	for name, k := range map[string]oidctest.Key{
		"RS256": oidctest.RSAKey(t, "k"), "ES256": oidctest.NewKey(t, "k"), "EdDSA": oidctest.EdKey(t, "k"), "ES384": oidctest.ECKey(t, "k", elliptic.P384(), jose.ES384),
		"PS256": {ID: "k", Alg: jose.PS256, Private: oidctest.RSAKey(t, "k").Private},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t, k)
			a := open(t, i.config())
			for range 2 { // the second time it is remembered
				identity, err := a.Authenticate(t.Context(), k.Token(t, i.claims()))
				require.NoError(t, err)
				require.Equal(t, auth.Identity{Caller: turns.Caller{Tenant: "acme", Subject: "ada"},
					Scopes: []access.Scope{access.ScopeTurns, access.ScopeRead}}, identity)
			}
		})
	}
}

func TestATokenThatIsNotGoodIsRefusedWithTheReason(t *testing.T) {
	k := oidctest.NewKey(t, "k")
	i := newIssuer(t, k)
	a := open(t, i.config())
	for name, c := range map[string]struct {
		change map[string]any
		text   string
	}{
		"expired":                    {map[string]any{"exp": seconds(-time.Hour)}, "has expired"},
		"expired past the leeway":    {map[string]any{"exp": seconds(-31 * time.Second)}, "has expired"},
		"expires never":              {map[string]any{"exp": nil}, "does not say when it expires"},
		"expires at a text":          {map[string]any{"exp": "tomorrow"}, "does not say when it expires"},
		"expires beyond all time":    {map[string]any{"exp": 1e300}, "does not say when it expires"},
		"not yet valid":              {map[string]any{"nbf": seconds(time.Minute)}, "not yet valid"},
		"made in the future":         {map[string]any{"iat": seconds(time.Minute)}, "not yet valid"},
		"not valid before a text":    {map[string]any{"nbf": "yesterday"}, "claim nbf is not a time"},
		"for another audience":       {map[string]any{"aud": "somebody"}, "another audience"},
		"for other audiences":        {map[string]any{"aud": []string{"somebody", "turnd2"}}, "another audience"},
		"for no audience":            {map[string]any{"aud": nil}, "another audience"},
		"for an audience of numbers": {map[string]any{"aud": []int{1}}, "another audience"},
		"from another issuer":        {map[string]any{"iss": "https://other.example.com"}, "another issuer"},
		"from one with a slash":      {map[string]any{"iss": i.URL + "/"}, "another issuer"},
		"from nobody":                {map[string]any{"iss": nil}, "another issuer"},
		"without a tenant":           {map[string]any{"tenant": nil}, "no claim tenant"},
		"with an empty tenant":       {map[string]any{"tenant": ""}, "claim tenant must be 1 to 128"},
		"with a tenant of numbers":   {map[string]any{"tenant": 7}, "claim tenant is not a text"},
		"with tenants":               {map[string]any{"tenant": []string{"acme"}}, "claim tenant is not a text"},
		"with a long tenant":         {map[string]any{"tenant": strings.Repeat("acme.", 26)}, "claim tenant must be 1 to 128"},
		"with a hostile tenant":      {map[string]any{"tenant": "acme\n"}, "claim tenant must be 1 to 128"},
		"without a subject":          {map[string]any{"sub": nil}, "no claim sub"},
		"with an empty subject":      {map[string]any{"sub": ""}, "claim sub must be 1 to 128"},
		"with a foreign subject":     {map[string]any{"sub": "ada é"}, "claim sub must be 1 to 128"},
	} {
		t.Run(name, func(t *testing.T) { refusal(t, a, k.Token(t, i.claims(c.change)), c.text) })
	}
}

func TestClocksMayBeALittleApart(t *testing.T) {
	k := oidctest.NewKey(t, "k")
	i := newIssuer(t, k)
	a := open(t, i.config())
	for name, change := range map[string]map[string]any{
		"just expired":  {"exp": seconds(-15 * time.Second)},
		"just not yet":  {"nbf": seconds(15 * time.Second), "iat": seconds(15 * time.Second)},
		"parts of time": {"exp": float64(seconds(time.Minute)) + 0.5},
	} {
		_, err := a.Authenticate(t.Context(), k.Token(t, i.claims(change)))
		require.NoError(t, err, name)
	}
}

func TestOneAudienceOfSeveralIsEnough(t *testing.T) {
	k := oidctest.NewKey(t, "k")
	i := newIssuer(t, k)
	cfg := i.config()
	cfg.Audience = []string{"turnd", "https://turnd.example.com"}
	a := open(t, cfg)
	for _, audience := range []any{"https://turnd.example.com", []string{"account", "turnd"}} {
		_, err := a.Authenticate(t.Context(), k.Token(t, i.claims(map[string]any{"aud": audience})))
		require.NoError(t, err)
	}
}

func TestOnlyTheIssuersSignatureIsGood(t *testing.T) {
	k, mallory, other := oidctest.NewKey(t, "k"), oidctest.NewKey(t, "k"), oidctest.RSAKey(t, "rsa")
	i := newIssuer(t, k, other)
	a := open(t, i.config())
	claims, err := json.Marshal(i.claims())
	require.NoError(t, err)
	good := k.Token(t, i.claims())
	parts := strings.Split(good, ".")
	encode := base64.RawURLEncoding.EncodeToString
	public, err := x509.MarshalPKIXPublicKey(other.Public())
	require.NoError(t, err)

	for name, c := range map[string]struct{ token, text string }{
		"another key of the same name":      {mallory.Token(t, i.claims()), "signature is not that of its key"},
		"a key nobody has seen":             {oidctest.NewKey(t, "new").Token(t, i.claims()), "unknown key"},
		"a key that has no name":            {oidctest.NewKey(t, "").Token(t, i.claims()), "unknown key"},
		"a good key by another name":        {oidctest.Key{ID: "other", Alg: k.Alg, Private: k.Private}.Token(t, i.claims()), "unknown key"},
		"another's claims":                  {parts[0] + "." + encode([]byte(strings.Replace(string(claims), "ada", "eve", 1))) + "." + parts[2], "signature is not that"},
		"alg none":                          {encode([]byte(`{"alg":"none","kid":"k"}`)) + "." + parts[1] + ".", "not at all"},
		"alg None":                          {encode([]byte(`{"alg":"None","kid":"k"}`)) + "." + parts[1] + ".", "not at all"},
		"no alg":                            {encode([]byte(`{"kid":"k"}`)) + "." + parts[1] + "." + parts[2], "not at all"},
		"the public key as a shared secret": {oidctest.Key{ID: "rsa", Alg: jose.HS256, Private: public}.Sign(t, claims, nil), "algorithm that is not accepted"},
		"a key of another kind":             {oidctest.Key{ID: "rsa", Alg: jose.ES256, Private: k.Private}.Token(t, i.claims()), "another algorithm than its key"},
		"another algorithm of the kind":     {oidctest.Key{ID: "rsa", Alg: jose.PS256, Private: other.Private}.Token(t, i.claims()), "another algorithm than its key"},
		"no signature":                      {parts[0] + "." + parts[1] + ".", "signature is not that"},
		"its own key in the header":         {mallory.Sign(t, claims, map[jose.HeaderKey]any{"jwk": mallory.JWK()}), "signature is not that"},
		"a critical header":                 {k.Sign(t, claims, map[jose.HeaderKey]any{"crit": []string{"new"}, "new": true}), "signature is not that"},
	} {
		t.Run(name, func(t *testing.T) { refusal(t, a, c.token, c.text) })
	}
	_, err = a.Authenticate(t.Context(), good)
	require.NoError(t, err)
}

func TestWhatIsNoTokenOfACallerIsRefused(t *testing.T) {
	k := oidctest.NewKey(t, "k")
	i := newIssuer(t, k)
	a := open(t, i.config())
	claims, err := json.Marshal(i.claims())
	require.NoError(t, err)
	good := k.Token(t, i.claims())
	jws, err := jose.ParseSigned(good, []jose.SignatureAlgorithm{jose.ES256})
	require.NoError(t, err)

	for name, c := range map[string]struct{ token, text string }{
		"nothing":                {"", "not a signed JWT"},
		"garbage":                {"garbage", "not a signed JWT"},
		"dots":                   {"..", "not at all"},
		"an encrypted one":       {"a.b.c.d.e", "not a signed JWT"},
		"the JSON form":          {jws.FullSerialize(), "not a signed JWT"},
		"a line more":            {good + "\n", "not a signed JWT"},
		"oversized":              {k.Token(t, i.claims(map[string]any{"more": strings.Repeat("x", auth.MaxToken)})), "longer than 16384 bytes"},
		"a nested token":         {k.Sign(t, []byte(good), map[jose.HeaderKey]any{"cty": "JWT"}), "not one JSON object"},
		"a list":                 {k.Sign(t, []byte("["+string(claims)+"]"), nil), "not one JSON object"},
		"null":                   {k.Sign(t, []byte("null"), nil), "not one JSON object"},
		"no claims":              {k.Sign(t, []byte("{}"), nil), "another issuer"},
		"two objects":            {k.Sign(t, []byte(string(claims)+string(claims)), nil), "not one JSON object"},
		"a claim twice":          {k.Sign(t, []byte(strings.Replace(string(claims), "{", `{"tenant":"globex",`, 1)), nil), "has each name once"},
		"deep claims":            {k.Sign(t, []byte(strings.Repeat("[", 8000)), nil), "not one JSON object"},
		"claims of another form": {k.Token(t, i.claims(map[string]any{"_claim_names": 7})), "not those of an OpenID Connect token"},
		"a logout":               {k.Sign(t, claims, map[jose.HeaderKey]any{"typ": "logout+jwt"}), "no proof of who calls"},
	} {
		t.Run(name, func(t *testing.T) { refusal(t, a, c.token, c.text) })
	}
}

func TestANameInCapitalsIsAnotherClaim(t *testing.T) {
	k := oidctest.NewKey(t, "k")
	i := newIssuer(t, k)
	a := open(t, i.config())
	refusal(t, a, k.Token(t, i.claims(map[string]any{"tenant": nil, "Tenant": "acme"})), "no claim tenant")
	refusal(t, a, k.Token(t, i.claims(map[string]any{"exp": nil, "EXP": seconds(time.Hour)})), "does not say when it expires")
}

func TestARememberedTokenEndsWhenItSays(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		k := oidctest.NewKey(t, "k")
		i, cfg := inMemory(t, k)
		cfg.KeysLifetime = time.Hour
		a := open(t, cfg)
		token := k.Token(t, i.claims(map[string]any{"exp": seconds(time.Minute)}))
		for range 5 {
			_, err := a.Authenticate(t.Context(), token)
			require.NoError(t, err)
			time.Sleep(17 * time.Second)
		}
		time.Sleep(5 * time.Second)
		refusal(t, a, token, "has expired")
	})
}

package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// publish serves what an issuer of tokens shows, and gives its URL.
func publish(t *testing.T, key ed25519.PublicKey) string {
	var url string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var shown any = map[string]string{"issuer": url, "jwks_uri": url + "/keys"}
		if r.URL.Path == "/keys" {
			shown = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key, KeyID: "one"}}}
		}
		_ = json.NewEncoder(w).Encode(shown)
	}))
	t.Cleanup(server.Close)
	url = server.URL
	return url
}

func signed(t *testing.T, key ed25519.PrivateKey, claims map[string]any) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: key, KeyID: "one"}}, nil)
	require.NoError(t, err)
	payload, err := json.Marshal(claims)
	require.NoError(t, err)
	jws, err := signer.Sign(payload)
	require.NoError(t, err)
	token, err := jws.CompactSerialize()
	require.NoError(t, err)
	return token
}

func TestServeTakesTokensAsItsFlagsSay(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	issuer := publish(t, public)
	for _, mode := range []string{"oidc", "keys,oidc"} {
		t.Run(mode, func(t *testing.T) {
			p := serveIn(t, []string{"TURND_OIDC_AUDIENCE=other,https://turnd.example.com"}, "sqlite://"+filepath.Join(t.TempDir(), "turnd.db"),
				"--auth", mode, "--oidc-issuer", issuer, "--oidc-tenant-claim", "org.id", "--oidc-subject-claim", "oid",
				"--oidc-scope-claim", "scp,roles", "--oidc-scope-prefix", "turnd.")
			turns := turnsv1.NewTurnServiceClient(connect(t, p))
			send := func(token string) error {
				ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
				_, err := turns.SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: hello(uuid.NewString()).GetInput()})
				return err
			}
			claims := map[string]any{"iss": issuer, "aud": "https://turnd.example.com", "exp": time.Now().Add(time.Hour).Unix(),
				"org": map[string]any{"id": "acme"}, "oid": "ada", "scp": "turnd.read", "roles": []string{"turnd.turns"}}
			require.NoError(t, send(signed(t, private, claims)))
			claims["org"] = "acme"
			err := send(signed(t, private, claims))
			require.Equal(t, codes.Unauthenticated, status.Code(err), "%v", err)
			require.ErrorContains(t, err, "no claim org.id")
			require.Equal(t, codes.Unauthenticated, status.Code(send("neither")))
			require.NotContains(t, p.err.String(), "auth is none")
			p.signal(syscall.SIGTERM)
			require.Zero(t, p.code())
		})
	}
}

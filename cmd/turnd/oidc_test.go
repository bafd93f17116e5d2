package main

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server/auth/oidc/oidctest"
)

func TestServeTakesTokensAsItsFlagsSay(t *testing.T) {
	key := oidctest.EdKey(t, "one")
	issuer := oidctest.New(t, key).URL
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
			require.NoError(t, send(key.Token(t, claims)))
			claims["org"] = "acme"
			err := send(key.Token(t, claims))
			require.Equal(t, codes.Unauthenticated, status.Code(err), "%v", err)
			require.ErrorContains(t, err, "no claim org.id")
			require.Equal(t, codes.Unauthenticated, status.Code(send("neither")))
			require.NotContains(t, p.err.String(), "auth is none")
			p.signal(syscall.SIGTERM)
			require.Zero(t, p.code())
		})
	}
}
